"""SwiGLU and quantisation to fp8 with one scale for each row: a row is read once and its products stay in registers."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import on_device_of, require
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.quantization.activation import _silu_and_mul
from kernels_smoke.quantization.layout import Configuration, check_bound, check_matrix, check_width, results
from kernels_smoke.quantization.scaling import LEAST_SCALE, _quotients, _row_scale


def configure(width: int) -> Configuration:
    """The layout for ``width`` products a row: 48 a thread when there are 12288, and four programs fit at once."""
    return Configuration(warps=min(max(triton.next_power_of_2(width) // 2048, 1), 16))


@triton.jit
def _silu_and_mul_dynamic_per_token_quant_kernel(
    x_pointer, codes_pointer, scales_pointer, bound_pointer,
    x_stride, codes_stride, scales_stride, width,
    LEAST: tl.constexpr, HEAD: tl.constexpr, TAIL: tl.constexpr, VECTOR: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # A row is HEAD columns and up to TAIL more, both powers of two: 12288 is 8192 and 4096, where in one block of 16384
    # a quarter would be idle.
    head = tl.max_contiguous(tl.arange(0, HEAD), VECTOR)
    tail = HEAD + tl.arange(0, TAIL)
    inside = tail < width
    row = tl.program_id(0).to(tl.int64)
    gates = x_pointer + row * x_stride
    ups = gates + width
    # [HEAD]
    head_gate = tl.load(gates + head, eviction_policy=EVICTION)  # all loads are under way before the first is used
    head_up = tl.load(ups + head, eviction_policy=EVICTION)  # [HEAD]
    tail_gate = tl.load(gates + tail, mask=inside, other=0.0, eviction_policy=EVICTION)  # [TAIL]
    tail_up = tl.load(ups + tail, mask=inside, other=0.0, eviction_policy=EVICTION)  # [TAIL]
    head_product = _silu_and_mul(head_gate, head_up)
    tail_product = _silu_and_mul(tail_gate, tail_up)

    absmax = tl.maximum(tl.max(tl.abs(head_product)), tl.max(tl.abs(tail_product)))  # [1]
    scale = _row_scale(absmax, bound_pointer, LEAST)
    tl.store(scales_pointer + row * scales_stride, scale)
    codes = codes_pointer + row * codes_stride
    tl.store(codes + head, _quotients(head_product, scale).to(codes_pointer.dtype.element_ty))
    tl.store(codes + tail, _quotients(tail_product, scale).to(codes_pointer.dtype.element_ty), mask=inside)


@plannable
def silu_and_mul_dynamic_per_token_quant(
    x: torch.Tensor,
    *,
    scale_upper_bound: torch.Tensor | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(codes, scales)`` of ``silu(gate) * up``, where ``gate`` and ``up`` are the halves of the rows of ``x``.

    ``Y = gate / (1 + exp(-gate)) * up`` (SwiGLU: Shazeer, "GLU Variants Improve Transformer", 2020, equation 6), which
    is quantised in float32, without being rounded in between: ``scale = max(max |Y| / 448, 1 / (448 * 512))`` for each
    row and ``codes = e4m3(clamp(Y * (1 / scale), -448, 448))``. Semantics: vLLM's operator of this name.

    - ``x``: [rows, 2 width], bfloat16, float16 or float32; rows may be strided. Finite; a product beyond float32
      saturates and counts as the greatest float32, and gates below -88 count as zero.
    - ``scale_upper_bound``: one float32 on the device of ``x``. A row's greatest magnitude counts as at most this, and
      what is beyond saturates.
    - ``out``: codes [rows, width], float8_e4m3fn, rows may be strided; scales [rows, 1], float32. New ones when None.

    Raises ValueError when a shape, dtype, device or stride is not as said, or there are more than 32,768 products a
    row.
    """
    check_matrix(x)
    rows, both = x.shape
    require(both % 2 == 0, f"a row of x is two halves, and {both} is odd")
    width = both // 2
    check_width(width)
    check_bound(scale_upper_bound, x)
    codes, scales = results(out, x, width=width)
    if rows:
        configuration = configure(width)
        head = max(triton.next_power_of_2(width) // 2, 1)
        with on_device_of(x):
            launch(
                _silu_and_mul_dynamic_per_token_quant_kernel,
                (rows,),
                x_pointer=x,
                codes_pointer=codes,
                scales_pointer=scales,
                bound_pointer=scale_upper_bound,
                x_stride=x.stride(0),
                codes_stride=codes.stride(0),
                scales_stride=scales.stride(0),
                width=width,
                LEAST=LEAST_SCALE,
                HEAD=head,
                TAIL=triton.next_power_of_2(max(width - head, 1)),
                VECTOR=min(configuration.vector, head),
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return codes, scales
