"""The product of two fp8 matrices with a scale for each 1 x 128 block of one and each 128 x 128 block of the other."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.gluon import GLUON, hopper_gluon
from kernels_smoke.launch import check_span, interpreted, multiprocessors, on_device_of, require
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.matmul.tiles import _load_tile, _place, _store_tile, check_operands, described, descriptor

if GLUON:
    from kernels_smoke.matmul.specialized_blockwise import multiply_blocks

BLOCK = 128  # elements of K, and of N, that share a scale


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    - ``block_m``, ``block_n``: rows and columns of a tile of the result; 128 is a multiple of the columns.
    - ``group_m``: rows of tiles that are computed together. ``warps``, ``stages``: of one program.
    - ``programs``: for each multiprocessor, which then work through all tiles; 0 is one program for each tile.
    - ``describe_out``: store through a descriptor where ``out`` is aligned.
    - ``specialized``: by the kernel in ``specialized_blockwise.py``, which has its own warps.
    """

    block_m: int
    block_n: int
    group_m: int
    warps: int
    stages: int
    programs: int = 0
    describe_out: bool = False
    specialized: bool = False


def configure(m: int, n: int, element_size: int, *, described: bool, specialized: bool = False) -> Configuration:
    """The layout for a result of m x n, from operands of ``element_size`` bytes: see "Layouts" in README.md.

    ``specialized``: the kernel in ``specialized_blockwise.py`` can take these operands and store this result.
    """
    if interpreted():  # small, so that small cases have several tiles in both directions
        return Configuration(16, 32, group_m=2, warps=4, stages=1, programs=1, describe_out=m > 16)
    if not described:  # elements may come one by one: few registers for their addresses
        return Configuration(32, 32, group_m=8, warps=8, stages=2)
    large, small = (triton.cdiv(m, size) * triton.cdiv(n, size) for size in (128, 64))
    if large < 132 and small <= 3 * 132:  # too few for all multiprocessors, each of which has room for three small ones
        return Configuration(64, 64, group_m=8, warps=4, stages=4)
    rounds, wide_rounds = (triton.cdiv(triton.cdiv(m, 128) * triton.cdiv(n, width), 132) for width in (128, 256))
    if specialized and 4 * wide_rounds <= 3 * rounds:  # tiles of twice the size take 1.36 times as long on an H200
        return Configuration(128, 256, group_m=8, warps=4, stages=4, programs=1, specialized=True)
    stages = 4 if element_size == 1 else 2
    return Configuration(128, 128, group_m=4, warps=8, stages=stages, programs=1, describe_out=True)


