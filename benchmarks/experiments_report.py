"""What ``benchmarks/seeds.py`` measured, as markdown. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


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
