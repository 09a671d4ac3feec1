"""The documents' experiments, measured again: how many times as fast as its baseline the fastest variants are.

Drawn from the tables of ``benchmarks/seeds.py`` in the pages of benchmarks.
"""

from __future__ import annotations

import re
from textwrap import wrap

from benchmarks.svg import text
from ci.charts.drawing import LONGEST, MARGIN, SIZE, bar, chart, measured, table_in, top

_COLUMN = "times as fast as the baseline"
_SERIES = re.compile(r"% decoding$|sparsity [\d.]+$")  # rows of one figure of a document: in the tables alone


def draw() -> str:
    """The chart."""
    page, date, gpu, software = measured(f"| variant | us | {_COLUMN} |")
    about = (f"{gpu}, {software}, {date}: times as fast as", "the baseline of each experiment.")
    y, body, figures = top(about), [], []
    for part in re.split(r"^#+ ", page, flags=re.MULTILINE)[1:]:
        name = part.partition("\n")[0].strip()
        rows = _fastest([row for row in table_in(part, "variant", "us", _COLUMN) if row[_COLUMN] != "-"])
        if not rows or _SERIES.search(name):
            continue
        for line in wrap(name, LONGEST):
            body.append(text(MARGIN, y + 22, line, size=SIZE, bold=True))
            y += 22
        y += 10
        speeds = {
            row["variant"]: 1.0 if row[_COLUMN] == "baseline" else float(row[_COLUMN].rstrip("x")) for row in rows
        }
        for row in rows:
            variant, speed = row["variant"], speeds[row["variant"]]
            label, style = (f"{variant} (baseline)", "base") if row[_COLUMN] == "baseline" else (variant, "fair")
            body += bar(label, speed / max(speeds.values()), f"{speed:.2f}x", y, style=style)
            y += 29
        figures.append(f"{name}: " + ", ".join(f"{variant} {speed:.2f}" for variant, speed in speeds.items()))
        y += 10
    return chart("Experiments, measured again", about, body, y + 8, f"{gpu}, {date}. {'; '.join(figures)}.")


def _fastest(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The baseline and the two fastest of the others, in table order."""
    others = [row for row in rows if row[_COLUMN] != "baseline"]
    kept = sorted(others, key=lambda row: -float(row[_COLUMN].rstrip("x")))[:2]
    return [row for row in rows if row[_COLUMN] == "baseline" or row in kept]
