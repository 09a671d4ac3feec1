"""Report the measurements of ``benchmarks/seeds.py`` as markdown. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Repeated:
    """One experiment run again: microseconds and notes by variant, faults of failed ones."""

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


def markdown(experiments: list[Repeated], environment: dict[str, Any], seconds: float) -> str:
    """The tables, failures, and the environment."""
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    lines = [f"{environment['date']} · {environment['device']} · {versions} · one run of {seconds / 60:.1f} minutes"]
    for repeated in experiments:
        lines += ["", f"### {repeated.name}", "", f"The document: {repeated.reported}."]
        if repeated.work:
            lines.append(f"One call: {repeated.work}.")
        lines += ["", "| variant | us | times as fast as the baseline | |", "| --- | ---: | ---: | --- |"]
        lines += _rows(repeated)
    return "\n".join(lines) + "\n"


def _rows(repeated: Repeated) -> Iterator[str]:
    for variant, microseconds in repeated.microseconds.items():
        speedup = repeated.speedup(variant)
        ratio = "baseline" if variant == repeated.baseline else "-" if speedup is None else f"{speedup:.2f}x"
        yield f"| {variant} | {microseconds:.1f} | {ratio} | {repeated.notes.get(variant, '')} |"
    for variant, fault in repeated.faults.items():
        yield f"| {variant} | - | - | not available: {fault.replace('|', '/')} |"
