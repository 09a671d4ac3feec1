"""The product of two matrices in mxfp8, mxfp4 or nvfp4."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.block_scaled.emulation import _dot
from kernels_smoke.block_scaled.formats import FP8, Format, format_of
from kernels_smoke.launch import architecture, check_rows, check_span, check_written, on_device_of, require
from kernels_smoke.matmul.tiles import LARGEST, OUTPUTS, _load_tile, _place, _store_tile, described, descriptor


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    - ``block_m``, ``block_n``: rows and columns of a tile of the result; ``block_k``: bytes of a row in one step.
    - ``group_m``: rows of tiles that are computed together. ``warps``, ``stages``: of one program.
    - ``swapped``: compute the transposed tile: a few rows of ``a`` go where tensor cores take few columns.
    - ``emulated``: scale in the kernel and multiply in 16 bits, instead of ``tl.dot_scaled``.
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    warps: int
    stages: int
    swapped: bool = False
    emulated: bool = False


# By measurement: tl.dot_scaled has the better conversion of E2M1, the emulation that of fp8 and of nvfp4's scales.
HOPPER = {
    "mxfp8": Configuration(128, 256, 128, 8, 8, 3, emulated=True),
    "mxfp4": Configuration(128, 256, 32, 8, 8, 3),
    "nvfp4": Configuration(128, 128, 16, 8, 8, 4, emulated=True),
}


def configure(m: int, form: str, architecture: str, *, described: bool = True) -> Configuration:
    """The layout for ``m`` rows of the format ``form``: see "Layouts" in README.md."""
    if architecture == "interpret":  # it has no tl.dot_scaled
        return Configuration(16, 32, 32, 2, 4, 1, swapped=m <= 16, emulated=True)
    emulated = not scales_in_hardware(form, architecture)
    if not described or architecture.startswith("gfx"):  # elements may come one by one; 64 KiB of local memory
        rows, width, warps = (64, 64, 4) if emulated else (128, 128, 8)
        return Configuration(rows, 64, width, 8, warps, 2, emulated=emulated)
    if m <= 64:
        block_n, width = (64, 64) if emulated else (128, 128)
        stages = 3 if emulated else 4
        return Configuration(16 if m <= 16 else 64, block_n, width, 1, 4, stages, swapped=True, emulated=emulated)
    if architecture in {"sm_100", "sm_103", "sm_110"}:
        return Configuration(128, 256, 128, 8, 8, 4)
    if architecture == "sm_90":
        return HOPPER[form]
    return Configuration(64 if architecture == "sm_120" else 128, 128, 64, 8, 8, 3, emulated=emulated)


def scales_in_hardware(form: str, architecture: str) -> bool:
    """Whether the matrix units of ``architecture`` scale blocks, and Triton (3.6 to 3.7) compiles for it."""
    if architecture == "gfx950":
        return form != "nvfp4"
    return architecture in {"sm_100", "sm_103", "sm_110", "sm_120"}


@triton.jit
def _load_scales(scales, row, start_k, rows, groups, stride, ROWS: tl.constexpr, GROUPS: tl.constexpr):
    """The scales [ROWS, GROUPS] of a tile, from group ``start_k`` on; zero beyond [rows, groups]."""
    offs_m = row + tl.arange(0, ROWS)
    offs_k = start_k + tl.arange(0, GROUPS)
    inside = (offs_m < rows)[:, None] & (offs_k < groups)[None, :]
    # [ROWS, GROUPS]
    return tl.load(scales + offs_m.to(tl.int64)[:, None] * stride + offs_k[None, :], mask=inside, other=0.0)


@triton.jit
def _block_scaled_mm_kernel(
    a, b, scale_a, scale_b, scale, out, m, n, k, a_stride, b_stride, scale_a_stride, scale_b_stride, out_stride,
    ELEMENT: tl.constexpr, PACKED: tl.constexpr, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, SWAPPED: tl.constexpr, EMULATED: tl.constexpr, DTYPE: tl.constexpr,
    DESCRIBE: tl.constexpr,
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
        of_a = _load_scales(scale_a, row, step * groups, m, k // GROUP, scale_a_stride, BLOCK_M, groups)
        of_b = _load_scales(scale_b, column, step * groups, n, k // GROUP, scale_b_stride, BLOCK_N, groups)
        left, left_scale, right, right_scale = tile_a, of_a, tile_b, of_b
        if SWAPPED:
            left, left_scale, right, right_scale = tile_b, of_b, tile_a, of_a
        if EMULATED:
            acc = _dot(left, left_scale, right, right_scale, acc, BLOCK_K, PACKED, DTYPE)
        else:
            acc = tl.dot_scaled(left, left_scale, ELEMENT, right.T, right_scale, ELEMENT, acc)
    if SWAPPED:
        acc = acc.T
    if scale is not None:
        acc *= tl.load(scale)  # [1]
    _store_tile(out, acc, row, column, m, n, out_stride, False)


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
    require(out_dtype in {None, *OUTPUTS}, f"out_dtype must be {' or '.join(map(str, OUTPUTS))}, not {out_dtype}")
    out = a.new_empty((m, n), dtype=out_dtype or torch.bfloat16) if out is None else out
    check_rows("out", out, (m, n), (out_dtype,) if out_dtype else OUTPUTS, a)
    check_written("out", out)
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
    choice = configure(m, form.name, architecture().name, described=describe)
    width = choice.block_k
    block_k = width * form.packed
    _block_scaled_mm_kernel[(triton.cdiv(m, choice.block_m) * triton.cdiv(n, choice.block_n),)](
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
        EMULATED=choice.emulated,
        DTYPE=tl.float32 if architecture().backend == "interpret" else tl.bfloat16,
        DESCRIBE=describe,
        num_warps=choice.warps,
        num_stages=choice.stages,
    )
