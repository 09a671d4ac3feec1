"""How a wheel is read: which bytes of torch for aarch64 `wheelproof verify` asks for, from a real run by ranges.

``record()`` queries the package index, and writes wheel.json, from which the chart is drawn.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.svg import box, text
from ci.charts.asking import verify
from ci.charts.drawing import MARGIN, SIZE, WIDTH, chart, top
from wheel_checks.formats.zip.directory import DirectoryFault, EndRecord, Member, read_directory
from wheel_checks.sources.http.ranges import parse_content_range

DATA = Path(__file__).with_suffix(".json")
_QUESTION = ("torch==2.11.0", "--platform", "aarch64", "--python", "3.12", "--expect", "cuda", "--no-cache")
_DIRECTORY = "the directory of the archive"
_COLUMNS, _MB = 24, 1_000_000


def record() -> None:
    """Run the command, and keep the ranges that the server sent of the wheel, and whose bytes these are."""
    ranges: list[tuple[int, int, int]] = []
    places: list[tuple[int, str]] = []

    def noted_range(header: str) -> tuple[int, int, int | None] | None:
        if (found := parse_content_range(header)) and found[2]:
            ranges.append((found[0], found[1] + 1, found[2]))
        return found

    def noted_directory(data: bytes, end: EndRecord) -> tuple[tuple[Member, ...], tuple[DirectoryFault, ...]]:
        members, faults = read_directory(data, end)
        places.extend((member.header_offset, member.name) for member in members)
        places.append((end.directory_offset, _DIRECTORY))
        return members, faults

    with (
        patch("wheel_checks.sources.http.file.parse_content_range", noted_range),
        patch("wheel_checks.facts.archive.reading.read_directory", noted_directory),
    ):
        report = verify(*_QUESTION)
    size = max(size for _, _, size in ranges)
    places.sort()
    document = {
        "command": " ".join(("wheelproof verify", *_QUESTION)),
        "date": report["started"][:10],
        "wheel": report["subjects"][0]["id"],
        "size": size,
        "ranges": [
            {"start": start, "end": end, "of": places[bisect_right(places, (start, "\uffff")) - 1][1]}
            for start, end, whole in sorted(ranges)
            if whole == size
        ],
    }
    DATA.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def draw() -> str:
    """The chart."""
    run: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    size, ranges = run["size"], [(part["start"], part["end"]) for part in run["ranges"]]
    read = sum(end - start for start, end in ranges)
    about = (
        f"torch 2.11.0 for aarch64 has {size / _MB:.1f} MB; verify reads {read / _MB:.2f} MB",
        f"in {len(ranges)} range requests ({run['date']}). A square is a megabyte,",
        "filled by as much of it as is read.",
    )
    y, edge = top(about) + 6, (WIDTH - 2 * MARGIN) / _COLUMNS
    body, touched = [], []
    for number in range(math.ceil(size / _MB)):
        start = number * _MB
        part = sum(max(0, min(end, start + _MB) - max(begin, start)) for begin, end in ranges)
        x, line = MARGIN + edge * (number % _COLUMNS), y + edge * (number // _COLUMNS)
        body.append(box(x + 1, line + 1, edge - 2, edge - 2, "track"))
        if part:
            touched.append(f"{number} ({part:,} bytes)")
            height = max(2.0, (edge - 2) * part / _MB)
            body.append(box(x + 1, line + edge - 1 - height, edge - 2, height, "good", radius=1))
    y += edge * math.ceil(math.ceil(size / _MB) / _COLUMNS) + 30
    parts = Counter[str]()
    for part in run["ranges"]:
        parts[_short(part["of"])] += part["end"] - part["start"]
    for name, count in parts.most_common():
        body.append(text(126, y, f"{count:,}", size=SIZE, anchor="end"))
        body.append(text(138, y, f"bytes of {name}", size=SIZE, style="quiet"))
        y += 24
    intro = f"{run['wheel']}, {size:,} bytes: {read:,} were read, in these megabytes of the file: {', '.join(touched)}."
    return chart(
        "How a wheel is read", about, body, y, f"{intro} {'; '.join(f'{c:,} of {n}' for n, c in parts.items())}."
    )


def _short(member: str) -> str:
    """The name of a member without its folders."""
    return member if member == _DIRECTORY else f"{member.rpartition('/')[2]}"
