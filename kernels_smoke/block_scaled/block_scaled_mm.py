"""The product of two matrices in mxfp8, mxfp4 or nvfp4."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.block_scaled.emulation import convert, in_words, multiply_few_rows
from kernels_smoke.block_scaled.formats import FP8, Format, format_of
from kernels_smoke.launch import architecture, check_rows, check_span, on_device_of, require
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.matmul.scaled_mm import multiply_scaled
from kernels_smoke.matmul.tiles import _load_tile, _place, _store_tile, check_result, described, descriptor

LARGEST = 2**31 - 2**13  # of M, N and K: the last tile may reach beyond, in 32 bits


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    - ``block_m``, ``block_n``: rows and columns of a tile of the result; ``block_k``: bytes of a row in one step.
    - ``group_m``: rows of tiles that are computed together. ``warps``, ``stages``: of one program.
    - ``swapped``: compute the transposed tile: a few rows of ``a`` go where tensor cores take few columns.
    - ``emulated``: elements are scaled in 16 bits, not by ``tl.dot_scaled``. "operands": both operands are scaled, in
      tiles of ``block_m`` rows, before a product that ``scaled_mm`` lays out. "weights": ``a`` is scaled before the
      product and ``b`` within it; ``block_m`` holds all rows, and K is divided into ``splits``.
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    warps: int
    stages: int
    swapped: bool = False
    emulated: str = ""
    splits: int = 1


def configure(m: int, n: int, width: int, form: str, architecture: str, *, described: bool = True) -> Configuration:
    """The layout for a result of m x n elements in the format ``form``, from rows of ``width`` bytes: see README.md.

    ``described``: tiles of the operands come through descriptors.
    """
    if not scales_in_hardware(form, architecture):
        return _emulated(m, n, width, architecture, described=described)
    if not described or architecture.startswith("gfx"):  # elements may come one by one; 64 KiB of local memory
        return Configuration(128, 64, 128, 8, 8, 2)
    if m <= 64:
        return Configuration(16 if m <= 16 else 64, 128, 128, 1, 4, 4, swapped=True)
    return Configuration(128, 256, 128, 8, 8, 4)


def _emulated(m: int, n: int, width: int, architecture: str, *, described: bool) -> Configuration:
    if architecture == "interpret":  # small, so that small cases have several tiles and parts
        if m > 16:
            return Configuration(8, 0, 32, 1, 4, 1, emulated="operands")
        return Configuration(16, 32, 32, 1, 4, 1, emulated="weights", splits=2)
    if m > (128 if described else 64):
        return Configuration(4, 0, 1024, 1, 4, 1, emulated="operands")
    rows = max(triton.next_power_of_2(m), 16)
    if not described:
        return Configuration(rows, 64, 64, 1, 4, 2, emulated="weights")
    # As many programs as a multiprocessor has room for, where each has enough of K.
    programs = 132 * (4 if rows == 16 else 1)
    splits = max(min(programs // triton.cdiv(n, 64), width // 512), 1)
    return Configuration(rows, 64, 128, 1, 4, 3, emulated="weights", splits=splits)


def scales_in_hardware(form: str, architecture: str) -> bool:
    """Whether the matrix units of ``architecture`` scale blocks, and Triton (3.6 to 3.7) compiles for it."""
    if architecture == "gfx950":
        return form != "nvfp4"
    return architecture in {"sm_100", "sm_103", "sm_110", "sm_120"}


@triton.jit
def _block_scaled_mm_kernel(
    a, b, scale_a, scale_b, scale, out, m, n, k, a_stride, b_stride, scale_a_stride, scale_b_stride, out_stride,
    ELEMENT: tl.constexpr, PACKED: tl.constexpr, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, SWAPPED: tl.constexpr, DESCRIBE: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # `a` is [m, k] and `b` [n, k] in elements; in memory, PACKED of them are one byte.
    tile_m, tile_n = _place(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    row = tile_m * BLOCK_M
    column = tile_n * BLOCK_N
    width: tl.constexpr = BLOCK_K // PACKED
    groups: tl.constexpr = BLOCK_K // GROUP
    acc = tl.zeros((BLOCK_N, BLOCK_M) if SWAPPED else (BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(k, BLOCK_K)):
        start = step * width
        tile_a = _load_tile(a, row, start, m, k // PACKED, a_stride, BLOCK_M, width, DESCRIBE)  # [BLOCK_M, width]
        tile_b = _load_tile(b, column, start, n, k // PACKED, b_stride, BLOCK_N, width, DESCRIBE)  # [BLOCK_N, width]
        # [BLOCK_M, groups], [BLOCK_N, groups]
        of_a = _load_tile(scale_a, row, step * groups, m, k // GROUP, scale_a_stride, BLOCK_M, groups, False)
        of_b = _load_tile(scale_b, column, step * groups, n, k // GROUP, scale_b_stride, BLOCK_N, groups, False)
        left, left_scale, right, right_scale = tile_a, of_a, tile_b, of_b
        if SWAPPED:
            left, left_scale, right, right_scale = tile_b, of_b, tile_a, of_a
        acc = tl.dot_scaled(left, left_scale, ELEMENT, right.T, right_scale, ELEMENT, acc)
    if SWAPPED:
        acc = acc.T
    if scale is not None:
        acc *= tl.load(scale)  # [1]
    _store_tile(out, acc, row, column, m, n, out_stride, False)


@plannable
def block_scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    *,
    scale: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``scale * sum_q scale_a[m, q] scale_b[n, q] (a[m, q] . b[n, q])`` over the blocks q of K.

    The dtypes say which format it is (OCP Microscaling Formats specification 1.0, section 5; for nvfp4, NVIDIA,
    "Pretraining Large Language Models with NVFP4" (2025), section 2):

    - mxfp8: float8_e4m3fn, and a scale for 32 elements in E8M0 (float8_e8m0fnu, or uint8).
    - mxfp4: two E2M1 a byte (float4_e2m1fn_x2, or uint8), the first in the lower bits, with such scales.
    - nvfp4: the same elements with a scale for 16 in float8_e4m3fn, not negative, and usually with ``scale``.

    - ``a``: [M, K], ``b``: [N, K], with half as many columns where two elements are one byte. K is a multiple of the
      elements that share a scale.
    - ``scale_a``: [M, blocks], ``scale_b``: [N, blocks], row by row as here, not in the order of a tensor core.
    - ``scale``: of the whole result, float32, of one element.
    - ``out``: the result [M, N], of ``out_dtype``: bfloat16 (unless said otherwise), float16 or float32.

    Rows may be further apart than they are wide.

    Raises ValueError when a shape, dtype, device or stride is not as said, or the dtypes are no format.
    """
    require(a.ndim == 2 and b.ndim == 2, f"a and b must be matrices, not {a.ndim}- and {b.ndim}-dimensional")
    form = format_of(a.dtype, scale_a.dtype)
    require(form is not None, f"elements of {a.dtype} with scales of {scale_a.dtype} are no format")
    assert form is not None  # noqa: S101  # for mypy
    (m, stored), n = a.shape, b.shape[0]
    k = stored * form.packed
    require(k > 0 and k % form.group == 0, f"K must be a multiple of {form.group} in {form.name}, not {k}")
    require(max(m, n, k) < LARGEST, f"M, N and K must be less than {LARGEST}, not {m}, {n} and {k}")
    check_rows("a", a, (m, stored), (a.dtype,), a)
    check_rows("b", b, (n, stored), (a.dtype,), a)
    for name, scales, rows in (("scale_a", scale_a, m), ("scale_b", scale_b, n)):
        check_rows(name, scales, (rows, k // form.group), (scale_a.dtype,), a)
        check_span(name, scales)
    if scale is not None:
        check_rows("scale", scale, tuple(scale.shape), (torch.float32,), a)
        require(scale.numel() == 1, f"scale must have one element, not {scale.numel()}")
    out = check_result(out, (m, n), out_dtype, a)
    if out.numel():
        with on_device_of(a):
            _launch(_bytes(a), _bytes(b), _bytes(scale_a), _bytes(scale_b), scale, out, form)
    return out


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as Triton knows its dtype: all that is not float8_e4m3fn are bytes."""
    return tensor if tensor.dtype == FP8 else tensor.view(torch.uint8)


def _launch(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    scale: torch.Tensor | None,
    out: torch.Tensor,
    form: Format,
) -> None:
    """Launch a program for each tile of ``out``."""
    (m, n), k = out.shape, a.shape[1] * form.packed
    describe = described(a) and described(b)
    choice = configure(m, n, a.shape[1], form.name, architecture().name, described=describe)
    if choice.emulated:
        _launch_emulated(a, b, scale_a, scale_b, scale, out, form, choice)
        return
    width = choice.block_k
    block_k = width * form.packed
    launch(
        _block_scaled_mm_kernel,
        (triton.cdiv(m, choice.block_m) * triton.cdiv(n, choice.block_n),),
        a=descriptor(a, choice.block_m, width) if describe else a,
        b=descriptor(b, choice.block_n, width) if describe else b,
        scale_a=scale_a,
        scale_b=scale_b,
        scale=scale,
        out=out,
        m=m,
        n=n,
        k=k,
        a_stride=a.stride(0),
        b_stride=b.stride(0),
        scale_a_stride=scale_a.stride(0),
        scale_b_stride=scale_b.stride(0),
        out_stride=out.stride(0),
        ELEMENT=form.element,
        PACKED=form.packed,
        GROUP=form.group,
        BLOCK_M=choice.block_m,
        BLOCK_N=choice.block_n,
        BLOCK_K=block_k,
        GROUP_M=choice.group_m,
        SWAPPED=choice.swapped,
        DESCRIBE=describe,
        num_warps=choice.warps,
        num_stages=choice.stages,
    )


def _launch_emulated(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    scale: torch.Tensor | None,
    out: torch.Tensor,
    form: Format,
    choice: Configuration,
) -> None:
    """Scale ``a``, and ``b`` before the product or within it."""
    a, b = in_words(form, a, b)
    if choice.emulated == "operands":
        layout = {"rows": choice.block_m, "words": choice.block_k // a.itemsize, "warps": choice.warps}
        scaled_a, row_factors = convert(a, scale_a, scale, form, **layout)
        scaled_b, column_factors = convert(b, scale_b, None, form, **layout)
        multiply_scaled(scaled_a, scaled_b, row_factors, column_factors.t(), None, out)
    else:
        scaled_a, row_factors = convert(a, scale_a, scale, form, rows=1, words=256, fragments=True)
        multiply_few_rows(scaled_a, row_factors, b, scale_b, out, form, choice)
