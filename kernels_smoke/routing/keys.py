"""Values and their positions as one integer, so that a maximum finds both, and the first one of equal values."""

import triton
import triton.language as tl

_NONE_32 = tl.constexpr(-(2**31))  # less than the key of minus infinity
_NONE_64 = tl.constexpr(-(2**63))


@triton.jit
def _keys(x, o_n, SHORT: tl.constexpr):
    """The keys of values ``x`` at positions ``o_n``.

    What is behind a row, as minus infinity, has keys behind those of minus infinity in the row. The bits of a positive
    number grow with it; those of a negative one, but for the sign, are negated, so that zeros are equal. ``SHORT``: 16
    bits of each, for 16-bit values; otherwise 32 bits of a float32 and as many of its position.
    """
    if SHORT:
        bits = x.to(tl.int16, bitcast=True).to(tl.int32) << 16
        sign = bits >> 31
        made = ((bits & 0x7FFF0000) ^ sign) - sign + (0xFFFF - o_n)
    else:
        bits = x.to(tl.float32).to(tl.int32, bitcast=True)
        sign = bits >> 31
        ordered = ((bits & 0x7FFFFFFF) ^ sign) - sign
        made = (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - o_n)
    return made


@triton.jit
def _without(keys, taken, SHORT: tl.constexpr):
    """``keys`` less those that are ``taken``."""
    return tl.where(keys == taken, _NONE_32 if SHORT else _NONE_64, keys)


@triton.jit
def _position(keys, SHORT: tl.constexpr):
    """The positions of ``keys``, int32."""
    return 0xFFFF - (keys & 0xFFFF) if SHORT else (0x7FFFFFFF - (keys & 0x7FFFFFFF)).to(tl.int32)


@triton.jit
def _value(keys, DTYPE: tl.constexpr, SHORT: tl.constexpr):
    """The values of ``keys``, which were of ``DTYPE``, as float32."""
    if SHORT:
        ordered = keys >> 16
        sign = ordered >> 31
        bits = ((ordered ^ sign) - sign) | (sign & 0x8000)
        value = bits.to(tl.int16).to(DTYPE, bitcast=True).to(tl.float32)
    else:
        ordered = (keys >> 32).to(tl.int32)
        sign = ordered >> 31
        value = (((ordered ^ sign) - sign) | (sign & -0x80000000)).to(tl.float32, bitcast=True)
    return value
