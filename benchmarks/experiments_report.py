"""What ``benchmarks/seeds.py`` measured, as markdown and as a picture. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernels_smoke.suite.speed.svg import box, line, picture_of, text

WIDTH, MARGIN, LEFT, RIGHT, ROW = 1080.0, 32.0, 400.0, 960.0, 30.0


@dataclass
class Told:
    """One experiment as it was run again: microseconds and notes by variant, faults of those that did not run."""

    name: str
    reported: str
    baseline: str
    work: str
    microseconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def speedup(self, variant: str) -> float | None:
        """How many times as fast ``variant`` is as the baseline; None when one of them was not timed."""
        if variant not in self.microseconds or self.baseline not in self.microseconds:
            return None
        return self.microseconds[self.baseline] / self.microseconds[variant]


def markdown(experiments: list[Told], environment: dict[str, Any], seconds: float) -> str:
    """The tables, what could not be timed, and what ran where."""
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    lines = [f"{environment['date']} · {environment['device']} · {versions} · one run of {seconds / 60:.1f} minutes"]
    for told in experiments:
        lines += ["", f"### {told.name}", "", f"The document: {told.reported}."]
        if told.work:
            lines.append(f"One call: {told.work}.")
        lines += ["", "| variant | us | times as fast as the baseline | |", "| --- | ---: | ---: | --- |"]
        lines += _rows(told)
    return "\n".join(lines) + "\n"


def _rows(told: Told) -> Iterator[str]:
    for variant, microseconds in told.microseconds.items():
        speedup = told.speedup(variant)
        ratio = "baseline" if variant == told.baseline else "-" if speedup is None else f"{speedup:.2f}x"
        yield f"| {variant} | {microseconds:.1f} | {ratio} | {told.notes.get(variant, '')} |"
    for variant, fault in told.faults.items():
        yield f"| {variant} | - | - | not available: {fault.replace('|', '/')} |"


def chart(experiments: list[Told], environment: dict[str, Any]) -> str:
    """An SVG: for every experiment a bar for each variant, as long as it is many times as fast as the baseline."""
    title = f"The documents' experiments, measured again on {environment['device']}"
    body = [
        text(MARGIN, 56, title, size=22, bold=True),
        text(MARGIN, 84, "times as fast as the baseline of each experiment; the line is the baseline", style="quiet"),
    ]
    y, said = 120.0, []
    for told in experiments:
        shown = {name: speed for name in told.microseconds if (speed := told.speedup(name)) is not None}
        if len(shown) < 2:
            continue
        body.append(text(MARGIN, y + 16, told.name, size=15, bold=True))
        y += ROW
        furthest = max(shown.values()) * 1.02
        start = y
        for name, speed in shown.items():
            length = (RIGHT - LEFT) * speed / furthest
            style = "other" if name == told.baseline else "good" if speed >= 1 else "bad"
            body += [
                text(LEFT - 14, y + 18, name, anchor="end"),
                box(LEFT, y + 3, max(length, 1.0), 20, style),
                text(LEFT + length + 8, y + 18, f"{speed:.2f}x  {told.microseconds[name]:.1f} us", style="quiet"),
            ]
            y += ROW
        one = LEFT + (RIGHT - LEFT) / furthest
        body.append(line([(one, start), (one, y)], "axis", dashes="4 3"))
        said.append(f"{told.name}: " + ", ".join(f"{name} {speed:.2f}" for name, speed in shown.items()))
        y += 14
    return picture_of(WIDTH, y + 30, title, "; ".join(said) or "Nothing was measured.", body)
