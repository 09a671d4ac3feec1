"""The one result model: rules, their findings, and the report that every renderer reads.

Rules produce findings and never format them; renderers format results and never decide.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from wheel_checks.decode import Key, Made
from wheel_checks.fixes.commands import Step, decoded, in_words
from wheel_checks.fixes.goal import Goal
from wheel_checks.phrases import plural

MOST_REASONS = 2  # that the line of an answer has
SCHEMA = "wheelproof.report/1"

T = TypeVar("T")


class Severity(enum.StrEnum):
    """The severity of a finding, in ascending order."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for a note, 1 for a warning, 2 for an error."""
        return list(Severity).index(self)


class Outcome(enum.StrEnum):
    """How a check ended: ``SKIP`` means that a fact was not requested, ``ERROR`` that the check could not be made."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    SKIP = "skip"
    ERROR = "error"


class FailOn(enum.StrEnum):
    """The lowest severity of a failed check that fails the whole run."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"

    def includes(self, severity: Severity) -> bool:
        """True when a failure of ``severity`` fails the run."""
        return self is not FailOn.NEVER and severity.rank >= Severity(self.value).rank


class Verdict(enum.StrEnum):
    """The verdict of a report or a subject: undecided when something could not be checked and nothing failed."""

    PASS = "pass"  # noqa: S105  # a verdict, not a password
    FAIL = "fail"
    UNDECIDED = "undecided"


class Audience(enum.StrEnum):
    """The audience of a rule: publishers (unless an install or a run breaks), installers, or both."""

    PUBLISHER = "publisher"
    INSTALLER = "installer"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observed value: its label, its text, and its source."""

    label: str
    value: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a wheel (``member``) or on disk (``path``); lines and columns count from 1.

    ``file`` is a file that the user named (a lock, requirements.txt, pyproject.toml), as it was named, which leads to
    the subject of the finding: then ``line`` and ``column`` count in it.
    """

    member: str = ""
    path: str = ""
    line: int | None = None
    column: int | None = None
    file: str = ""

    @property
    def on_disk(self) -> str:
        """The file that the line counts in; "" for a member of a wheel."""
        return self.file or self.path

    def within(self, place: Location) -> Location:
        """The place of a finding about a wheel, with the ``place`` that requires the wheel."""
        return Location(self.member, self.path, place.line, place.column, place.file)


def _steps(values: tuple[Any, ...]) -> tuple[Step, ...]:
    """Each is decoded by itself: a bad one in the report of another host does not hide the finding."""
    return tuple(map(decoded, values))


@dataclass(frozen=True, slots=True)
class Fix:
    """Advice: a sentence, and complete commands to copy, as data (:mod:`wheel_checks.fixes.commands`).

    ``goal`` is the desired state of the distributions of an environment; None for other fixes.
    """

    summary: str
    commands: Annotated[tuple[Step, ...], Key("steps"), Made(_steps, of=tuple[Any, ...])] = ()
    goal: Goal | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """Every step as one line: commands quoted for a shell with their notes as comments, the rest in words."""
        return tuple(map(in_words, self.commands))


@dataclass(frozen=True, slots=True)
class Finding:
    """One failure that a rule found. ``severity`` and ``audience`` override the rule's own.

    ``by_reader`` is for a failure that is more or less severe for one kind of reader: who, and how. ``undecided`` makes
    it an error instead: a part of the rule's subject could not be checked. Findings of a rule with the same ``cause``
    are shown as one; without it those with the same message are. ``decides`` overrides the rule's own; ``refused_by``
    is "pip" or "uv" if the other one installs the wheel all the same. ``assumes`` is what a host must have, and an
    answer therefore names: "X11".
    """

    message: str
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    location: Location | None = None
    severity: Severity | None = None
    undecided: bool = False
    cause: str = ""
    audience: Audience | None = None
    by_reader: tuple[Audience, Severity] | None = None
    decides: bool | None = None
    refused_by: str = ""
    assumes: str = ""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A missing fact: why, and how it would become available."""

    reason: Annotated[str, Key("unavailable")]  # as facts are saved
    hint: str = ""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A part of an input that its reader does not understand, and that may change the result."""

    name: str  # such as a key, an option or a variable
    where: str  # the file, or the command

    def __str__(self) -> str:
        return f"the effect of {self.name} ({self.where}) is unknown"


