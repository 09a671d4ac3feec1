"""The picture of a run's speeds: a roofline of computing kernels, and bars for kernels that only move bytes.

The roofline model: Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model" (2009). A
kernel of arithmetic intensity I (operations for each byte) runs at most at min(I * bandwidth, matrix rate).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.svg import box, dot, line, picture_of, text, turned

Record = Mapping[str, Any]

WIDTH = 1280.0
MARGIN = 40.0
PLOT_LEFT, PLOT_RIGHT = 104.0, 760.0  # of the roofline; its labels are in a column to the right
LABELS = 804.0
LABEL_STEP = 42.0  # two lines of a label and a gap
LONGEST = 61  # characters of a label for which there is room
BAR_LEFT, BAR_RIGHT = 480.0, 1010.0
ROW = 30.0


def picture(document: Record) -> str:
    """An SVG of the speeds in ``document`` (``kernels_smoke/1``); one with a note if it has none."""
    rates = document.get("calibration")
    timed = [speed for speed in document["speeds"] if speed.get("microseconds")]
    gpus = document["environment"].get("gpus") or []
    title = f"Speed of our kernels on {gpus[0]['name'] if gpus else 'no GPU'}"
    if not rates or not timed:
        body = [text(MARGIN, 56, title, size=24, bold=True), text(MARGIN, 88, "No speed was measured.", style="quiet")]
        return picture_of(WIDTH, 120, title, "No speed was measured.", body)
    body = [text(MARGIN, 56, title, size=24, bold=True), text(MARGIN, 84, _subtitle(document, rates), style="quiet")]
    top = 124.0
    computing = [speed for speed in timed if speed["flops"]]
    moving = [speed for speed in timed if not speed["flops"]]
    for speeds, panel in ((computing, _roofline), (moving, _bars)):
        if speeds:
            elements, top = panel(speeds, rates, top)
            body += elements
    elements, bottom = _legend(timed, top)
    return picture_of(WIDTH, bottom, title, _description(timed, rates), body + elements)


def _subtitle(document: Record, rates: Record) -> str:
    versions = [
        f"{name} {document['environment'][name]['version']}"
        for name in ("torch", "triton")
        if document["environment"].get(name)
    ]
    how = document.get("measured", "measured in this run")
    return " · ".join((f"{how}: {_measured(rates)}", *versions, document["started"][:10]))


def _measured(rates: Record) -> str:
    parts = [f"{rates['bandwidth'] / 1e12:.2f} TB/s"]
    parts += [f"{_tera(rates[unit])} TFLOP/s {unit}" for unit in ("bf16", "fp8") if rates.get(unit)]
    return ", ".join(parts)


def _description(timed: Sequence[Record], rates: Record) -> str:
    times = "; ".join(f"{speed['kernel']} {speed['case']}: {_time(speed['microseconds'])}" for speed in timed)
    return f"Roofline with {_measured(rates)}. {times}."


# The roofline


@dataclass(frozen=True)
class Axes:
    """Two logarithmic axes on the page: intensity from left to right, rate from bottom to top."""

    intensities: tuple[float, float]
    speeds: tuple[float, float]
    top: float
    bottom: float

    def x(self, intensity: float) -> float:
        """The horizontal position of an intensity."""
        return PLOT_LEFT + _share(intensity, self.intensities) * (PLOT_RIGHT - PLOT_LEFT)

    def y(self, speed: float) -> float:
        """The vertical position of a rate."""
        return self.bottom - _share(speed, self.speeds) * (self.bottom - self.top)


def _share(value: float, span: tuple[float, float]) -> float:
    low, high = span
    return math.log(value / low) / math.log(high / low)


def _roofline(speeds: Sequence[Record], rates: Record, top: float) -> tuple[list[str], float]:
    """The panel of the roofline and where it ends."""
    axes = _axes(speeds, rates, top + 40, top + 40 + max(380.0, LABEL_STEP * len(speeds)))
    heading = text(
        MARGIN, top + 12, "What computes: the rate, under the roof of memory and tensor cores", size=16, bold=True
    )
    elements = [heading, *_ticks(axes), *_roofs(rates, axes), *_points(speeds, axes)]
    return elements, axes.bottom + 92


def _axes(speeds: Sequence[Record], rates: Record, top: float, bottom: float) -> Axes:
    """Axes that include every point, and the ridges between the roofs of memory and tensor cores."""
    roofs = [rates[unit] for unit in ("bf16", "fp8") if rates.get(unit)]
    intensities = [speed["flops"] / speed["bytes"] for speed in speeds] + [roof / rates["bandwidth"] for roof in roofs]
    achieved = [_rate(speed) for speed in speeds]
    return Axes(
        (min(intensities) / 4, max(intensities) * 4),
        (min(*achieved, *roofs) / 4, max(*achieved, *roofs) * 2),
        top,
        bottom,
    )


def _ticks(axes: Axes) -> Iterator[str]:
    """Grid lines at 1, 2 and 5 of every power of ten, or at the powers alone if that is enough."""
    for value in _round_numbers(*axes.intensities):
        yield line([(axes.x(value), axes.top), (axes.x(value), axes.bottom)], "grid")
        yield text(axes.x(value), axes.bottom + 22, f"{value:,.10g}", anchor="middle", style="quiet")
    for value in _round_numbers(*axes.speeds):
        yield line([(PLOT_LEFT, axes.y(value)), (PLOT_RIGHT, axes.y(value))], "grid")
        yield text(PLOT_LEFT - 10, axes.y(value) + 4, _tera(value), anchor="end", style="quiet")
    yield line([(PLOT_LEFT, axes.top), (PLOT_LEFT, axes.bottom), (PLOT_RIGHT, axes.bottom)], "axis")
    centre = (PLOT_LEFT + PLOT_RIGHT) / 2
    yield text(centre, axes.bottom + 50, "arithmetic intensity, FLOP per byte", anchor="middle", style="quiet")
    yield turned(MARGIN + 8, (axes.top + axes.bottom) / 2, "rate, TFLOP/s")


def _round_numbers(low: float, high: float) -> list[float]:
    steps = (1, 2, 5) if math.log10(high / low) <= 3 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]


def _roofs(rates: Record, axes: Axes) -> Iterator[str]:
    """The slope of memory, and a level for each kind of matrix product. Labels are above, where no kernel can be."""
    bandwidth = rates["bandwidth"]
    roofs = [(unit, rates[unit]) for unit in ("bf16", "fp8") if rates.get(unit)]
    low = max(axes.intensities[0], axes.speeds[0] / bandwidth)
    high = max(roof for _, roof in roofs) / bandwidth
    slope = [(axes.x(each), axes.y(each * bandwidth)) for each in (low, high)]
    yield line(slope, "roof", width=2)
    angle = math.degrees(math.atan2(slope[1][1] - slope[0][1], slope[1][0] - slope[0][0]))
    knee = min(roof for _, roof in roofs) / bandwidth
    x, y = (slope[0][0] + axes.x(knee)) / 2, (slope[0][1] + axes.y(knee * bandwidth)) / 2
    yield (
        f'<g transform="translate({x:.1f} {y:.1f}) rotate({angle:.2f})">'
        f"{text(0, -10, f'memory, {bandwidth / 1e12:.2f} TB/s', anchor='middle', size=12)}</g>"
    )
    for unit, roof in roofs:
        yield line([(axes.x(roof / bandwidth), axes.y(roof)), (PLOT_RIGHT, axes.y(roof))], "roof", width=2)
        yield text(
            axes.x(roof / bandwidth) - 10, axes.y(roof) + 4, f"{unit}, {_tera(roof)} TFLOP/s", anchor="end", size=12
        )


def _points(speeds: Sequence[Record], axes: Axes) -> Iterator[str]:
    """Each kernel as a mark, and its label in the column to the right, at the mark's height if there is room."""
    ordered = sorted(speeds, key=lambda speed: -_rate(speed))
    places = [(axes.x(speed["flops"] / speed["bytes"]), axes.y(_rate(speed))) for speed in ordered]
    heights = spread([y for _, y in places], LABEL_STEP, axes.top + 10, axes.bottom - 20)
    for (x, y), height in zip(places, heights, strict=True):
        yield line([(x, y), (PLOT_RIGHT + 14, height), (LABELS - 8, height)], "lead")
    for speed, (x, y), height in zip(ordered, places, heights, strict=True):
        yield dot(x, y, _colour(speed), square=speed["outcome"] == "slow")
        figures = f"{_tera(_rate(speed))} TFLOP/s, {_figures(speed)}"
        yield text(LABELS, height, _label(speed), bold=True)
        yield text(LABELS, height + 17, figures, style="quiet", size=12)


