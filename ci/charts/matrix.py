"""A matrix of platforms and Pythons by torch: the result of `wheelproof verify --expect cuda` for each cell's wheel.

``record()`` asks the package index, and writes the answers to matrix.json, from which the chart is drawn.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

from ci.charts.asking import verify
from ci.charts.drawing import MARGIN, WIDTH, Look, chart, grid, legend, top

DATA = Path(__file__).with_suffix(".json")
_TORCH = ("2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
_PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
_PLATFORMS = ("x86_64", "aarch64")
_LOOKS = {
    "pass": Look("fair", "ink", "the CUDA it is built for"),
    "fail": Look("bad", "on", "a CPU build"),
    "none": Look("track", "quiet", "no wheel"),
}


def record() -> None:
    """Query each cell, and record the accelerator of its wheel ("" without a wheel)."""
    cells, date = [], ""
    for platform, python, torch in product(_PLATFORMS, _PYTHONS, _TORCH):
        report = verify(f"torch=={torch}", "--platform", platform, "--python", python, "--expect", "cuda")
        subject = max(report["subjects"], key=lambda subject: subject["kind"] == "wheel")
        cells.append({"platform": platform, "python": python, "torch": torch} | _answer(subject))
        date = report["started"][:10]
    DATA.write_text(json.dumps({"date": date, "cells": cells}, indent=1) + "\n", encoding="utf-8")


def _answer(subject: dict[str, Any]) -> dict[str, str]:
    facts = subject["facts"]
    return {"built": facts.get("cuda") or facts.get("accelerator") or "", "verdict": subject["verdict"]}


def draw() -> str:
    """The chart."""
    run: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    rows: dict[str, list[tuple[str, str]]] = {}
    counts = Counter[str]()
    for cell in run["cells"]:
        state = cell["verdict"] if cell["built"] else "none"
        counts[state] += 1
        label = {"fail": "CPU", "none": "-"}.get(state, cell["built"])
        rows.setdefault(f"{cell['platform']} {cell['python']}", []).append((state, label))
    about = (
        "By platform, Python, and newest patch release of a torch:",
        f"what verify --expect cuda finds in its wheel, {run['date']}.",
    )
    left = 136.0
    cell = ((WIDTH - MARGIN - left) / len(_TORCH), 30.0)
    headings = [version.rpartition(".")[0] for version in _TORCH]
    body, y = grid(rows, _LOOKS, left=left, y=top(about) + 6, cell=cell, headings=headings)
    signs = {"pass": "13", "fail": "C", "none": "-"}
    entries, y = legend([(look, signs[state]) for state, look in _LOOKS.items()], y + 12)
    by_row = {name: zip(headings, cells, strict=True) for name, cells in rows.items()}
    listed = "; ".join(
        f"{name}: {', '.join(f'{v} {label}' for v, (_, label) in cells)}" for name, cells in by_row.items()
    )
    total = ", ".join(f"{counts[state]} {look.meaning}" for state, look in _LOOKS.items())
    return chart("Who gets CUDA", about, [*body, *entries], y + 6, f"{total}. {listed}.")
