"""The product for GPUs whose tensor cores scale no blocks: elements are scaled in 16 bits, and then multiplied.

A scaled element has at most 6 significant bits, so bfloat16 holds it exactly. With many rows both operands are scaled
before the product. With few rows that would read and write the weights twice more: ``a`` is scaled before the product,
and each tile of ``b`` within it.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels_smoke.block_scaled.formats import Format
from kernels_smoke.launch import architecture, interpreted
from kernels_smoke.launch_plan import allocated, launch
from kernels_smoke.matmul.tiles import _load_tile, _store_tile, described, descriptor

SUMMED = 1024  # elements of a row that one program adds up


def _eight_elements() -> str:
    """PTX for the eight elements $0 to $7 of two words $8 and $9 times two factors $10, in pairs of bfloat16."""
    shifts = (
        ("shl.b32 s, {}, 12;", "shl.b32 m, {}, 6;"),
        ("shl.b32 s, {}, 8;", "shl.b32 m, {}, 2;"),
        ("shl.b32 s, {}, 4;", "shr.u32 m, {}, 2;"),
        ("mov.b32 s, {};", "shr.u32 m, {}, 6;"),
    )
    lines = [".reg .b32 lo, hi, s, m, z;", "mov.b32 z, 0x80008000;"]  # halves of both words, sign, the rest, -0 twice
    lines += ["prmt.b32 lo, $8, $9, 0x5410;", "prmt.b32 hi, $8, $9, 0x7632;"]
    for place in range(8):
        half = "hi" if place >= 4 else "lo"
        sign, rest = shifts[place % 4]
        lines += [sign.format(half), "and.b32 s, s, 0x80008000;", rest.format(half)]
        lines.append("lop3.b32 m, m, 0x01C001C0, s, 0xEA;")  # (m & 0x01C001C0) | s
        lines.append(f"fma.rn.bf16x2 ${place}, m, $10, z;")
    return "{" + " ".join(lines) + "}"


_EIGHT_ELEMENTS = tl.constexpr(_eight_elements())
_EIGHT_DTYPES = tl.constexpr((tl.bfloat16,) * 8)


@triton.jit
def _element(words, factor, place: tl.constexpr, DTYPE: tl.constexpr):
    """Element ``place`` of each word, 2^126 times too small, times its factor."""
    bits = ((words << (28 - 4 * place)) >> 6) & -0x7E400000  # the sign fills what the mask clears
    return (bits.to(tl.float32, bitcast=True) * factor).to(DTYPE)


@triton.jit
def _scaled(
    words, factors, ROWS: tl.constexpr, WORDS: tl.constexpr, PLACES: tl.constexpr, FRAGMENTS: tl.constexpr,
    PACKED: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """The PLACES elements of each of ``words`` [ROWS, WORDS] times the factors of their blocks: [ROWS, WORDS * PLACES].

    Sign, exponent and mantissa of E2M1 go to where a larger format has its sign, the end of its exponent and the begin
    of its mantissa, which is right for subnormal elements, too. With PACKED, instructions work on the elements of two
    words. With FRAGMENTS, the elements of eight words are in the order in which four threads hold a row of four tiles
    for tensor cores, so that each thread keeps the elements of its two words: [place, word].
    """
    groups: tl.constexpr = factors.shape[1]
    factor = tl.broadcast_to(factors[:, :, None], (ROWS, groups, WORDS // groups)).reshape(ROWS, WORDS)
    if PLACES == 1:
        scaled = (words.to(tl.float32) * factor).to(DTYPE)
    elif PLACES == 2:
        words = words.to(tl.int32)
        scaled = tl.join(_element(words, factor, 0, DTYPE), _element(words, factor, 1, DTYPE))
    else:
        if PACKED:
            e0, e1, e2, e3, e4, e5, e6, e7 = tl.inline_asm_elementwise(
                _EIGHT_ELEMENTS,
                "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r",
                [words, factor.to(tl.bfloat16)],
                dtype=_EIGHT_DTYPES,
                is_pure=True,
                pack=2,
            )
        else:
            e0, e1 = _element(words, factor, 0, DTYPE), _element(words, factor, 1, DTYPE)
            e2, e3 = _element(words, factor, 2, DTYPE), _element(words, factor, 3, DTYPE)
            e4, e5 = _element(words, factor, 4, DTYPE), _element(words, factor, 5, DTYPE)
            e6, e7 = _element(words, factor, 6, DTYPE), _element(words, factor, 7, DTYPE)
        even, odd = tl.join(tl.join(e0, e4), tl.join(e2, e6)), tl.join(tl.join(e1, e5), tl.join(e3, e7))
        scaled = tl.join(even, odd)  # [ROWS, WORDS, 2, 2, 2]
        if FRAGMENTS:
            scaled = scaled.reshape(ROWS, WORDS // 8, 8, 2, 2, 2).permute(0, 1, 3, 4, 5, 2)
    return scaled.reshape(ROWS, WORDS * PLACES)


@triton.jit
def _excess(scales, row, rows, groups, stride, ROWS: tl.constexpr, GROUPS: tl.constexpr):
    """The powers of two [ROWS] that are left out of the scales of each row, so that bfloat16 holds what they scale.

    E4M3 is below 2^9. Of scales in E8M0, the greatest of a row becomes one between 2^-90 and 1.
    """
    if scales.dtype.element_ty == tl.uint8:
        largest = tl.zeros((ROWS,), tl.int32)
        for start in range(0, groups, GROUPS):
            tile = _load_tile(scales, row, start, rows, groups, stride, ROWS, GROUPS, False)  # [ROWS, GROUPS]
            largest = tl.maximum(largest, tl.max(tile.to(tl.int32), axis=1))
        excess = tl.maximum(largest - 127, 0) + tl.minimum(largest - 37, 0)
    else:
        excess = tl.full((ROWS,), 9, tl.int32)
    return excess


@triton.jit
def _factors(scales, excess, PLACES: tl.constexpr):
    """What to multiply elements by [ROWS, GROUPS], for their scales and what ``excess`` leaves out of these."""
    unit: tl.constexpr = 0 if PLACES == 1 else 126
    if scales.dtype == tl.uint8:  # E8M0, with the bias of float32
        exponents = tl.maximum(scales.to(tl.int32) - excess[:, None] + unit, 0)
        factors = (exponents << 23).to(tl.float32, bitcast=True)
    else:
        factors = scales.to(tl.float32) * 1.6615349947311448e35  # 2^(126 - 9)
    return factors


@triton.jit
def _power(exponents):
    return ((exponents + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _convert_kernel(
    stored, scales, scale, out, factors, rows, words, stored_stride, scales_stride, out_columns, out_stride,
    GROUP: tl.constexpr, PLACES: tl.constexpr, FRAGMENTS: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr,
    PACKED: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip  # tensors, sizes and strides, constants
    # `stored` is [rows, words], of which each GROUP have one scale; `out` is [rows, out_columns].
    chunks = tl.cdiv(words, WORDS)
    row = tl.program_id(0) // chunks * ROWS
    start = tl.program_id(0) % chunks * WORDS
    groups = words // GROUP
    excess = _excess(scales, row, rows, groups, scales_stride, ROWS, WORDS // GROUP)  # [ROWS]
    tile = _load_tile(stored, row, start, rows, words, stored_stride, ROWS, WORDS, False)  # [ROWS, WORDS]
    # [ROWS, WORDS // GROUP]
    of_tile = _load_tile(scales, row, start // GROUP, rows, groups, scales_stride, ROWS, WORDS // GROUP, False)
    scaled = _scaled(tile, _factors(of_tile, excess, PLACES), ROWS, WORDS, PLACES, FRAGMENTS, PACKED, DTYPE)
    _store_tile(out, scaled, row, start * PLACES, rows, out_columns, out_stride, False)  # [ROWS, WORDS * PLACES]
    if start == 0:
        factor = _power(excess)  # [ROWS]
        if scale is not None:
            factor *= tl.load(scale)  # [1]
        offs_m = row + tl.arange(0, ROWS)
        tl.store(factors + offs_m, factor, mask=offs_m < rows)


@triton.jit
def _few_rows_kernel(
    a, b, factors, scale_b, out, m, n, words, a_columns, a_stride, b_stride, scale_b_stride, out_stride,
    GROUP: tl.constexpr, PLACES: tl.constexpr, SPLITS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, PACKED: tl.constexpr, DTYPE: tl.constexpr, DESCRIBE: tl.constexpr,
):  # fmt: skip  # tensors, sizes and strides, constants
    # `a` is [m, a_columns], scaled, with a factor for each row; `b` is [n, words]. A program adds up a part of K.
    column = tl.program_id(0) * BLOCK_N
    split = tl.program_id(1)
    groups = words // GROUP
    excess = _excess(scale_b, column, n, groups, scale_b_stride, BLOCK_N, BLOCK_K // GROUP)  # [BLOCK_N]
    part = tl.cdiv(tl.cdiv(words, BLOCK_K), SPLITS) * BLOCK_K
    acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for start in range(split * part, min((split + 1) * part, words), BLOCK_K):
        # [BLOCK_M, BLOCK_K * PLACES], [BLOCK_N, BLOCK_K]
        tile_a = _load_tile(a, 0, start * PLACES, m, a_columns, a_stride, BLOCK_M, BLOCK_K * PLACES, DESCRIBE)
        tile_b = _load_tile(b, column, start, n, words, b_stride, BLOCK_N, BLOCK_K, DESCRIBE)
        # [BLOCK_N, BLOCK_K // GROUP]
        of_b = _load_tile(scale_b, column, start // GROUP, n, groups, scale_b_stride, BLOCK_N, BLOCK_K // GROUP, False)
        scaled = _scaled(tile_b, _factors(of_b, excess, PLACES), BLOCK_N, BLOCK_K, PLACES, True, PACKED, DTYPE)
        acc = tl.dot(scaled, tile_a.T, acc, input_precision="ieee")  # [BLOCK_N, BLOCK_M]
    offs_m = tl.arange(0, BLOCK_M)
    row_factor = tl.load(factors + offs_m, mask=offs_m < m, other=0.0)  # [BLOCK_M]
    result = acc.T * row_factor[:, None] * _power(excess)[None, :]  # [BLOCK_M, BLOCK_N]
    _store_tile(out + (split * m).to(tl.int64) * out_stride, result, 0, column, m, n, out_stride, False)


@triton.jit
def _sum_kernel(parts, out, m, n, out_stride, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    # The sum over SPLITS matrices [m, n] that lie one after another, of BLOCK elements of a row.
    row = tl.program_id(1)
    column = tl.program_id(0) * BLOCK
    total = tl.zeros((1, BLOCK), tl.float32)
    for split in tl.static_range(SPLITS):
        total += _load_tile(parts, split * m + row, column, SPLITS * m, n, n, 1, BLOCK, False)  # [1, BLOCK]
    _store_tile(out, total, row, column, m, n, out_stride, False)


def in_words(form: Format, *matrices: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The matrices as they are loaded: fp8 by element, E2M1 by eight elements where rows are aligned, or by two."""
    aligned = all(
        place % 4 == 0
        for matrix in matrices
        for place in (matrix.data_ptr(), matrix.storage_offset(), matrix.stride(0))
    )
    return tuple(matrix.view(torch.int32) for matrix in matrices) if form.packed == 2 and aligned else matrices


