"""Our kernels next to their roof: their share of the rates of memory and tensor cores.

Drawn from the table of measured times in the pages of benchmarks, above which its device and date are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.svg import box, line, text
from ci.charts.drawing import BARS, MARGIN, SIZE, bar, chart, measured, table_in, top

_ROW = 34.0


class Timed(NamedTuple):
    """A kernel at a shape: its time and its floor in microseconds, and the time of the fastest other implementation."""

    label: str
    ours: float
    floor: float
    peer: float | None

    @property
    def share(self) -> float:
        """The part of the roof that is reached."""
        return self.floor / self.ours


def draw() -> str:
    """The chart."""
    page, date, gpu, software = measured("| ours / floor |")
    timed = sorted(_timed(page), key=lambda one: -one.share)
    about = (f"{gpu}, {software}, {date}.", "At 100 %, it is as fast as memory and tensor cores allow.")
    y, scale = top(about) + 8, 1 / max(1.0, timed[0].share)
    body: list[str] = []
    for one in timed:
        body += bar(one.label, one.share * scale, f"{100 * one.share:.0f} %", y, track=scale)
        if one.peer:
            body.append(box(MARGIN, y + 27, BARS * min(one.floor / one.peer * scale, 1), 5, "other", radius=1))
        y += _ROW
    roof = MARGIN + BARS * scale
    body.append(line([(roof, top(about)), (roof, y)], "mark", width=2, dashes="5 4"))
    body.append(box(MARGIN, y + 18, 40, 5, "other", radius=1))
    body.append(
        text(MARGIN + 52, y + 26, "the fastest other implementation that was measured", size=SIZE, style="quiet")
    )
    figures = "; ".join(f"{one.label}: {100 * one.share:.0f} %" for one in timed)
    return chart("Kernels next to their roof", about, body, y + 44, f"{gpu}, {date}. {figures}.")


def _timed(page: str) -> Iterator[Timed]:
    for row in table_in(page, "kernel", "shape", "ours, us"):
        others = [row["torch.compile, us"], row["best peer"]]
        peers = [float(found[-1]) for other in others if (found := re.findall(r"([\d.]+) \(", other))]
        label = f"{row['kernel']} · {row['shape']}"
        yield Timed(label, float(row["ours, us"]), float(row["floor, us"]), min(peers, default=None))
