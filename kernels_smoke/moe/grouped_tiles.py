"""The kernel of both grouped products: a program finds the group of its rows without a table from the host."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.gluon import hopper_gluon
from kernels_smoke.launch import check_rows, check_written, require
from kernels_smoke.launch_plan import allocated, launch
from kernels_smoke.matmul.tiles import ALIGNMENT, _place, described, descriptor

BLOCK = 128  # elements of K, and of N, that share a scale
LARGEST = 2**31 - 512  # of M, N and K: the last tile may reach beyond, in 32 bits
MOST_GROUPS = 4096  # a program holds the offsets of all groups in registers
OUTPUTS = (torch.bfloat16, torch.float16, torch.float32)
INDICES = (torch.int32, torch.int64)


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    - ``block_m``, ``block_n``: rows and columns of a tile of the result. ``block_k``: elements of K in one step.
    - ``group_m``: rows of tiles that are computed together. ``warps``, ``stages``: of one program.
    - ``swapped``: compute the transposed tile. Tensor cores take at least 64 rows and as few as 8 columns, so a few
      rows of ``a`` go where the columns are.
    - ``specialized``: by the kernel in Gluon, which has its own warps.
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    warps: int
    stages: int
    swapped: bool = False
    specialized: bool = False


@triton.jit
def _group_of(block, offsets, groups, BLOCK_M: tl.constexpr, GROUPS: tl.constexpr):
    """The group that has block number ``block``, -1 before the first: group e begins at ``offsets[e] // BLOCK_M + e``.

    So numbered, a group has its blocks at hand without a table, and at most one of them is empty.
    """
    group = tl.arange(0, GROUPS)
    start = tl.load(offsets + group, mask=group < groups, other=0)  # [GROUPS]
    before = (group < groups) & (start // BLOCK_M + group <= block)
    return tl.sum(before.to(tl.int32), axis=0) - 1


@triton.jit
def _load_step(rows, row, start_k, inside, k, BLOCK_K: tl.constexpr, DESCRIBE: tl.constexpr):
    """The columns from ``start_k`` on of a tile of rows; zero beyond k, and in rows that are not ``inside``.

    ``rows`` are a descriptor, where the tile begins at ``row``, or pointers to the first columns.
    """
    if DESCRIBE:  # what is not inside belongs to other groups, and is not stored
        tile = rows.load([row, start_k])  # [ROWS, BLOCK_K]
    else:
        mask = inside[:, None] & (tl.arange(0, BLOCK_K) < k - start_k)[None, :]
        tile = tl.load(rows + start_k, mask=mask, other=0.0)  # [ROWS, BLOCK_K]
    return tile


@triton.jit
def _grouped_kernel(
    a, b, rows, offsets, scale_a, scale_b, out, m, n, k, groups,
    a_stride, b_group_stride, b_stride, scale_a_stride_m, scale_a_stride_k,
    scale_b_stride_e, scale_b_stride_n, scale_b_stride_k, out_stride,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, SWAPPED: tl.constexpr, DESCRIBE_A: tl.constexpr, DESCRIBE_B: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # `a` is [tokens, k], and `b` is [groups, n, k] as pointers, [groups * b_group_stride, k] as a descriptor.
    tile_m, tile_n = _place(tl.program_id(0), m // BLOCK_M + groups, tl.cdiv(n, BLOCK_N), GROUP_M)
    group = _group_of(tile_m, offsets, groups, BLOCK_M, GROUPS)
    start = tl.load(offsets + group, mask=group >= 0, other=0).to(tl.int32)  # [1]
    end = tl.load(offsets + group + 1, mask=group >= 0, other=0).to(tl.int32)  # [1]
    first = start + (tile_m - start // BLOCK_M - group) * BLOCK_M
    if first < end:
        column = tile_n * BLOCK_N
        offs_m = first + tl.arange(0, BLOCK_M)
        offs_n = column + tl.arange(0, BLOCK_N)
        offs_k = tl.arange(0, BLOCK_K)
        inside = offs_m < end
        place = offs_m.to(tl.int64)
        if rows is not None:
            place = tl.load(rows + offs_m, mask=inside, other=0).to(tl.int64)  # [BLOCK_M]
        a_rows = a if DESCRIBE_A else a + place[:, None] * a_stride + offs_k[None, :]
        b_place = group.to(tl.int64) * b_group_stride + offs_n.to(tl.int64) * b_stride
        b_rows = b if DESCRIBE_B else b + b_place[:, None] + offs_k[None, :]
        b_row = group * b_group_stride + column
        if scale_a is not None:
            # The scales of a block are loaded one block ahead: nothing else hides how long that takes.
            row_scales = scale_a + place * scale_a_stride_m
            column_scales = scale_b + group.to(tl.int64) * scale_b_stride_e + column // BLOCK * scale_b_stride_n
            row_scale = tl.load(row_scales, mask=inside, other=0.0)  # [BLOCK_M]
            column_scale = tl.load(column_scales)  # [1]
        acc = tl.zeros((BLOCK_N, BLOCK_M) if SWAPPED else (BLOCK_M, BLOCK_N), tl.float32)
        for start_k in range(0, k, BLOCK_K):
            tile_a = _load_step(a_rows, first, start_k, inside, k, BLOCK_K, DESCRIBE_A)  # [BLOCK_M, BLOCK_K]
            tile_b = _load_step(b_rows, b_row, start_k, offs_n < n, k, BLOCK_K, DESCRIBE_B)  # [BLOCK_N, BLOCK_K]
            left, right = (tile_b, tile_a) if SWAPPED else (tile_a, tile_b)
            if scale_a is not None:
                more = start_k + BLOCK_K < k
                row_scales += scale_a_stride_k
                column_scales += scale_b_stride_k
                next_row_scale = tl.load(row_scales, mask=inside & more, other=0.0)  # [BLOCK_M]
                next_column_scale = tl.load(column_scales, mask=more, other=0.0)  # [1]
                scale = row_scale * column_scale
                # The tensor core adds up one block of K; the sum over blocks is kept outside of it, in full float32.
                acc += tl.dot(left, right.T) * (scale[None, :] if SWAPPED else scale[:, None])  # like acc
                row_scale = next_row_scale
                column_scale = next_column_scale
            else:
                acc = tl.dot(left, right.T, acc)  # [BLOCK_M, BLOCK_N], or its transpose
        if SWAPPED:
            acc = acc.T
        pointers = out + offs_m.to(tl.int64)[:, None] * out_stride + offs_n[None, :]
        tl.store(pointers, acc.to(out.dtype.element_ty), mask=inside[:, None] & (offs_n < n)[None, :])


def check_operands(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    rows: torch.Tensor | None,
    dtypes: tuple[torch.dtype, ...],
    out_dtype: torch.dtype | None,
    out: torch.Tensor | None,
) -> torch.Tensor:
    """Check what both products take, and return ``out`` [M, N], which is allocated when it was not given.

    Raises ValueError when a shape, dtype, device or stride does not fit.
    """
    require(a.ndim == 2, f"a must be [tokens, K], not {a.ndim}-dimensional")
    require(b.ndim == 3, f"b must be [groups, N, K], not {b.ndim}-dimensional")
    (tokens, k), (groups, n, _) = a.shape, b.shape
    require(k > 0, "a and b have no elements to multiply: K is 0")
    require(0 < groups <= MOST_GROUPS, f"b has {groups} groups; 1 to {MOST_GROUPS} are possible")
    check_rows("a", a, (tokens, k), dtypes, a)
    check_rows("b", b, (groups, n, k), (a.dtype,), a)
    check_rows("offsets", offsets, (groups + 1,), INDICES, a)
    m = tokens
    if rows is not None:
        require(rows.ndim == 1, f"rows must be [M], not {rows.ndim}-dimensional")
        m = rows.shape[0]
        check_rows("rows", rows, (m,), INDICES, a)
    require(max(m, n, k) < LARGEST, f"M, N and K must be less than {LARGEST}, not {m}, {n} and {k}")
    require(out_dtype in {None, *OUTPUTS}, f"out_dtype must be {' or '.join(map(str, OUTPUTS))}, not {out_dtype}")
    if out is None:
        out = allocated(torch.empty((m, n), dtype=out_dtype or torch.bfloat16, device=a.device))
    check_rows("out", out, (m, n), (out_dtype,) if out_dtype else OUTPUTS, a)
    check_written("out", out)
    return out


def aligned(*operands: torch.Tensor) -> bool:
    """Whether all rows begin at multiples of 16 bytes, so that elements come by 16 bytes and not one by one."""
    return all(
        step * operand.itemsize % ALIGNMENT == 0
        for operand in operands
        for step in (*operand.stride()[:-1], operand.data_ptr() // operand.itemsize)
    )


def by_group(b: torch.Tensor) -> torch.Tensor | None:
    """``b`` [groups, N, K] as one matrix for a descriptor, where each group begins at a whole row; else None."""
    groups, n, k = b.shape
    apart = b.stride(0) // b.stride(1) if b.stride(1) else 0
    if not apart or b.stride(0) != apart * b.stride(1) or apart < n or groups * apart >= LARGEST:
        return None
    matrix = b.as_strided(((groups - 1) * apart + n, k), b.stride()[1:])
    return matrix if described(matrix) else None


def specializable(a: torch.Tensor, b: torch.Tensor, rows: torch.Tensor | None, out: torch.Tensor) -> bool:
    """Whether a kernel in Gluon can multiply these on the present GPU: rows that are gathered cannot come by TMA."""
    return rows is None and described(a) and described(out) and by_group(b) is not None and hopper_gluon()


def fills_tiles(m: int, n: int, groups: int) -> bool:
    """Whether there is a tile of 128 x 256 for each of 132 multiprocessors, and few groups fill half of one only."""
    return m > 64 * groups and m * n >= 132 * 128 * 256


def multiply_groups(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    rows: torch.Tensor | None,
    scales: tuple[torch.Tensor, torch.Tensor] | None,
    out: torch.Tensor,
    choice: Configuration,
) -> None:
    """Launch one program for each tile that there may be: of each group's rows, one more than fills blocks."""
    (groups, n, k), m = b.shape, out.shape[0]
    scale_a, scale_b = scales or (None, None)
    matrix = by_group(b)
    describe_a = rows is None and described(a)
    programs = (m // choice.block_m + groups) * triton.cdiv(n, choice.block_n)
    launch(
        _grouped_kernel,
        (programs,),
        a=descriptor(a, choice.block_m, choice.block_k) if describe_a else a,
        b=b if matrix is None else descriptor(matrix, choice.block_n, choice.block_k),
        rows=rows,
        offsets=offsets,
        scale_a=scale_a,
        scale_b=scale_b,
        out=out,
        m=m,
        n=n,
        k=k,
        groups=groups,
        a_stride=a.stride(0),
        b_group_stride=b.stride(0) if matrix is None else b.stride(0) // b.stride(1),
        b_stride=b.stride(1),
        scale_a_stride_m=0 if scale_a is None else scale_a.stride(0),
        scale_a_stride_k=0 if scale_a is None else scale_a.stride(1),
        scale_b_stride_e=0 if scale_b is None else scale_b.stride(0),
        scale_b_stride_n=0 if scale_b is None else scale_b.stride(1),
        scale_b_stride_k=0 if scale_b is None else scale_b.stride(2),
        out_stride=out.stride(0),
        GROUPS=triton.next_power_of_2(groups),
        BLOCK=BLOCK,
        BLOCK_M=choice.block_m,
        BLOCK_N=choice.block_n,
        BLOCK_K=choice.block_k,
        GROUP_M=choice.group_m,
        SWAPPED=choice.swapped,
        DESCRIBE_A=describe_a,
        DESCRIBE_B=matrix is not None,
        num_warps=choice.warps,
        num_stages=choice.stages,
    )
