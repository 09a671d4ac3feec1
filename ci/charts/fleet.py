"""The heat map of a fleet of simulated trays with seeded faults, as ``benchmarks/fleet.py`` makes and merges them."""

from __future__ import annotations

import json
from collections import defaultdict

from benchmarks.svg import text
from ci.charts.drawing import MARGIN, SIZE, WIDTH, Look, chart, grid, legend, top
from tests.support.synthetic_fleet import documents, make_fleet, seed_faults
from wheel_checks.facts.fleet.host_list import folded
from wheel_checks.model import HeatMap
from wheelproof.fleet.inputs import Document
from wheelproof.fleet.merging import merge
from wheelproof.reporting import Selection

_TRAYS, _FAULTS, _SEED = 288, 20, 1
_LOOKS = {
    "x": Look("bad", "on", "fails"),
    "?": Look("other", "on", "undecided"),
    "!": Look("bad", "on", "few have this"),
    "s": Look("fair", "ink", "slow"),
    ".": Look("track", "quiet", "neither"),
}


def draw() -> str:
    """The chart."""
    names = make_fleet(_TRAYS)
    faults = seed_faults(names, _FAULTS, _SEED)
    given = (Document(f"{host}.json", host, json.loads(data)) for host, _, data in documents(names, faults, _SEED))
    report = merge(given, names, Selection())
    tables = report.overview.tables if report.overview else ()
    (found,) = (table for table in tables if isinstance(table, HeatMap))
    about = (
        f"{_TRAYS} simulated GB200 trays with {_FAULTS} seeded faults (seed {_SEED}), as",
        "wheelproof report merge maps them: racks down, trays across.",
    )
    left = 92.0
    cell = ((WIDTH - MARGIN - left) / (len(found.columns) - 1), 28.0)
    rows = {f"rack {name}": [(sign, sign) for sign in signs] for name, *signs in found.rows}
    headings = [column.rpartition(" ")[2] for column in found.columns[1:]]
    cells, y = grid(rows, _LOOKS, left=left, y=top(about) + 4, cell=cell, headings=headings)
    used = {sign for _, *signs in found.rows for sign in signs if sign}
    entries, y = legend([(look, sign) for sign, look in _LOOKS.items() if sign in used], y + 12)
    body = [
        *cells,
        *entries,
        text(MARGIN, y + 14, "An empty place is a tray without a report.", size=SIZE, style="quiet"),
    ]
    hosts: dict[str, list[str]] = defaultdict(list)
    for (row, column), host in found.subjects.items():
        hosts[found.rows[row][column]].append(host)
    wrong = [f"{_LOOKS[sign].meaning}: {folded(hosts[sign], 99)}" for sign in _LOOKS if sign in used and sign != "."]
    return chart("A fleet by rack and tray", about, body, y + 34, f"{'; '.join(wrong)}; the others are like most.")
