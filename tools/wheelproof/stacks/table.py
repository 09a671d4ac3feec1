"""The stack as a table: one row a package, the same in every format of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wheel_checks.answers.claims import is_requested
from wheel_checks.facts.accelerator.signals import CUDA
from wheel_checks.facts.accelerator.verdict import DECLARED as ONLY_DECLARED
from wheel_checks.facts.stack.facts import CONDA, DECLARED, SDIST, WHEEL, StackFacts, StackPackage
from wheel_checks.facts.stack.locked import LockedEntry
from wheel_checks.facts.stack.needs import StackNeeds
from wheel_checks.model import Answer, FailOn, Overview, Report, Subject, Table, Verdict
from wheel_checks.phrases import joined, plural
from wheel_checks.report.wording import accelerator_label, gpu_label

_MOST_ROWS = 16
_MOST_RELEASES = 4  # newer releases and pre-releases that are named
_ORDER = (Verdict.FAIL, Verdict.UNDECIDED, Verdict.PASS)

COLUMNS = ("package", "version", "distribution", "accelerator", "cuda", "gpu_code", "index", "verdict")
"""The columns of a row. ``gpu_code`` is empty unless a rule has read that fact."""


def package_facts(package: StackPackage) -> dict[str, Any]:
    """The facts of a package that come from its stack: its row in the table, and the packages that require it."""
    return {
        "package": package.name,
        "version": package.version,
        "distribution": package.distribution,
        "target": package.target.label,
        "machine": package.target.machine,
        "demanded_by": [str(demand) for demand in package.demands],
        **({"place": {"file": package.place.file, "line": package.place.line}} if package.place else {}),
        **(_of_lock(package, package.locked) if package.locked else {}),
    }


def _of_lock(package: StackPackage, entry: LockedEntry) -> dict[str, Any]:
    """The place of the package in the lock; if it was not read, the facts that its name declares."""
    facts: dict[str, Any] = {"locked": {"where": entry.where, "file": package.file_name, "address": entry.address}}
    if entry.build:
        facts["locked"]["build"] = entry.build
    declared = package.known_accelerator
    if declared is not None and declared.certainty == ONLY_DECLARED and (entry.unread or package.distribution == CONDA):
        facts |= {"accelerator": declared.accelerator, "accelerator_version": declared.version}
        facts["accelerator_certainty"] = declared.certainty
        if declared.accelerator == CUDA and declared.version:
            facts["cuda"] = declared.version
    return facts


def table(packages: Sequence[Subject], fail_on: FailOn) -> list[dict[str, Any]]:
    """The rows, with the columns of ``COLUMNS``; a fact that is unknown is ""."""
    report = Report("stack", "", "", 0.0, tuple(packages), fail_on)
    rows = []
    for subject in packages:
        row = {column: subject.facts.get(column, "") for column in COLUMNS}
        rows.append({**row, "verdict": report.verdict_of(subject).value})
    return rows


@dataclass(frozen=True, slots=True)
class JudgedStack:
    """The subject of a stack, of its packages, and ``others``: indexes and machines.

    ``facts`` and ``needs`` are None if nothing was resolved.
    """

    stack: Subject
    answers: Sequence[Answer]
    packages: Sequence[Subject] = ()
    others: Sequence[Subject] = ()
    facts: StackFacts | None = None
    needs: StackNeeds | None = None


def overview(stacks: Sequence[JudgedStack], fail_on: FailOn) -> Overview:
    """The summary of stacks: packages with an accelerator, and those that do not pass; others are counted."""
    title = ", ".join(filter(None, (stacks[0].stack.id, stacks[0].stack.headline))) if len(stacks) == 1 else ""
    return Overview(
        title or plural(len(stacks), "stack"),
        tuple(table for table in (_table(shown, fail_on) for shown in stacks) if table.rows),
        summed_up=frozenset({"wheel", "package"}),
        statements=tuple(statement for shown in stacks for statement in _statements(shown, len(stacks) > 1)),
    )


def _table(shown: JudgedStack, fail_on: FailOn) -> Table:
    report = Report("stack", "", "", 0.0, tuple(shown.packages), fail_on)
    verdicts = {id(subject): report.verdict_of(subject) for subject in shown.packages}
    notable = [s for s in shown.packages if verdicts[id(s)] is not Verdict.PASS or _has_accelerator(s)]
    notable.sort(
        key=lambda s: (
            *(_ORDER.index(verdicts[id(s)]), s.facts.get("package") != "torch"),
            *(not _has_accelerator(s), not gpu_label(s), not is_requested(s)),
        )
    )
    rows = tuple(
        (
            str(subject.facts.get("package", subject.id)),
            str(subject.facts.get("version", "")),
            accelerator_label(subject) or str(subject.facts.get("distribution", "")),
            gpu_label(subject),
            verdicts[id(subject)].value.upper(),
        )
        for subject in notable[:_MOST_ROWS]
    )
    left = sum(map(_has_accelerator, shown.packages)) - sum(map(_has_accelerator, notable[:_MOST_ROWS]))
    counted = [f"{left} more with an accelerator"] if left else []
    without = "without one" if counted else "without an accelerator"
    counted += [f"{rest} {without}"] if (rest := len(shown.packages) - len(rows) - left) else []
    title = f"{shown.stack.facts.get('target', shown.stack.id)}: {plural(len(shown.packages), 'package')}"
    title += f", of which {joined(counted)} are not listed (-v lists them)" if counted else ""
    states = {(number, 4): verdicts[id(subject)] for number, subject in enumerate(notable[:_MOST_ROWS])}
    return Table(title, ("package", "version", "built for", "GPU code", "verdict"), rows, states=states)


def _statements(shown: JudgedStack, several: bool) -> list[str]:
    """Releases that not every machine gets, and the stack's requirements on the system; with several targets."""
    facts = shown.facts
    if facts is None or not shown.packages:
        return []
    where = f"{facts.target.label}: " if several else ""
    others = [*map(str, facts.refused), *map(str, facts.pre_releases)]
    left = [f"{len(others) - _MOST_RELEASES} more such releases (-v)"] if len(others) > _MOST_RELEASES else []
    indexes = Counter(row["index"] for row in shown.stack.facts["packages"] if row["index"])
    sources = joined([f"{index} ({count})" for index, count in indexes.most_common()])
    taken = [f"taken from {sources}"] if len(indexes) > 1 else []
    needs = shown.needs.sentences if shown.needs else ()
    sentences = (*others[:_MOST_RELEASES], *left, *needs, *taken)
    return [where + sentence for sentence in sentences]


def _has_accelerator(subject: Subject) -> bool:
    return subject.facts.get("accelerator") not in (None, "", "none")


def headline(facts: StackFacts, rows: Sequence[dict[str, Any]]) -> str:
    """For people: "163 packages, torch 2.10.0 is CPU only", or "cannot be resolved" if none exists."""
    if not rows:
        return "the lock does not support it" if facts.lock and facts.lock.outside else "cannot be resolved"
    kinds = Counter(package.distribution for package in facts.packages)
    parts = [plural(len(rows), "package")]
    declared = sum(row["distribution"] == DECLARED for row in rows)
    if declared:
        parts.append(f"{declared} not looked at")
    if kinds[CONDA]:
        parts.append(f"{kinds[CONDA]} of conda")
    if rest := len(rows) - declared - kinds[WHEEL] - kinds[CONDA]:
        parts.append(f"{rest} without a wheel ({kinds[SDIST]} as source)")
    torch = facts.package("torch")
    if torch is not None and torch.known_accelerator is not None:
        parts.append(f"torch {torch.version} is {torch.known_accelerator.label}")
    return ", ".join(parts)
