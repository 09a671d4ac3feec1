"""One report becomes what is known of a host. Reports come from other machines: every value is checked, and bounded."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from wheel_checks.decode import Check, Policy, decode
from wheel_checks.errors import FormatError
from wheel_checks.facts.fleet.hosts import FleetFacts, Unreadable
from wheel_checks.facts.fleet.rates import ALL_REDUCE, RATE
from wheel_checks.facts.fleet.report import DOCTOR, Facts, Host, HostReport, LeftOut, ReportSource
from wheel_checks.model import SCHEMA, CheckResult, Outcome, Severity
from wheel_checks.rules.fleet import KIND as FLEET
from wheelproof.fleet.inputs import Document

MERGE = "report merge"
UNNAMED = "this machine"
MOST_FACTS, MOST_RESULTS = 5_000, 1_000  # of one report
_LONGEST, _MOST_PARTS = 500, 20  # characters, and entries
_NOTHING_FOUND = (Outcome.PASS, Outcome.SKIP)
_POLICY = Policy(unknown_keys=True, null_is_absent=True, longest=4 * _LONGEST, clipped=True)

H = TypeVar("H", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Tool:
    version: str = ""


@dataclass(frozen=True, slots=True)
class _Subject:
    """Its facts and results are decoded where they are needed: of a hundred results most have passed."""

    id: str = ""
    kind: str = ""
    headline: str = ""
    verdict: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Report:
    schema: str = ""
    command: str = ""
    started: str = ""
    tool: _Tool = _Tool()
    subjects: tuple[_Subject, ...] = ()


@dataclass(frozen=True, slots=True)
class _HostFacts:
    """Facts of the first subject of any report."""

    host: str = ""
    root: str = ""


@dataclass(frozen=True, slots=True)
class _Doctor:
    machine: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Distribution:
    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class _Environment:
    target: str = ""
    accelerator: str = ""
    accelerator_version: str = ""


@dataclass(frozen=True, slots=True)
class _Gpu:
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Installation:
    """Of `wheelproof smoke`: what it ran on. Rates of the node's GPUs together; times of kernels are not compared."""

    python: str = ""
    machine: str = ""
    torch: str = ""
    triton: str = ""
    driver: str = ""
    device: str = ""
    level: str = ""
    gpus: tuple[_Gpu, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _MeasuredGpu:
    """Of `wheelproof smoke`: a GPU and its rates by name. Its UUID differs everywhere."""

    index: int = 0
    rates_compared: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeated(ReportSource):
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merged(ReportSource):
    findings: Annotated[int, Check((0).__le__, "a number of at least 0")]
    headline: str = ""
    root: str = ""
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class _MergedHost(_HostFacts):
    compared: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reports: tuple[_Merged, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fleet:
    expected: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    repeated: tuple[_Repeated, ...] = ()


class ReportReader:
    """Turns documents into hosts. Equal findings of different hosts are one object: there are thousands of them."""

    def __init__(self) -> None:
        self._seen: dict[Any, Any] = {}
        self._seen_facts: dict[tuple[tuple[str, str | None], ...], Facts] = {}

    def read(self, document: Document) -> FleetFacts:
        """The host that a report is about; for the report of a merge all that it knew. Raises FormatError."""
        if isinstance(document.content, FormatError):
            raise document.content
        schema = document.content.get("schema") if isinstance(document.content, dict) else SCHEMA
        if schema != SCHEMA:
            hint = "wheelproof doctor --facts FILE --format json makes a report of saved facts"
            raise FormatError(
                f"it is not a report: its schema is {str(schema)[:60]!r}"
                if schema
                else "it is not a report: it names no schema",
                expected=SCHEMA,
                hint=hint if str(schema).startswith("wheelproof.host/") else "",
            )
        report = decode(_Report, document.content, _POLICY)
        if not report.command or not report.subjects:
            raise FormatError("the report has no command" if report.subjects else "the report has no subjects")
        if report.command == MERGE:
            return self._merged(report.subjects)
        source = ReportSource(
            self._same(report.command), document.source, report.started, self._same(report.tool.version)
        )
        return FleetFacts((self._host(report.subjects, source, document.label),))

    def _host(self, subjects: Sequence[_Subject], source: ReportSource, label: str) -> Host:
        first = _facts_of(subjects, 0, _HostFacts)
        compared = {**dict(_compared(source.command, subjects)), "wheelproof": source.version}
        found: list[CheckResult] = []
        for number, subject in enumerate(subjects):
            whose = f"{subject.id}: " if len(subjects) > 1 else ""  # with several, each message says whose it is
            found += _found(subject.results, number, whose)
        report = self._report(source, subjects[0].headline, first.root, compared, found)
        return Host(first.host or label or source.source, (report,))

    def _merged(self, subjects: Sequence[_Subject]) -> FleetFacts:
        """What a merge before this one knew; what it compared is compared again, with all other hosts."""
        number = next((number for number, subject in enumerate(subjects) if subject.kind == FLEET), None)
        if number is None:
            raise FormatError("the merged report has no fleet")
        facts = _facts_of(subjects, number, _Fleet)
        return FleetFacts(
            tuple(self._merged_host(subjects, n) for n, subject in enumerate(subjects) if subject.kind == "host"),
            facts.expected,
            facts.unexpected,
            facts.unreadable,
            tuple((repeated.host, self._source(repeated)) for repeated in facts.repeated),
        )

    def _merged_host(self, subjects: Sequence[_Subject], number: int) -> Host:
        """A host as a merge before this one described it: its results are those of its reports, in their order."""
        facts, results = _facts_of(subjects, number, _MergedHost), subjects[number].results
        name = facts.host or subjects[number].id
        if not facts.reports or sum(report.findings for report in facts.reports) != len(results):
            raise FormatError(f"it does not state the reports that the findings of {name} come from")
        reports, start = [], 0
        for merged in facts.reports:
            found = _found(results[start : start + merged.findings], number, "", start)
            start += merged.findings
            compared, source = facts.compared.get(merged.command), self._source(merged)
            reports.append(self._report(source, merged.headline, merged.root, compared, found, merged.left_out))
        return Host(name, tuple(reports))

    def _source(self, merged: ReportSource) -> ReportSource:
        return ReportSource(*map(self._same, (merged.command, merged.source, merged.started, merged.version)))

    def _report(
        self,
        source: ReportSource,
        headline: str,
        root: str,
        facts: Mapping[Any, Any] | None,
        found: Iterable[CheckResult],
        left_out: Iterable[LeftOut] = (),
    ) -> HostReport:
        """What is kept of a report in which these findings are."""
        left_out = [*left_out]
        if facts is not None and len(facts) > MOST_FACTS:
            left_out.append(LeftOut(f"{len(facts):,} facts, and is not compared: {MOST_FACTS:,} are the most"))
            facts = None
        found = [*found]
        if len(found) > MOST_RESULTS:
            found.sort(key=_gravity, reverse=True)
            gravest = found[MOST_RESULTS]
            what = f"{len(found):,} findings, of which the {MOST_RESULTS:,} most severe are kept"
            left_out.append(LeftOut(what, None if gravest.outcome is Outcome.ERROR else gravest.severity))
        return HostReport(
            source,
            self._same(headline),
            None if facts is None else self._facts(facts),
            self._same(tuple(self._same(result) for result in found[:MOST_RESULTS])),
            self._same(root),
            tuple(left_out),
        )

    def _facts(self, facts: Mapping[Any, Any]) -> Facts:
        """Texts of bounded length; the hosts of a fleet mostly have equal facts, and share them."""
        bounded = {
            self._same(str(name)[:_LONGEST]): None if value is None else self._same(str(value)[:_LONGEST])
            for name, value in facts.items()
        }
        return self._seen_facts.setdefault(tuple(bounded.items()), bounded)

    def _same(self, value: H) -> H:
        """The first object that was equal to ``value``."""
        same: H = self._seen.setdefault(value, value)
        return same


def _facts_of(subjects: Sequence[_Subject], number: int, kind: Callable[..., T]) -> T:
    return decode(kind, subjects[number].facts, _POLICY, path=("subjects", number, "facts"))


def _compared(command: str, subjects: Sequence[_Subject]) -> Iterator[tuple[str, str | None]]:
    """What of a report can be compared with the same command's on another host."""
    for number, subject in enumerate(subjects):
        if subject.kind == "host" and command == DOCTOR:
            yield from _facts_of(subjects, number, _Doctor).machine.items()
        elif subject.kind == "distribution":
            distribution = _facts_of(subjects, number, _Distribution)
            yield distribution.name, distribution.version
        elif subject.kind == "environment":
            environment = _facts_of(subjects, number, _Environment)
            yield "target", environment.target
            yield "accelerator", f"{environment.accelerator} {environment.accelerator_version}".strip()
        elif subject.kind == "installation":
            yield from _of_installation(_facts_of(subjects, number, _Installation))
        elif subject.kind == "gpu":
            yield from _of_gpu(_facts_of(subjects, number, _MeasuredGpu), subject.verdict)
        else:
            yield f"{subject.kind} {subject.id}", subject.verdict


def _of_installation(installation: _Installation) -> Iterator[tuple[str, str | None]]:
    for name in ("python", "machine", "torch", "triton", "driver", "device", "level"):
        if value := getattr(installation, name):
            yield name, value
    yield "GPUs", ", ".join(gpu.name for gpu in installation.gpus) or "none"
    if ALL_REDUCE in installation.rates:
        yield f"{RATE}{ALL_REDUCE}", str(installation.rates[ALL_REDUCE])


def _of_gpu(measured: _MeasuredGpu, verdict: str) -> Iterator[tuple[str, str | None]]:
    yield f"GPU {measured.index}", verdict
    for name, rate in measured.rates_compared.items():
        yield f"{RATE}GPU {measured.index} {name}", str(rate)


def _found(results: Sequence[Any], subject: int, whose: str, start: int = 0) -> Iterator[CheckResult]:
    """The findings, and the checks that could not be made; each message starts with the words ``whose``.

    ``results`` are those of the subject with this number from ``start`` on.
    """
    for number, result in enumerate(results, start):
        # Of a hundred results most have passed: these are only counted out, which halves the time of a merge
        if not (isinstance(result, dict) and result.get("outcome") in _NOTHING_FOUND):
            yield _kept(decode(CheckResult, result, _POLICY, path=("subjects", subject, "results", number)), whose)


def _gravity(result: CheckResult) -> float:
    """What could not be checked is less grave than an error, and graver than a warning."""
    return Severity.ERROR.rank - 0.5 if result.outcome is Outcome.ERROR else result.severity.rank


def _kept(result: CheckResult, whose: str) -> CheckResult:
    """What is kept of a result. Times differ everywhere: without them equal findings of many hosts are equal."""
    return replace(
        result,
        message=f"{whose}{result.message}",
        evidence=result.evidence[:_MOST_PARTS],
        fix=result.fix and replace(result.fix, commands=result.fix.commands[:_MOST_PARTS]),
        location=result.location and replace(result.location, column=None),
        seconds=0.0,
    )
