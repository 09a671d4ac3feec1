"""The product of each group of fp8 rows with its own matrix, with scales for blocks of 1 x 128 and 128 x 128."""

import torch
import triton

from kernels_smoke.gluon import GLUON
from kernels_smoke.launch import architecture, check_span, on_device_of, require
from kernels_smoke.launch_plan import plannable
from kernels_smoke.moe.grouped_tiles import (
    BLOCK,
    Configuration,
    aligned,
    by_group,
    check_operands,
    fills_tiles,
    multiply_groups,
    specializable,
)

if GLUON:
    from kernels_smoke.matmul.specialized_blockwise import multiply_blocks

OPERANDS = (torch.float8_e4m3fn, torch.bfloat16, torch.float16)


def configure(
    m: int,
    n: int,
    groups: int,
    element_size: int,
    architecture: str,
    *,
    aligned: bool = True,
    specialized: bool = False,
) -> Configuration:
    """The layout for ``m`` rows of ``n`` elements in ``groups`` groups on ``architecture``: see "Layouts" in README.md.

    ``aligned``: rows of the operands begin at multiples of 16 bytes. ``specialized``: the kernel in
    ``matmul/specialized_blockwise.py`` can take these operands and store this result.
    """
    if architecture == "interpret":  # small, so that small cases have several tiles in both directions
        return Configuration(16, 32, BLOCK, group_m=2, warps=4, stages=1, swapped=m <= 16)
    if not aligned:  # elements come one by one: few registers for their addresses
        return Configuration(32, 32, BLOCK, group_m=8, warps=8, stages=2)
    few = m <= 32 * groups
    if architecture.startswith("gfx"):  # 64 KiB of local memory
        return Configuration(16 if few else 64, 64, BLOCK, group_m=8, warps=4, stages=2)
    if few:  # reading b is all that counts
        return Configuration(16 * element_size, 64, BLOCK, group_m=1, warps=4, stages=5 - element_size, swapped=True)
    if architecture in {"sm_86", "sm_89", "sm_120", "sm_121"}:  # 99 KiB of shared memory, operands in registers
        return Configuration(64, 64, BLOCK, group_m=8, warps=4, stages=3)
    specialized = specialized and fills_tiles(m, n, groups)
    block_m, block_n, stages = (128, 256, 4) if specialized else (64, 128, 3)
    return Configuration(block_m, block_n, BLOCK, group_m=8, warps=4, stages=stages, specialized=specialized)


@plannable
def grouped_mm_blockwise(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    offsets: torch.Tensor,
    *,
    rows: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``grouped_mm`` of scaled operands: row i is the sum over blocks q of 128 elements of K of
    ``scale_a[rows[i], q] * scale_b[e, n // 128, q] * (a[rows[i], q] @ b[e, n, q])``.

    The scales are those of DeepSeek-V3 (technical report, section 3.3.2): one for 1 x 128 activations, one for
    128 x 128 weights; so is the sum over blocks in float32. The last block of K and of N may be shorter.

    - ``a``: [tokens, K], float8_e4m3fn (bfloat16 and float16 do as well); rows may be strided.
    - ``b``: [groups, N, K] of that dtype, in any strides but the last.
    - ``scale_a``: [tokens, ceil(K / 128)], ``scale_b``: [groups, ceil(N / 128), ceil(K / 128)], float32; any strides.
    - ``offsets``, ``rows``, ``out``, ``out_dtype``: as in ``grouped_mm``.

    Raises ValueError when a shape, dtype, device or stride is not as said, K is 0, or there are more than 4096 groups.
    """
    out = check_operands(a, b, offsets, rows, OPERANDS, out_dtype, out)
    (tokens, k), (groups, n, _), m = a.shape, b.shape, out.shape[0]
    blocks = triton.cdiv(k, BLOCK)
    for name, scales, shape in (
        ("scale_a", scale_a, (tokens, blocks)),
        ("scale_b", scale_b, (groups, triton.cdiv(n, BLOCK), blocks)),
    ):
        require(tuple(scales.shape) == shape, f"{name} must have the shape {shape}, not {tuple(scales.shape)}")
        require(scales.dtype == torch.float32, f"{name} must be float32, not {scales.dtype}")
        require(scales.device == a.device, f"{name} is on {scales.device}, a is on {a.device}")
        check_span(name, scales)
    if out.numel():
        with on_device_of(a):
            specialize = a.itemsize == 1 and specializable(a, b, rows, out)
            choice = configure(
                m,
                n,
                groups,
                a.itemsize,
                architecture().name,
                aligned=aligned(a, b),
                specialized=specialize,
            )
            if choice.specialized:
                multiply_blocks(
                    a,
                    by_group(b),
                    scale_a,
                    scale_b,
                    out,
                    block=BLOCK,
                    block_m=choice.block_m,
                    group_m=choice.group_m,
                    stages=choice.stages,
                    offsets=offsets,
                    group_rows=b.stride(0) // b.stride(1),
                )
            else:
                multiply_groups(a, b, offsets, rows, (scale_a, scale_b), out, choice)
    return out