def spread(heights: Sequence[float], step: float, top: float, bottom: float) -> list[float]:
    """``heights`` (ascending), moved as little as it takes for neighbours to be ``step`` apart."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + step if placed else top))
    lowest = bottom
    for index in reversed(range(len(placed))):
        placed[index] = max(min(placed[index], lowest), top + index * step)
        lowest = placed[index] - step
    return placed


# The bars


def _bars(speeds: Sequence[Record], rates: Record, top: float) -> tuple[list[str], float]:
    """The panel of the bars and where it ends."""
    first = top + 40
    bottom = first + ROW * len(speeds)
    furthest = max(1.1, *(_fraction(speed, rates) for speed in speeds))

    def place(fraction: float) -> float:
        return BAR_LEFT + (BAR_RIGHT - BAR_LEFT) * fraction / furthest

    elements = [text(MARGIN, top + 12, "What moves bytes: the part of the bandwidth", size=16, bold=True)]
    for percent in range(0, math.floor(100 * furthest) + 1, 20):
        elements.append(line([(place(percent / 100), first), (place(percent / 100), bottom)], "grid"))
        elements.append(text(place(percent / 100), bottom + 20, f"{percent} %", anchor="middle", style="quiet"))
    for row, speed in enumerate(speeds):
        elements += _bar(speed, rates, first + row * ROW, place)
    centre = (BAR_LEFT + BAR_RIGHT) / 2
    label = "bytes that must be moved, a second, as part of the bandwidth of a copy"
    elements.append(text(centre, bottom + 46, label, anchor="middle", style="quiet"))
    return elements, bottom + 88


def _bar(speed: Record, rates: Record, top: float, place: Any) -> Iterator[str]:
    middle = top + ROW / 2
    fraction = _fraction(speed, rates)
    wanted = _wanted(speed, rates)
    yield text(BAR_LEFT - 14, middle + 4, _label(speed), anchor="end")
    yield box(BAR_LEFT, middle - 9, place(1.0) - BAR_LEFT, 18, "track")
    yield box(BAR_LEFT, middle - 9, place(fraction) - BAR_LEFT, 18, _colour(speed))
    yield line([(place(wanted), middle - 13), (place(wanted), middle + 13)], "mark", width=2.5)
    yield text(BAR_RIGHT + 58, middle + 4, f"{100 * fraction:.0f} %", anchor="end", bold=True)
    yield text(BAR_RIGHT + 74, middle + 4, _figures(speed), style="quiet", size=12)


def _fraction(speed: Record, rates: Record) -> float:
    return float(speed["bytes"] / (speed["microseconds"] * 1e-6) / rates["bandwidth"])


def _wanted(speed: Record, rates: Record) -> float:
    """The part of the bandwidth at which the bar is just met."""
    reference = speed["peer_microseconds"] or speed["floor_microseconds"]
    return float(speed["bytes"] / (speed["bar"] * reference * 1e-6) / rates["bandwidth"])


# Both


def _legend(timed: Sequence[Record], top: float) -> tuple[list[str], float]:
    entries = [("good", False, "within its bar and the allowance for a measurement")]
    if any(speed["outcome"] == "slow" for speed in timed):
        entries.append(("bad", True, "slow"))
    x = MARGIN + 8
    elements = []
    for style, square, label in entries:
        elements += [dot(x, top, style, square=square), text(x + 16, top + 5, label, style="quiet")]
        x += 44 + 8.2 * len(label)
    if any(not speed["flops"] for speed in timed):
        elements += [
            line([(x, top - 9), (x, top + 9)], "mark", width=2.5),
            text(x + 14, top + 5, "the bar: what this kernel is to reach", style="quiet"),
        ]
    return elements, top + 36


def _colour(speed: Record) -> str:
    return "bad" if speed["outcome"] == "slow" else "good"


def _label(speed: Record) -> str:
    label = f"{speed['kernel']} · {speed['case']}"
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _figures(speed: Record) -> str:
    measured = _time(speed["microseconds"])
    if not speed["peer_microseconds"]:
        return measured
    return f"{measured}, {speed['peer_microseconds'] / speed['microseconds']:.2f}x the speed of {speed['versus']}"


def _rate(speed: Record) -> float:
    return float(speed["flops"] / (speed["microseconds"] * 1e-6))


def _tera(rate: float) -> str:
    return f"{float(f'{rate / 1e12:.3g}'):,.4g}"


def _time(microseconds: float) -> str:
    return f"{microseconds / 1000:.2f} ms" if microseconds >= 1000 else f"{microseconds:.3g} us"
