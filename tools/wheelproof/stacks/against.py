"""Two reports on a stack, before and after a change, as one report about what changes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from wheel_checks.facts.stack.changes import PackageChange, PackageSide, StackChanges, compare
from wheel_checks.model import (
    Answer,
    Audience,
    CheckResult,
    Location,
    Outcome,
    Overview,
    Report,
    Severity,
    Subject,
    Table,
    Verdict,
)
from wheel_checks.phrases import plural
from wheel_checks.runner import run_rules
from wheel_checks.targets.target import Target
from wheelproof.wheels.model import Judgement

KIND = "stack-change"
_NAMED = 2  # changes in the first line
_MOST_ROWS = 60


def compare_reports(
    before: Report | None,
    after: Report,
    targets: Sequence[Target],
    against: str,
    judgement: Judgement,
    *,
    fails: bool = False,
) -> Report:
    """What changes on each target. ``before`` is None where the file did not exist; ``fails``: what got worse fails."""
    rules = judgement.selection.rules(KIND)
    subjects, answers, tables = [], [], []
    machines = [target.machine for target in targets]
    for target in targets:
        where = target.machine if machines.count(target.machine) == 1 else target.label
        changes = _changes(before, after, target, where, against, fails=fails)
        results = run_rules(rules, changes, judgement.expectations)
        name = f"changes on {target.label} against {against}"
        subjects.append(Subject(name, KIND, _counted(changes), _facts(changes, target), results, Audience.INSTALLER))
        answers.append(_answer(changes, results))
        tables.append(_table(changes, target))
    shown = [table for table in tables if table.rows]
    title = f"{', '.join(_requested(after))} against {against}"
    return replace(
        after, subjects=tuple(subjects), answers=tuple(answers), overview=Overview(title, tuple(shown), notes=())
    )


def _changes(
    before: Report | None, after: Report, target: Target, where: str, against: str, *, fails: bool
) -> StackChanges:
    now, place = _stack_of(after, target), None
    was = _stack_of(before, target) if before else None
    unknown = [
        f"{side} could not be judged: {reason}"
        for side, stack in ((against, was), ("what is judged", now))
        if stack is not None and (reason := _unreadable(stack))
    ]
    if now is None or unknown:
        return StackChanges(where, against, unknown=tuple(unknown) or ("nothing was judged",), fails=fails)
    place = next((r.location for r in now.results if r.location and r.location.file), None)
    old = _failures(was.results) if was else {}
    worse = [message for rule, message in _failures(now.results).items() if rule not in old]
    if not now.facts.get("packages"):
        return StackChanges(where, against, worse=tuple(worse), fails=fails, place=place)
    packages, places = _packages(after, target)
    changes = compare(_packages(before, target)[0] if before else {}, packages, places)
    open_before = _open(was.results) if was else set()
    unknown = sorted(_open(now.results) - open_before)
    return StackChanges(where, against, changes, tuple(worse), tuple(unknown), fails, place)


def _stack_of(report: Report, target: Target) -> Subject | None:
    named = f" on {target.label}"
    stacks = [s for s in report.subjects if s.kind == "stack" and (s.id.endswith(named) or f"{named}," in s.id)]
    return stacks[0] if stacks else None


def _unreadable(stack: Subject) -> str:
    """Why a stack could not be judged at all; "" when it was."""
    if "packages" in stack.facts:
        return ""
    return next((result.message for result in stack.results if result.outcome is Outcome.ERROR), "")


def _packages(report: Report, target: Target) -> tuple[dict[str, PackageSide], dict[str, Location]]:
    found, places = {}, {}
    for subject in report.subjects:
        facts = subject.facts
        if "package" not in facts or facts.get("target") != target.label or str(facts["package"]) in found:
            continue
        counting = tuple(result for result in subject.results if subject.concerns_reader(result))
        found[str(facts["package"])] = PackageSide(
            str(facts.get("version", "")),
            str(facts.get("distribution", "")),
            str(facts.get("accelerator", "")),
            str(facts.get("cuda", "")),
            _failures(counting),
            bool(_open(counting)),
        )
        if place := _place_of(subject):
            places[str(facts["package"])] = place
    return found, places


def _place_of(subject: Subject) -> Location | None:
    """The line that brings the package in, of a finding, or of the facts of every package."""
    place = subject.facts.get("place")
    if isinstance(place, Mapping):
        return Location(file=str(place["file"]), line=place.get("line"))
    return next(
        (
            Location(line=r.location.line, file=r.location.file)
            for r in subject.results
            if r.location and r.location.file
        ),
        None,
    )


def _failures(results: Sequence[CheckResult]) -> dict[str, str]:
    """The first message of each rule that fails as an error."""
    failed = [r for r in results if r.outcome is Outcome.FAIL and r.severity is Severity.ERROR]
    return {result.rule: result.message for result in reversed(failed)}


def _open(results: Sequence[CheckResult]) -> set[str]:
    return {result.message for result in results if result.outcome is Outcome.ERROR}


def _answer(changes: StackChanges, results: Sequence[CheckResult]) -> Answer:
    """What got worse, in the first line; else what is not decided, else what changes."""
    worse = [f"{change.name} on {changes.where}: {change.worse}" for change in changes.changes if change.worse]
    worse += [f"{changes.where}: {sentence}" for sentence in changes.worse]
    unknown = [f"{changes.where}: {sentence}" for sentence in changes.unknown]
    unknown += [f"{change.name} on {changes.where}: {change.open}" for change in changes.changes if change.open]
    if worse:
        verdict = Verdict.FAIL if changes.fails else Verdict.PASS
        sentence = _few(worse)
    elif unknown:
        verdict, sentence = Verdict.UNDECIDED, f"not decided: {_few(unknown)}"
    else:
        verdict, sentence = Verdict.PASS, _fine(changes)
    decided_by = ("STK123",) if any(result.rule == "STK123" for result in results) else ()
    return Answer(verdict, sentence, changes.where, decided_by=decided_by)


def _few(sentences: Sequence[str]) -> str:
    more = len(sentences) - _NAMED
    return "; ".join(sentences[:_NAMED]) + (f" (and {more} more)" if more > 0 else "")


def _fine(changes: StackChanges) -> str:
    if not changes.changes:
        return f"nothing changes on {changes.where}"
    better = [f"{c.name} on {changes.where}: {c.summary}" for c in changes.changes if c.gained]
    counted = plural(len(changes.changes), "package")
    return _few(better) if better else f"nothing gets worse on {changes.where}; {counted} changed"


def _counted(changes: StackChanges) -> str:
    worse = sum(bool(change.worse) for change in changes.changes) + len(changes.worse)
    return f"{plural(len(changes.changes), 'package')} changed, {worse} for the worse"


def _facts(changes: StackChanges, target: Target) -> dict[str, Any]:
    return {
        "target": target.label,
        "machine": target.machine,
        "against": changes.against,
        "changes": [
            {
                "package": change.name,
                "before": asdict(change.before) if change.before else None,
                "after": asdict(change.after) if change.after else None,
                "worse": change.worse,
                "undecided": change.open,
            }
            for change in changes.changes
        ],
    }


def _table(changes: StackChanges, target: Target) -> Table:
    rows = tuple(map(_row, changes.changes[:_MOST_ROWS]))
    left = len(changes.changes) - len(rows)
    title = f"{target.label}: {_counted(changes)}" + (f", {left} of them not listed" if left else "")
    worse = (number for number, change in enumerate(changes.changes[:_MOST_ROWS]) if change.worse)
    states = {(number, 3): Severity.WARNING for number in worse}
    return Table(title, ("package", "before", "after", "accelerator", "cuda"), rows, states=states)


def _row(change: PackageChange) -> tuple[str, ...]:
    before, after = change.before, change.after
    kinds = [_kind(side) for side in (before, after)]
    return (
        change.name,
        before.version if before else "",
        after.version if after else "removed",
        kinds[1] if kinds[0] == kinds[1] or not before else f"{kinds[0]} -> {kinds[1]}",
        _arrow(before.cuda if before else "", after.cuda if after else ""),
    )


def _kind(side: PackageSide | None) -> str:
    """The accelerator without its version, else what would be installed."""
    return side.built_for.removesuffix(side.cuda).strip() if side else "not installed"


def _arrow(before: str, after: str) -> str:
    return after if before == after else f"{before or 'none'} -> {after or 'none'}"


def _requested(report: Report) -> list[str]:
    stacks = [subject for subject in report.subjects if subject.kind == "stack"]
    names = [str(name) for stack in stacks for name in stack.facts.get("requested", ())]
    return list(dict.fromkeys(names)) or ["the stack"]
