"""From a greatest magnitude to a scale, and from values to quotients: device functions that the kernels share."""

import triton
import triton.language as tl

from kernels_smoke.launch import FP8_MAX

# The least scales, which keep rows and groups of zeros from being divided by zero. They are those of vLLM's operators.
LEAST_SCALE = 1 / (FP8_MAX * 512)
LEAST_GROUP_SCALE = 1e-10 / FP8_MAX
LEAST_UE8M0_SCALE = LEAST_SILU_GROUP_SCALE = 1e-10

# Constants are in the functions that use them (448 is FP8_MAX). Were they global, then before Triton 3.9 the key of a
# kernel in Triton's cache would depend on which kernels the process had met before: what was compiled ahead of time
# would not be found again.


@triton.jit
def _scale(absmax, LEAST: tl.constexpr):
    # Infinity counts as the greatest finite number: it saturates, and what is next to it stays finite.
    float32_max: tl.constexpr = 3.4028234663852886e38
    return tl.maximum(tl.div_rn(tl.minimum(absmax, float32_max), 448.0), LEAST)


@triton.jit
def _row_scale(absmax, bound_pointer, LEAST: tl.constexpr):
    if bound_pointer is not None:
        absmax = tl.minimum(absmax, tl.load(bound_pointer))  # bound: [1]
    return _scale(absmax, LEAST)


@triton.jit
def _power_of_two(scale):
    # 2^ceil(log2 scale) from the bits, because a rounded logarithm can be an integer where the true one is not: any
    # mantissa (the last 23 bits) but zero carries one into the exponent. Right for positive normal numbers below 2^127.
    bits = scale.to(tl.int32, bitcast=True)
    return (((bits + 0x7FFFFF) >> 23) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _quotients(values, scale):
    # One exact division for a row or group, one multiplication for each value.
    return tl.clamp(values * tl.div_rn(1.0, scale), -448.0, 448.0)