def convert(
    stored: torch.Tensor,
    scales: torch.Tensor,
    scale: torch.Tensor | None,
    form: Format,
    *,
    rows: int,
    words: int,
    warps: int = 4,
    fragments: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The scaled elements of ``stored`` [rows, K] in 16 bits, and a factor for each row that holds ``scale``, too.

    With ``fragments`` the elements are in the order of ``_scaled``, with zeros up to a multiple of eight words. One
    program converts ``words`` words of ``rows`` rows.
    """
    m, count = stored.shape
    places = form.packed * stored.itemsize
    columns = triton.cdiv(count, 8) * 8 * places if fragments else count * places
    dtype = torch.float32 if interpreted() else torch.bfloat16  # the interpreter cannot multiply bfloat16
    out = allocated(stored.new_empty((m, columns), dtype=dtype))
    factors = allocated(stored.new_empty((m, 1), dtype=torch.float32))
    launch(
        _convert_kernel,
        (triton.cdiv(m, rows) * triton.cdiv(count, words),),
        stored=stored,
        scales=scales,
        scale=scale,
        out=out,
        factors=factors,
        rows=m,
        words=count,
        stored_stride=stored.stride(0),
        scales_stride=scales.stride(0),
        out_columns=columns,
        out_stride=columns,
        GROUP=form.group // places,
        PLACES=places,
        FRAGMENTS=fragments,
        ROWS=rows,
        WORDS=words,
        PACKED=architecture().backend == "cuda",
        DTYPE=tl.float32 if interpreted() else tl.bfloat16,
        num_warps=warps,
    )
    return out, factors


def multiply_few_rows(
    a: torch.Tensor,
    factors: torch.Tensor,
    b: torch.Tensor,
    scale_b: torch.Tensor,
    out: torch.Tensor,
    form: Format,
    choice: Any,
) -> None:
    """Write the product into ``out``: of ``a`` with its factors as ``convert`` made them, and ``b`` in words."""
    (m, n), words = out.shape, b.shape[1]
    places = form.packed * b.itemsize
    describe = described(a) and described(b)
    parts = out if choice.splits == 1 else allocated(out.new_empty((choice.splits * m, n), dtype=torch.float32))
    launch(
        _few_rows_kernel,
        (triton.cdiv(n, choice.block_n), choice.splits),
        a=descriptor(a, choice.block_m, choice.block_k // b.itemsize * places) if describe else a,
        b=descriptor(b, choice.block_n, choice.block_k // b.itemsize) if describe else b,
        factors=factors,
        scale_b=scale_b,
        out=parts,
        m=m,
        n=n,
        words=words,
        a_columns=a.shape[1],
        a_stride=a.stride(0),
        b_stride=b.stride(0),
        scale_b_stride=scale_b.stride(0),
        out_stride=parts.stride(0),
        GROUP=form.group // places,
        PLACES=places,
        SPLITS=choice.splits,
        BLOCK_M=choice.block_m,
        BLOCK_N=choice.block_n,
        BLOCK_K=choice.block_k // b.itemsize,
        PACKED=architecture().backend == "cuda",
        DTYPE=tl.float32 if interpreted() else tl.bfloat16,
        DESCRIBE=describe,
        num_warps=choice.warps,
        num_stages=choice.stages,
    )
    if choice.splits > 1:
        launch(
            _sum_kernel,
            (triton.cdiv(n, SUMMED), m),
            parts=parts,
            out=out,
            m=m,
            n=n,
            out_stride=out.stride(0),
            SPLITS=choice.splits,
            BLOCK=SUMMED,
            num_warps=4,
        )
