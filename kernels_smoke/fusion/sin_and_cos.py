"""Horizontal fusion: two functions of one input, which is read once, and whose range is reduced once."""

import math

import torch
import triton
import triton.language as tl

from kernels_smoke.fusion.pointwise import Configuration, _place, as_rows, programs
from kernels_smoke.launch import on_device_of
from kernels_smoke.launch_plan import allocated, launch, plannable

# A quarter turn in three parts (Cody and Waite, "Software Manual for the Elementary Functions", 1980). The first two
# have 11 bits: with a whole number of less than 13 bits, their products are exact in the 24 bits of float32.
_PART_1 = tl.constexpr(1608 / 2**10)
_PART_2 = tl.constexpr(2029 / 2**22)
_PART_3 = tl.constexpr(math.pi / 2 - 1608 / 2**10 - 2029 / 2**22)
_QUARTERS = tl.constexpr(2 / math.pi)  # how many quarter turns there are in 1
_LARGEST = tl.constexpr((2**13 - 1) * math.pi / 2)


def configure() -> Configuration:
    """The layout: 8 elements a thread, because the library's functions need many registers for each."""
    return Configuration(block=1024, warps=4)


@triton.jit
def _sin_and_cos(x):
    """Sine and cosine of float32 arguments whose absolute value is at most ``_LARGEST``.

    The argument less whole quarter turns is between -pi / 4 and pi / 4, where Taylor's series need few terms: the
    first that is omitted is 2e-9 for the sine, 3e-8 for the cosine.
    """
    quarters = tl.floor(x * _QUARTERS + 0.5)
    angle = ((x - quarters * _PART_1) - quarters * _PART_2) - quarters * _PART_3
    square = angle * angle
    sine = angle + angle * square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square * (1 / 362880))))
    cosine = 1.0 + square * (-1 / 2 + square * (1 / 24 + square * (-1 / 720 + square * (1 / 40320))))
    quadrant = quarters.to(tl.int32)
    odd = (quadrant & 1) != 0
    first = tl.where(odd, cosine, sine)
    second = tl.where(odd, sine, cosine)
    return tl.where((quadrant & 2) != 0, -first, first), tl.where(((quadrant + 1) & 2) != 0, -second, second)


@triton.jit
def _sin_and_cos_kernel(
    x_pointer, sine_pointer, cosine_pointer,
    x_stride, sine_stride, cosine_stride, width,
    BLOCK: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    row, columns = _place(width, BLOCK)
    mask = columns < width
    # [BLOCK]
    x = tl.load(x_pointer + row * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION).to(tl.float32)
    if tl.max(tl.abs(x), axis=0) <= _LARGEST:
        sine, cosine = _sin_and_cos(x)
    else:  # the library's functions take all arguments, and twice the time
        sine, cosine = tl.sin(x), tl.cos(x)
    tl.store(sine_pointer + row * sine_stride + columns, sine.to(sine_pointer.dtype.element_ty), mask=mask)
    tl.store(cosine_pointer + row * cosine_stride + columns, cosine.to(cosine_pointer.dtype.element_ty), mask=mask)


@plannable
def sin_and_cos(
    x: torch.Tensor, *, out: tuple[torch.Tensor, torch.Tensor] | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(sin(x), cos(x))`` for each element (radians), computed in float32, right for arguments of any size.

    - ``x``: bfloat16, float16 or float32; contiguous, or [rows, width] with rows that are contiguous, and strided.
      There may be more than 2^31 elements.
    - ``out``: the two results, of the shape and dtype of ``x``.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    sine, cosine = out or (allocated(torch.empty_like(x, memory_format=torch.contiguous_format)) for _ in range(2))
    x_rows, sine_rows, cosine_rows = as_rows({"x": x, "out[0]": sine, "out[1]": cosine})
    if x.numel():
        configuration = configure()
        with on_device_of(x):
            launch(
                _sin_and_cos_kernel,
                (programs(x_rows, configuration.block),),
                x_pointer=x_rows,
                sine_pointer=sine_rows,
                cosine_pointer=cosine_rows,
                x_stride=x_rows.stride(0),
                sine_stride=sine_rows.stride(0),
                cosine_stride=cosine_rows.stride(0),
                width=x_rows.shape[1],
                BLOCK=configuration.block,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return sine, cosine
