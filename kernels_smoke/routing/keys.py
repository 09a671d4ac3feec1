"""Values and their positions as one integer, so that a maximum finds both, and the first one of equal values."""

from __future__ import annotations

import triton
import triton.language as tl

_NONE_32 = tl.constexpr(-(2**31))  # less than the key of minus infinity
_NONE_64 = tl.constexpr(-(2**63))


@triton.jit
def _keys(x, o_n, inside, SHORT: tl.constexpr):
    """The keys of values ``x`` at positions ``o_n``; what is not ``inside`` has the least key of all.

    The bits of a positive number grow with it; those of a negative one, but for the sign, are inverted. Zeros are
    equal. ``SHORT``: 16 bits of each, for 16-bit values; otherwise 32 bits of a float32 and as many of its position.
    """
    x = tl.where(x == 0, 0.0, x).to(x.dtype)
    if SHORT:
        bits = x.to(tl.int16, bitcast=True)
        ordered = (bits ^ ((bits >> 15) & 0x7FFF)).to(tl.int32)
        made = tl.where(inside, (ordered << 16) | (0xFFFF - o_n), _NONE_32)
    else:
        bits = x.to(tl.float32).to(tl.int32, bitcast=True)
        ordered = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64)
        made = tl.where(inside, (ordered << 32) | (0x7FFFFFFF - o_n).to(tl.int64), _NONE_64)
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
        ordered = (keys >> 16).to(tl.int16)
        value = (ordered ^ ((ordered >> 15) & 0x7FFF)).to(DTYPE, bitcast=True).to(tl.float32)
    else:
        ordered = (keys >> 32).to(tl.int32)
        value = (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    return value