class FactUnavailableError(Exception):
    """Raised by :func:`need`; the runner turns it into a skipped check."""

    def __init__(self, unavailable: Unavailable) -> None:
        super().__init__(unavailable.reason)
        self.unavailable = unavailable


def need(fact: T | Unavailable) -> T:
    """Return ``fact``, or raise :class:`FactUnavailableError` so that the check is skipped with the reason."""
    if isinstance(fact, Unavailable):
        raise FactUnavailableError(fact)
    return fact


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its page in the manual, and the pure function ``check(facts, expectations) -> findings``.

    ``kind`` is the kind of subject that it judges (``wheel``, ``requirement``, ...). ``plugin`` is the distribution
    that it comes from, "" for ours. ``sources`` are descriptions of the failure ("pytorch#168065", an address),
    ``tested`` describes its tests, and their limits. A rule that does not ``decides`` is no obligation of any claim of
    an installer: neither "installs" nor "loads" nor "runs" is false because of it.
    """

    id: str
    title: str
    kind: str
    severity: Severity
    why: str
    example: str
    fix: str
    check: Callable[[Any, Any], Iterable[Finding]]
    audience: Audience = Audience.BOTH
    plugin: str = ""
    sources: tuple[str, ...] = ()
    tested: str = ""
    decides: bool = True


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one subject. A rule that found three faults gives three results with the same ``rule``."""

    rule: str
    title: str
    outcome: Outcome
    severity: Severity
    message: str
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    location: Location | None = None
    seconds: float = 0.0
    audience: Audience = Audience.BOTH
    cause: str = ""
    by_reader: tuple[Audience, Severity] | None = None
    decides: bool = True
    refused_by: str = ""
    assumes: str = ""

    def read_by(self, reader: Audience, installer: str) -> CheckResult:
        """The result for this reader. For an installer one that denies no claim is a warning at most.

        So is a fault that only one of pip and uv refuses, unless it is known which ``installer`` is meant ("" if not):
        for that one it decides, for the other one it is a note.
        """
        severity = self.by_reader[1] if self.by_reader and self.by_reader[0] is reader else self.severity
        if reader is not Audience.INSTALLER:
            return replace(self, severity=severity, decides=True)
        decides = self.decides and self.refused_by in ("", installer)
        most = Severity.NOTE if installer and self.refused_by not in ("", installer) else Severity.WARNING
        if not decides:
            severity = min(severity, most, key=lambda each: each.rank)
        return replace(self, severity=severity, decides=decides, by_reader=None, refused_by="")


