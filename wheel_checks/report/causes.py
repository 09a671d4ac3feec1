"""Findings grouped by cause: six libraries without code for one GPU are one thing to read, and to fix."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from wheel_checks.answers.questions import FOLLOWS_FROM
from wheel_checks.commands import Options
from wheel_checks.model import CheckResult, Evidence, Fix, Outcome, Report, Severity, Subject
from wheel_checks.phrases import plural, summarised
from wheel_checks.report import wording

_NOUNS = {"distribution": "package", "sdist": "package", "requirement-pin": "file"}  # of kinds that are not words
_NAMED = 3  # packages or members that are named
_DETAILED = 8  # packages of one finding of which it is shown what differs

Found = tuple[Subject, CheckResult]


@dataclass(frozen=True, slots=True)
class Cause:
    """One fact and every result that shows it, of one rule; ``first`` stands for them, with its evidence and fix."""

    results: tuple[Found, ...]

    @property
    def first(self) -> CheckResult:
        """The result that is shown."""
        return self.results[0][1]

    @property
    def is_note(self) -> bool:
        """True for what need not be fixed."""
        return self.first.outcome is Outcome.FAIL and self.first.severity is Severity.NOTE

    @property
    def shown(self) -> CheckResult:
        """The first result; its message says where else the same was found, or its evidence what differs there."""
        if details := self._details:
            message, evidence = f"{self.about}{self._parts[0][1]}", tuple(details)
            return replace(self.first, message=message, evidence=evidence, fix=self._fix)
        return replace(self.first, message=self.first.message + self._elsewhere)

    @property
    def _parts(self) -> list[tuple[str, str, str]]:
        """Of each result the label of its subject, what the message says of it up to a colon, and what it adds."""
        found = []
        for subject, result in self.results:
            label = label_of(subject)
            head, _, tail = result.message.removeprefix(label).partition(": ")
            found.append((label, head, tail))
        return found

    @property
    def _details(self) -> list[Evidence]:
        """What the messages about several packages without a wheel add, where they begin alike; none for others."""
        parts = self._parts
        alike = len({head for _, head, _ in parts}) == 1 and len({label for label, _, _ in parts}) == len(parts) > 1
        if not (alike and self.first.cause and all(subject.kind == "package" for subject, _ in self.results)):
            return []
        shown = [Evidence(label, tail) for label, _, tail in parts[:_DETAILED] if tail]
        more = ", ".join(label for label, _, _ in parts[_DETAILED:])
        return [*shown, Evidence("and", more)] if more else shown

    @property
    def _fix(self) -> Fix | None:
        """The fix of the first result with the commands of all; options to add to a command come last, each once."""
        if self.first.fix is None:
            return None
        steps = dict.fromkeys(step for _, r in self.results if r.fix for step in r.fix.commands)
        return replace(self.first.fix, commands=tuple(sorted(steps, key=lambda step: isinstance(step, Options))))

    @property
    def about(self) -> str:
        """What the finding is about: ``torchao 0.17.0``, or ``torch 2.11.0, vllm 0.20.0 and 3 more``."""
        return summarised(list(dict.fromkeys(label_of(subject) for subject, _ in self.results)), _NAMED)

    @property
    def _elsewhere(self) -> str:
        subjects = len({id(subject) for subject, _ in self.results})
        more = len(self.results) - subjects
        if subjects > 1:
            kind = self.results[0][0].kind
            return f" (in {plural(subjects, wording.neutral(_NOUNS.get(kind, kind)))})"
        members = [r.location.member for _, r in self.results[1:] if r.location and r.location.member]
        if more and len(set(members)) == more:
            return f" (and in {summarised(members, _NAMED)})"
        return f" (and {plural(more, 'more finding')} of this kind)" if more else ""


def causes(found: Iterable[Found]) -> list[Cause]:
    """The findings, worst first, those of one cause together; order is kept among equals.

    The cause is what the rule states, else the message with placeholders for the subject and the member. What follows
    from another finding about the same subject, which weighs as much, is omitted.
    """
    pairs = list(_without_consequences(list(found)))
    ranked = {id(result): rank for rank, result in enumerate(wording.worst_first(result for _, result in pairs))}
    groups: dict[tuple[object, ...], list[Found]] = {}
    templates: dict[str, str] = {}  # the same words are the same, whatever they are about
    for subject, result in sorted(pairs, key=lambda pair: ranked[id(pair[1])]):
        template = templates.setdefault(result.message, _template(subject, result))
        cause = result.cause or template
        groups.setdefault((result.rule, result.outcome, result.severity, cause), []).append((subject, result))
    return [Cause(tuple(group)) for group in groups.values()]


def _without_consequences(found: Sequence[Found]) -> Iterator[Found]:
    weights = {(id(subject), result.rule): _weight(result) for subject, result in reversed(found)}
    for subject, result in found:
        roots = (weights.get((id(subject), root), -1) for root in FOLLOWS_FROM.get(result.rule, ()))
        if max(roots, default=-1) < _weight(result):
            yield subject, result


def _weight(result: CheckResult) -> int:
    """3 for an error, 2 for what could not be checked, 1 for a warning, 0 for a note."""
    if result.outcome is not Outcome.FAIL:
        return 2
    return {Severity.ERROR: 3, Severity.WARNING: 1, Severity.NOTE: 0}[result.severity]


def problems_of(report: Report, *, everything: bool = False) -> list[Found]:
    """Every subject with each of its problems; with ``everything`` also what concerns only publishers."""
    return [
        (subject, result) for subject in report.subjects for result in wording.problems(subject, everything=everything)
    ]


def label_of(subject: Subject) -> str:
    """Such as ``torch 2.11.0``; the id of a subject that is not a package."""
    name = wording.fact(subject, "package") or wording.fact(subject, "name")
    version = wording.fact(subject, "version")
    is_package = subject.kind in ("wheel", "package", "distribution", "sdist") and name
    return f"{name.replace('_', '-')} {version}".strip() if is_package else subject.id


def _template(subject: Subject, result: CheckResult) -> str:
    """The message without what differs between members and packages that have one cause."""
    message = result.message
    member = result.location.member if result.location else ""
    own: Sequence[str] = (
        member if "/" in member else "",  # METADATA and WHEEL are two things, two libraries are alike
        subject.id,
        wording.fact(subject, "name"),
        wording.fact(subject, "package"),
        wording.fact(subject, "version"),
    )
    for text in sorted(filter(None, own), key=len, reverse=True):
        message = message.replace(text, "*")
    return message
