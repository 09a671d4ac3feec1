"""The product of each group of rows with its own matrix: the linear layers of a mixture of experts."""

import torch

from kernels_smoke.gluon import GLUON
from kernels_smoke.launch import architecture, on_device_of
from kernels_smoke.launch_plan import plannable
from kernels_smoke.moe.grouped_tiles import (
    Configuration,
    aligned,
    by_group,
    check_operands,
    fills_tiles,
    multiply_groups,
    specializable,
)

if GLUON:
    from kernels_smoke.moe.specialized_grouped_mm import multiply_groups_specialized

OPERANDS = (torch.bfloat16, torch.float16)


def configure(
    m: int, n: int, groups: int, architecture: str, *, aligned: bool = True, specialized: bool = False
) -> Configuration:
    """The layout for ``m`` rows of ``n`` elements in ``groups`` groups on ``architecture``: see "Layouts" in README.md.

    ``aligned``: rows of the operands begin at multiples of 16 bytes. ``specialized``: the kernel in
    ``specialized_grouped_mm.py`` can take these operands and store this result.
    """
    if architecture == "interpret":  # small, so that small cases have several tiles in both directions
        return Configuration(16, 32, 32, group_m=2, warps=4, stages=1, swapped=m <= 16)
    if not aligned:  # elements come one by one: few registers for their addresses
        return Configuration(32, 32, 64, group_m=8, warps=8, stages=2)
    few = m <= 32 * groups
    if architecture.startswith("gfx"):  # 64 KiB of local memory
        return Configuration(16 if few else 64, 128, 64, group_m=8, warps=4, stages=2)
    if few:  # reading b is all that counts
        return Configuration(32, 64, 128, group_m=1, warps=4, stages=3, swapped=True)
    if architecture in {"sm_80", "sm_86", "sm_89", "sm_120", "sm_121"}:  # operands in registers, some with 99 KiB
        return Configuration(64, 128, 64, group_m=8, warps=4, stages=3)
    specialized = specialized and fills_tiles(m, n, groups)
    group_m, warps = (8, 4) if specialized else (16, 8)
    return Configuration(128, 256, 64, group_m, warps, stages=4, specialized=specialized)


@plannable
def grouped_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    *,
    rows: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``a[rows[i]] @ b[e].T`` for each row i, where e is the group with ``offsets[e] <= i < offsets[e + 1]``.

    The product of a mixture of experts, whose tokens are sorted by expert (Gale et al., "MegaBlocks: Efficient Sparse
    Training with Mixture-of-Experts" (2022), section 4), accumulated in float32.

    - ``a``: [tokens, K], bfloat16 or float16; rows may be further apart than they are wide.
    - ``b``: [groups, N, K] of that dtype, in any strides but the last.
    - ``offsets``: [groups + 1], int32 or int64, not decreasing: where the rows of each group begin, and the end. A
      group may be empty. Rows before the first and behind the last group are left as they are in ``out``.
    - ``rows``: [M], int32 or int64: the row of ``a`` of each row of the result (a token has several experts). Without
      it, M is the number of tokens, and they are taken in order.
    - ``out``: the result [M, N], of ``out_dtype``: bfloat16 (unless said otherwise), float16 or float32.

    The values of ``offsets`` and ``rows`` are read on the GPU only, and the launch does not depend on them: captured
    in a CUDA graph, a call serves every division of M rows. Values beyond the tensors are not checked.

    Raises ValueError when a shape, dtype, device or stride is not as said, K is 0, or there are more than 4096 groups.
    """
    out = check_operands(a, b, offsets, rows, OPERANDS, out_dtype, out)
    if out.numel():
        with on_device_of(a):
            choice = configure(
                out.shape[0],
                b.shape[1],
                b.shape[0],
                architecture().name,
                aligned=aligned(a, b),
                specialized=specializable(a, b, rows, out),
            )
            if choice.specialized:
                multiply_groups_specialized(
                    a,
                    by_group(b),
                    offsets,
                    out,
                    group_rows=b.stride(0) // b.stride(1),
                    block_m=choice.block_m,
                    block_n=choice.block_n,
                    block_k=choice.block_k,
                    group_m=choice.group_m,
                    stages=choice.stages,
                )
            else:
                multiply_groups(a, b, offsets, rows, None, out, choice)
    return out
