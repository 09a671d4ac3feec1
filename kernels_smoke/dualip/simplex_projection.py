"""The nearest point of a simplex for each of many ragged segments."""

import torch
import triton
import triton.language as tl

from kernels_smoke.dualip.segments import (
    COMMON,
    Configuration,
    Segments,
    _elements,
    _sum,
    _tile,
    check_segments,
    layout,
)
from kernels_smoke.launch import check_rows, check_scale, interpreted, on_device_of, require
from kernels_smoke.launch_plan import allocated, launch, plannable

LONGEST = 16384  # elements of a segment: one program holds whole segments in registers


def configure(length: int) -> Configuration:
    """The layout for segments of at most ``length``: see "Layouts" in README.md."""
    if length <= COMMON and not interpreted():
        return Configuration(length, lanes=min(length, 2), segments=16, warps=1)
    return layout(length, most=LONGEST, steps=4, together=2)


@triton.jit(do_not_specialize=["first", "count"])
def _simplex_projection_kernel(
    values, offsets, order, out, first, count, radius,
    EQUALITY: tl.constexpr, LENGTH: tl.constexpr, LANES: tl.constexpr, SEGMENTS: tl.constexpr,
    EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    _, _, begin, length = _tile(offsets, order, first, count, SEGMENTS)
    element = _elements(LENGTH, LANES)
    inside = element < length[None, :, None]
    where = tl.max_contiguous(begin[None, :, None] + element, [1, 2, LANES])
    # [steps, SEGMENTS, LANES]
    value = tl.load(values + where, mask=inside, other=float("-inf"), eviction_policy=EVICTION)

    # Measured from the greatest value, what stays above the threshold is exact, however large the values are.
    v_max = tl.where(length > 0, tl.max(tl.max(value, axis=0), axis=1), 0.0)  # [SEGMENTS]
    below = tl.maximum(value - v_max[None, :, None], -2.0 * radius)  # finite, and what is cut off does not count
    # Newton's method for sum(max(below - threshold, 0)) = radius, from the left: the set of elements above the
    # threshold only shrinks, and once it stays, the threshold is that of the projection.
    threshold = tl.zeros_like(v_max) - radius
    above = (below > threshold[None, :, None]).to(tl.float32)
    support = _sum(above)  # [SEGMENTS]
    shrinking = 1
    while shrinking > 0:
        next_threshold = (_sum(above * below) - radius) / tl.maximum(support, 1.0)
        threshold = tl.maximum(threshold, next_threshold)
        above = (below > threshold[None, :, None]).to(tl.float32)
        next_support = _sum(above)  # [SEGMENTS]
        shrinking = tl.max((next_support < support).to(tl.int32), axis=0)
        support = next_support
    if not EQUALITY:  # what is inside the simplex stays there: its threshold is not above zero
        outside = v_max + threshold > 0.0
        v_max = tl.where(outside, v_max, 0.0)
        threshold = tl.where(outside, threshold, 0.0)
    projected = tl.maximum((value - v_max[None, :, None]) - threshold[None, :, None], 0.0)
    tl.store(out + where, projected, mask=inside)


@plannable
def simplex_projection(
    values: torch.Tensor,
    segments: Segments,
    *,
    radius: float = 1.0,
    equality: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the Euclidean projection of each segment of ``values`` onto ``{x >= 0, sum(x) <= radius}``.

    With ``equality``, onto ``{x >= 0, sum(x) = radius}``. The projection is ``max(v - t, 0)`` with the threshold t that
    makes the sum right (Held, Wolfe and Crowder 1974), found by the method of Michelot (1986), without sorting; it is
    ``max(v, 0)`` where that sums up to no more than the radius and need not reach it.

    - ``values``: [elements], float32, finite, contiguous. ``segments`` cover it; none is longer than 16,384.
    - ``out``: the result, [elements], float32; it may be ``values``. Its error is some 1e-7 of the radius.

    Raises ValueError when a shape, dtype, device or length is not as said, or the radius is not positive.
    """
    check_rows("values", values, (segments.elements,), (torch.float32,), values)
    check_segments("segments", segments, values)
    check_scale(radius, "radius")
    require(segments.longest <= LONGEST, f"a segment has more than {LONGEST} elements")
    out = allocated(torch.empty_like(values)) if out is None else out
    check_rows("out", out, (segments.elements,), (torch.float32,), values)
    with on_device_of(values):
        for members in segments.classes if segments.elements else ():
            choice = configure(members.length)
            launch(
                _simplex_projection_kernel,
                (triton.cdiv(members.count, choice.segments),),
                values=values,
                offsets=segments.offsets,
                order=segments.order if len(segments.classes) > 1 else None,
                out=out,
                first=members.first,
                count=members.count,
                radius=radius,
                EQUALITY=equality,
                LENGTH=choice.length,
                LANES=choice.lanes,
                SEGMENTS=choice.segments,
                EVICTION=choice.eviction,
                num_warps=choice.warps,
            )
    return out