@dataclass(frozen=True, slots=True)
class Subject:
    """The judged object. ``facts`` is JSON-ready; ``headline`` is one short sentence for people ("CUDA 13.0").

    ``reader`` is the kind of user: findings that only a publisher can fix decide nothing for an installer. ``record``
    are the data to judge the subject again, JSON-ready; formats for people leave it out.
    """

    id: str
    kind: str
    headline: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[CheckResult, ...] = ()
    reader: Audience = Audience.BOTH
    record: Mapping[str, Any] = field(default_factory=dict)

    def read_by(self, reader: Audience, installer: str = "") -> Subject:
        """The subject for this reader, with the severities that its results have for that kind of reader."""
        return replace(self, reader=reader, results=tuple(r.read_by(reader, installer) for r in self.results))

    def count(self, outcome: Outcome) -> int:
        """How many results have this outcome."""
        return sum(result.outcome is outcome for result in self.results)

    def is_open(self, result: CheckResult) -> bool:
        """True for a check that could not be made, and that decides something for the reader."""
        return result.outcome is Outcome.ERROR and (result.decides or self.reader is not Audience.INSTALLER)

    def concerns_reader(self, result: CheckResult) -> bool:
        """False for a failure that only a publisher can fix, if the reader is an installer."""
        is_for_others = result.audience is Audience.PUBLISHER and self.reader is Audience.INSTALLER
        return not (is_for_others and result.outcome is Outcome.FAIL)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement that an answer is made of, such as "loads", and whether it was proven."""

    name: str
    verdict: Verdict
    obligations: tuple[str, ...] = ()  # ids of the rules that must have run, for every subject that the claim is about
    coverage: str = ""  # the share of the subjects that was read: "2 of 3 wheels with compiled files"
    open: tuple[str, ...] = ()  # obligations that are not discharged, in words
    command: str = ""  # the option that discharges them


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the question of a command, in the question's own words: the first line of a report.

    ``sentence`` is the answer ("does not run on GB200"), ``reasons`` decide it, worst first, and ``about`` is its
    subject. ``certainty`` is how it is known ("exact", "sampled", "declared"; "" if that does not apply),
    ``decided_by`` the ids of the rules that answer. An answer that is undecided makes its report undecided.
    """

    verdict: Verdict
    sentence: str
    about: str = ""
    reasons: tuple[str, ...] = ()
    certainty: str = ""
    decided_by: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def line(self) -> str:
        """The sentence with its reasons: "does not run on GB200: vllm has no code for it (and 1 more reason)"."""
        if not self.reasons:
            return self.sentence
        shown = "; ".join(self.reasons[:MOST_REASONS])
        more = len(self.reasons) - MOST_REASONS
        return f"{self.sentence}: {shown}" + (f" (and {plural(more, 'more reason')})" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class Table:
    """Text in rows, under the headings ``columns``; ``numbers`` are the headings of numeric columns.

    ``states`` are the coloured cells, by row and column from 0; their text says the same.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()
    states: Mapping[tuple[int, int], Verdict | Severity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HeatMap(Table):
    """A table of signs: ``signs`` has the meaning of each. A page shows ``heading``, with the signs in a legend.

    ``subjects`` are the ids of the subjects that cells are about, by row and column from 0.
    """

    heading: str = ""
    signs: Mapping[str, str] = field(default_factory=dict)
    subjects: Mapping[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overview:
    """A summary for people next to the findings, when a list of the subjects is not enough.

    ``headline`` names the judged object and the result; ``notes`` are sentences for the end. The JSON format omits all
    of it: it repeats facts of the subjects. ``summed_up`` are the kinds of subjects that it covers already: there may
    be thousands, and formats for people do not list each. ``statements`` are sentences that come before the tables.
    ``maps`` are tables that only a page shows, since they are too large for other formats or repeat the tables in
    colours.
    """

    headline: str
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    summed_up: frozenset[str] = frozenset()
    statements: tuple[str, ...] = ()
    maps: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeConfiguration:
    """The decisions of a tree's configuration ``file``, which is not trusted, on a run.

    ``silenced`` are the ids of the rules that would have judged something, and did not. ``refused`` are keys that were
    ignored, each with the reason.
    """

    file: str
    silenced: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one command.

    ``started`` is UTC in ISO 8601 with a trailing Z; ``seconds`` is wall time; ``bytes_read`` and ``requests`` count
    reads over the network or from disk, index pages included, the byte cache excluded. ``overview`` is None when the
    subjects speak for themselves, ``tree`` when no file of a tree was used. ``answers`` come first in every format, one
    for each target; empty for a command without a single question. ``also`` are phrases about results that decide
    nothing for an installer: "2 packages run code at start-up".
    """

    command: str
    version: str
    started: str
    seconds: float
    subjects: tuple[Subject, ...]
    fail_on: FailOn = FailOn.ERROR
    bytes_read: int = 0
    requests: int = 0
    overview: Overview | None = None
    tree: TreeConfiguration | None = None
    answers: tuple[Answer, ...] = ()
    also: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """How many results of all subjects have this outcome."""
        return sum(subject.count(outcome) for subject in self.subjects)

    def verdict_of(self, subject: Subject) -> Verdict:
        """The verdict of one subject under this report's ``fail_on``."""
        counting = filter(subject.concerns_reader, subject.results)
        if any(r.outcome is Outcome.FAIL and self.fail_on.includes(r.severity) for r in counting):
            return Verdict.FAIL
        return Verdict.UNDECIDED if any(map(subject.is_open, subject.results)) else Verdict.PASS

    @property
    def verdict(self) -> Verdict:
        """Fail if any subject fails; undecided if a subject or answer is, without subjects, or if all is silenced."""
        verdicts = {self.verdict_of(subject) for subject in self.subjects}
        if Verdict.FAIL in verdicts:
            return Verdict.FAIL
        skipped = self.count(Outcome.SKIP) == sum(len(subject.results) for subject in self.subjects)
        verdicts |= {answer.verdict for answer in self.answers} & {Verdict.UNDECIDED}
        if Verdict.UNDECIDED in verdicts or not self.subjects or (skipped and self.tree and self.tree.silenced):
            return Verdict.UNDECIDED
        return Verdict.PASS

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 undecided."""
        return {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.UNDECIDED: 3}[self.verdict]
