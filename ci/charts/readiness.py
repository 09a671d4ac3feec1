"""Readiness of packages by GPU: how many have code for it, and packages that are not ready everywhere.

Drawn from the tables of docs/readiness.md, which ci/readiness.py makes.
"""

from __future__ import annotations

import re
from collections import Counter

from benchmarks.svg import box, text
from ci.charts.drawing import DOCS, MARGIN, SIZE, WIDTH, Look, chart, grid, legend, table_in, top

_GPUS = {"x86_64": ("H100", "B200"), "aarch64": ("GH200", "GB200")}
_LOOKS = {
    "yes": Look("good", "on", "machine code"),
    "by PTX": Look("fair", "ink", "PTX only"),
    "unknown": Look("other", "on", "not known"),
    "no": Look("bad", "on", "no code"),
}
_SIGNS = {"yes": "✓", "by PTX": "P", "unknown": "?", "no": "✗"}
_COLUMN, _ROW, _LEFT = 62.0, 28.0, WIDTH - 4 * 62.0 - MARGIN


def draw() -> str:
    """The chart."""
    page = (DOCS / "readiness.md").read_text(encoding="utf-8")
    runs = _runs(page)
    date = re.findall(r"releases on (\d{4}-\d\d-\d\d)", page)[0]
    gpus = [gpu for names in _GPUS.values() for gpu in names]
    about = (
        f"Newest releases on {date}, of {len(runs)} packages, CPython 3.12.",
        "Counted: packages whose wheel has code for a GPU of NVIDIA.",
    )
    y, body, figures = top(about) + 6, [], []
    most = max(sum(bool(by_gpu.get(gpu)) for by_gpu in runs.values()) for gpu in gpus)
    for gpu in gpus:
        counts = Counter(by_gpu[gpu] for by_gpu in runs.values() if by_gpu.get(gpu))
        body += _bar(gpu, counts, most, y)
        figures.append(f"{gpu}: " + ", ".join(f"{counts[state]} {_LOOKS[state].meaning}" for state in _LOOKS))
        y += 38
    entries, y = legend([(look, _SIGNS[state]) for state, look in _LOOKS.items()], y + 4)
    body += entries
    behind = {name: by_gpu for name, by_gpu in runs.items() if set(by_gpu.values()) - {"yes", ""}}
    body.append(text(MARGIN, y + 26, "Not machine code for each of them", size=SIZE, bold=True))
    rows = {name: [(s := by_gpu.get(gpu, ""), _SIGNS.get(s, "")) for gpu in gpus] for name, by_gpu in behind.items()}
    cells, y = grid(rows, _LOOKS, left=_LEFT, y=y + 40, cell=(_COLUMN, _ROW), headings=gpus)
    body += cells
    listed = "; ".join(f"{name}: {', '.join(f'{g} {s}' for g, s in by.items() if s)}" for name, by in behind.items())
    return chart("Code for your GPU", about, body, y + 16, f"{'; '.join(figures)}. Behind: {listed}.")


def _runs(page: str) -> dict[str, dict[str, str]]:
    """The state of each package's wheel for each GPU ("yes", "by PTX", "no", "unknown"; "" for no GPU code)."""
    runs: dict[str, dict[str, str]] = {}
    for machine, gpus in _GPUS.items():
        section = page.partition(f"\n## {machine}\n")[2]
        for row in table_in(section, "package", "version", "accelerator", *gpus):
            runs.setdefault(row["package"], {}).update({gpu: row[gpu] for gpu in gpus})
    return runs


def _bar(gpu: str, counts: Counter[str], most: int, y: float) -> list[str]:
    """The counts as one bar, each part as wide as it is large, with its number if there is room for it.

    A bar of ``most`` packages is as wide as the chart.
    """
    left, width = 84.0, WIDTH - MARGIN - 84.0
    elements = [text(left - 8, y + 21, gpu, size=SIZE, anchor="end", bold=True)]
    x = left
    for state, look in _LOOKS.items():
        part = width * counts[state] / most
        if counts[state]:
            elements.append(box(x, y, part - 2, 30, look.fill))
            if part > 20:
                elements.append(
                    text(x + part / 2 - 1, y + 21, str(counts[state]), size=SIZE, anchor="middle", style=look.ink)
                )
        x += part
    return elements
