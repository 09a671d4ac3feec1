"""What ``tl.dot_scaled`` does, where it is lacking: elements are scaled in 16 bits, which is exact, and multiplied."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _dequantize(stored, scales, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PACKED: tl.constexpr, DTYPE: tl.constexpr):
    """Elements times their scales [ROWS, COLUMNS] in DTYPE, from stored elements and scales as they are in memory."""
    if PACKED == 2:
        codes = tl.join(stored & 15, stored >> 4).reshape(ROWS, COLUMNS).to(tl.int32)
        # The three lower bits are where float32 has the last of its exponent and the first of its mantissa: 2^126 too
        # small, subnormal numbers included.
        bits = ((codes & 8) << 28) | ((codes & 7) << 22)
        values = bits.to(tl.float32, bitcast=True) * 8.507059173023462e37
    else:
        values = stored.to(tl.float32)
    # A scale of one byte that is no float is E8M0.
    factor = tl.exp2(scales.to(tl.float32) - 127.0) if scales.dtype == tl.uint8 else scales.to(tl.float32)
    group: tl.constexpr = COLUMNS // scales.shape[1]
    grouped = values.reshape(ROWS, COLUMNS // group, group) * factor[:, :, None]
    return grouped.reshape(ROWS, COLUMNS).to(DTYPE)


@triton.jit
def _dot(left, left_scale, right, right_scale, acc, BLOCK_K: tl.constexpr, PACKED: tl.constexpr, DTYPE: tl.constexpr):
    """``acc + left @ right.T`` [rows of left, rows of right] of scaled elements."""
    left = _dequantize(left, left_scale, left.shape[0], BLOCK_K, PACKED, DTYPE)
    right = _dequantize(right, right_scale, right.shape[0], BLOCK_K, PACKED, DTYPE)
    return tl.dot(left, right.T, acc, input_precision="ieee")
