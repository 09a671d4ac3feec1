"""The stack as a table: one row a package, the same in every format of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from wheel_checks.facts.stack import DECLARED, SDIST, WHEEL, StackFacts, StackPackage
from wheel_checks.model import FailOn, Report, Subject
from wheel_checks.phrases import joined, plural

COLUMNS = ("package", "version", "distribution", "accelerator", "cuda", "gpu_code", "index", "verdict")
"""What a row tells. ``gpu_code`` stays empty until a rule of the GPU code has put that fact into the subject."""


def package_facts(package: StackPackage) -> dict[str, Any]:
    """What being part of a stack adds to the facts of a package: its place in the table, and who demands it."""
    return {
        "package": package.name,
        "version": package.version,
        "distribution": package.distribution,
        "target": package.target.label,
        "machine": package.target.machine,
        "demanded_by": [str(demand) for demand in package.demands],
    }


def table(packages: Sequence[Subject], fail_on: FailOn) -> list[dict[str, Any]]:
    """The rows, with the columns of ``COLUMNS``; a fact that is not known is ""."""
    report = Report("stack", "", "", 0.0, tuple(packages), fail_on)
    rows = []
    for subject in packages:
        row = {column: subject.facts.get(column, "") for column in COLUMNS}
        rows.append({**row, "verdict": report.verdict_of(subject).value})
    return rows


def headline(facts: StackFacts, rows: Sequence[dict[str, Any]]) -> str:
    """For people: "163 packages, torch 2.10.0 is CPU only", or "cannot be resolved" when there is none."""
    if not rows:
        return "cannot be resolved"
    kinds = Counter(package.distribution for package in facts.packages)
    parts = [plural(len(rows), "package")]
    declared = sum(row["distribution"] == DECLARED for row in rows)
    if declared:
        parts.append(f"{declared} not looked at")
    if rest := len(rows) - declared - kinds[WHEEL]:
        parts.append(f"{rest} without a wheel ({kinds[SDIST]} as source)")
    torch = facts.package("torch")
    if torch is not None and torch.known_accelerator is not None:
        parts.append(f"torch {torch.version} is {torch.known_accelerator.label}")
    indexes = Counter(row["index"] for row in rows if row["index"])
    if len(indexes) > 1:
        parts.append(joined([f"{count} from {index}" for index, count in indexes.most_common()]))
    return ", ".join(parts)
