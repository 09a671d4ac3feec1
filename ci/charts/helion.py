"""Geometric means against torch.compile, ours and those published by Helion's authors.

Drawn from the table of ``benchmarks/seeds.py`` in the pages of benchmarks.
"""

from __future__ import annotations

from benchmarks.svg import box, text
from ci.charts.drawing import BARS, MARGIN, SIZE, bar, chart, measured, table_in, top


def draw() -> str:
    """The chart."""
    page, date, gpu, software = measured("| Helion's on an H100 |")
    about = (f"{gpu}, {software}, {date}: times as fast as", "torch.compile, over shapes of the Qwen3 models.")
    rows = table_in(page, "kernel", "ours against torch.compile")
    means = {
        row["kernel"]: tuple(
            float(row[name].rstrip("x")) for name in ("ours against torch.compile", "Helion's on an H100")
        )
        for row in rows
    }
    most = max(max(pair) for pair in means.values())
    y, body = top(about) + 6, []
    for kernel, (ours, theirs) in means.items():
        body += bar(kernel, ours / most, f"{ours:.2f}x", y)
        body.append(box(MARGIN, y + 27, BARS * theirs / most, 5, "other", radius=1))
        y += 38
    body.append(box(MARGIN, y + 10, 40, 5, "other", radius=1))
    body.append(text(MARGIN + 52, y + 18, "Helion's kernels, as published for an H100", size=SIZE, style="quiet"))
    figures = "; ".join(f"{kernel}: {ours:.2f}, Helion's {theirs:.2f}" for kernel, (ours, theirs) in means.items())
    return chart("Ours and Helion's kernels", about, body, y + 36, f"{gpu}, {date}. {figures}.")