@triton.jit
def _scaled_mm_blockwise_kernel(
    a, b, scale_a, scale_b, out, m, n, k,
    a_stride, b_stride, scale_a_stride_m, scale_a_stride_k, scale_b_stride_k, scale_b_stride_n, out_stride,
    BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr,
    PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr, DESCRIBE_OUT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # `a` is [m, k] and `b`, transposed by the caller, [n, k]: both row-major, descriptors or pointers.
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=PERSISTENT):
        tile_m, tile_n = _place(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        offs_m = row + tl.arange(0, BLOCK_M)
        row_scales = scale_a + offs_m * scale_a_stride_m
        column_scales = scale_b + column // BLOCK * scale_b_stride_n
        # The scales of a block are loaded one block ahead: nothing else hides how long that takes.
        row_scale = tl.load(row_scales, mask=offs_m < m, other=0.0)  # [BLOCK_M]
        column_scale = tl.load(column_scales)  # [1]
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start_k in range(0, k, BLOCK):
            more = start_k + BLOCK < k
            row_scales += scale_a_stride_k
            column_scales += scale_b_stride_k
            next_row_scale = tl.load(row_scales, mask=offs_m < tl.where(more, m, 0), other=0.0)  # [BLOCK_M]
            next_column_scale = tl.load(column_scales, mask=more, other=0.0)  # [1]
            tile_a = _load_tile(a, row, start_k, m, k, a_stride, BLOCK_M, BLOCK, DESCRIBE)  # [BLOCK_M, BLOCK]
            tile_b = _load_tile(b, column, start_k, n, k, b_stride, BLOCK_N, BLOCK, DESCRIBE)  # [BLOCK_N, BLOCK]
            # The tensor core adds up one block of K; the sum over blocks is kept outside of it, in full float32.
            acc += tl.dot(tile_a, tile_b.T) * (row_scale * column_scale)[:, None]  # [BLOCK_M, BLOCK_N]
            row_scale = next_row_scale
            column_scale = next_column_scale
        _store_tile(out, acc, row, column, m, n, out_stride, DESCRIBE_OUT)


@plannable
def scaled_mm_blockwise(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    *,
    out_dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the sum over blocks q of K of ``scale_a[:, q] * scale_b[q, n // 128] * (a[:, q] @ b[q, :])``.

    Blocks are of 128 elements of K, the last may be shorter. The scales are those of DeepSeek-V3 (technical report,
    section 3.3.2): one for 1 x 128 activations, one for 128 x 128 weights; so is the sum over blocks in float32.

    - ``a``: [M, K], row-major, float8_e4m3fn (bfloat16 and float16 do as well).
    - ``b``: [K, N] of the same dtype, column-major: the transpose of a matrix [N, K] whose rows are contiguous.
    - ``scale_a``: [M, ceil(K / 128)], ``scale_b``: [ceil(K / 128), ceil(N / 128)]; float32, in any strides.
    - ``out``: the result [M, N], of ``out_dtype``: bfloat16 (unless said otherwise), float16 or float32.

    Rows of ``a``, of ``b`` transposed and of ``out`` may be further apart than they are wide. No size has to be a
    multiple of anything, but it is faster when rows begin at multiples of 16 bytes.

    Raises ValueError when a shape, dtype, device or stride is not as said, or K is 0.
    """
    out = check_operands(a, b, out_dtype, out)
    (m, k), n = a.shape, b.shape[1]
    blocks = triton.cdiv(k, BLOCK)
    for name, scales, shape in (
        ("scale_a", scale_a, (m, blocks)),
        ("scale_b", scale_b, (blocks, triton.cdiv(n, BLOCK))),
    ):
        require(tuple(scales.shape) == shape, f"{name} must have the shape {shape}, not {tuple(scales.shape)}")
        require(scales.dtype == torch.float32, f"{name} must be float32, not {scales.dtype}")
        require(scales.device == a.device, f"{name} is on {scales.device}, a is on {a.device}")
        check_span(name, scales)
    if not (m and n):
        return out

    rows = b.t()
    with on_device_of(a):
        describe = described(a) and described(rows)
        specialize = describe and described(out) and a.itemsize == 1 and hopper_gluon()
        choice = configure(m, n, a.itemsize, described=describe, specialized=specialize)
        if choice.specialized:
            multiply_blocks(
                a,
                rows,
                scale_a,
                scale_b.t()[None],
                out,
                block=BLOCK,
                block_m=choice.block_m,
                group_m=choice.group_m,
                stages=choice.stages,
            )
            return out
        describe_out = choice.describe_out and described(out)
        tiles = triton.cdiv(m, choice.block_m) * triton.cdiv(n, choice.block_n)
        # Without a GPU there are fewer programs than tiles, too: the loop over tiles is interpreted as it will run.
        programs = min(tiles, choice.programs * multiprocessors(a, otherwise=3)) or tiles
        launch(
            _scaled_mm_blockwise_kernel,
            (programs,),
            a=descriptor(a, choice.block_m, BLOCK) if describe else a,
            b=descriptor(rows, choice.block_n, BLOCK) if describe else rows,
            scale_a=scale_a,
            scale_b=scale_b,
            out=descriptor(out, choice.block_m, choice.block_n) if describe_out else out,
            m=m,
            n=n,
            k=k,
            a_stride=a.stride(0),
            b_stride=rows.stride(0),
            scale_a_stride_m=scale_a.stride(0),
            scale_a_stride_k=scale_a.stride(1),
            scale_b_stride_k=scale_b.stride(0),
            scale_b_stride_n=scale_b.stride(1),
            out_stride=out.stride(0),
            BLOCK=BLOCK,
            BLOCK_M=choice.block_m,
            BLOCK_N=choice.block_n,
            GROUP_M=choice.group_m,
            PERSISTENT=choice.programs > 0,
            DESCRIBE=describe,
            DESCRIBE_OUT=describe_out,
            num_warps=choice.warps,
            num_stages=choice.stages,
        )
    return out
