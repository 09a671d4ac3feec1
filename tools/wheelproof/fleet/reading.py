"""One report becomes what is known of a host. Reports come from other machines: every value is checked, and bounded."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.facts.fleet import DOCTOR, Facts, FleetFacts, Host, HostReport, LeftOut, ReportSource, Unreadable
from wheel_checks.model import SCHEMA, CheckResult, Evidence, Fix, Location, Outcome, Severity
from wheel_checks.rules.fleet import KIND as FLEET
from wheelproof.fleet.inputs import Document

MERGE = "report merge"
UNNAMED = "this machine"
MOST_FACTS, MOST_RESULTS = 5_000, 1_000  # of one report
_LONGEST, _MOST_PARTS = 500, 20  # characters, and entries
_NOTHING_FOUND = (Outcome.PASS, Outcome.SKIP)

H = TypeVar("H", bound=Hashable)
E = TypeVar("E", bound=StrEnum)


class ReportReader:
    """Turns documents into hosts. Equal findings of different hosts are one object: there are thousands of them."""

    def __init__(self) -> None:
        self._seen: dict[Any, Any] = {}
        self._seen_facts: dict[tuple[tuple[str, str | None], ...], Facts] = {}

    def read(self, document: Document) -> FleetFacts:
        """The host that a report is about; for the report of a merge all that it knew. Raises FormatError."""
        if isinstance(document.content, FormatError):
            raise document.content
        report = _Table(document.content)
        if (schema := report.text("schema")) != SCHEMA:
            hint = "wheelproof doctor --facts FILE --format json makes a report of saved facts"
            raise FormatError(
                f"it is no report: its schema is {schema[:60]!r}" if schema else "it is no report: it names no schema",
                expected=SCHEMA,
                hint=hint if schema.startswith("wheelproof.host/") else "",
            )
        command, subjects = report.text("command"), report.tables("subjects")
        if not command or not subjects:
            raise FormatError("the report has no command" if subjects else "the report has no subjects")
        if command == MERGE:
            return self._merged(subjects)
        source = ReportSource(
            self._same(command),
            document.source,
            report.text("started"),
            self._same(report.table("tool").text("version")),
        )
        return FleetFacts((self._host(subjects, source, document.label),))

    def _host(self, subjects: list[_Table], source: ReportSource, label: str) -> Host:
        first = subjects[0].table("facts")
        name = first.text("host") or label or source.source
        compared = {**dict(_compared(source.command, subjects)), "wheelproof": source.version}
        # With several subjects each message says whose it is
        whose = [f"{subject.text('id')}: " if len(subjects) > 1 else "" for subject in subjects]
        found = [(w, result) for w, subject in zip(whose, subjects, strict=True) for result in subject.items("results")]
        report = self._report(source, subjects[0].text("headline"), first.text("root"), compared, found)
        return Host(name, (report,))

    def _merged(self, subjects: list[_Table]) -> FleetFacts:
        """What a merge before this one knew; what it compared is compared anew, with all other hosts."""
        facts = next((subject.table("facts") for subject in subjects if subject.text("kind") == FLEET), None)
        if facts is None:
            raise FormatError("the report of a merge tells nothing of the fleet")
        return FleetFacts(
            tuple(self._merged_host(subject) for subject in subjects if subject.text("kind") == "host"),
            tuple(facts.strings("expected")),
            tuple(facts.strings("unexpected")),
            tuple(Unreadable(told.text("source"), told.text("reason")) for told in facts.tables("unreadable")),
            tuple((told.text("host"), self._source(told)) for told in facts.tables("repeated")),
        )

    def _merged_host(self, subject: _Table) -> Host:
        """A host as a merge before this one told it: its results are those of its reports, one after another."""
        facts = subject.table("facts")
        name, compared = facts.text("host") or subject.text("id"), facts.table("compared")
        told_of, results = facts.tables("reports"), subject.items("results")
        if not told_of or sum(told.count("findings") for told in told_of) != len(results):
            raise FormatError(f"it does not say of which reports the findings of {name} are")
        following = iter(results)
        reports = []
        for told in told_of:
            command = told.text("command")
            values = compared.table(command).values if command in compared.values else None
            found = [("", result) for result in itertools.islice(following, told.count("findings"))]
            left_out = map(_left_out, told.tables("left_out"))
            reports.append(
                self._report(self._source(told), told.text("headline"), told.text("root"), values, found, left_out)
            )
        return Host(name, tuple(reports))

    def _source(self, told: _Table) -> ReportSource:
        return ReportSource(*(self._same(told.text(name)) for name in ("command", "source", "started", "version")))

    def _report(
        self,
        source: ReportSource,
        headline: str,
        root: str,
        facts: Mapping[Any, Any] | None,
        results: Iterable[tuple[str, Any]],
        left_out: Iterable[LeftOut] = (),
    ) -> HostReport:
        """What is kept of a report, of whose results each comes with the words that stand before its message."""
        left_out = [*left_out]
        if facts is not None and len(facts) > MOST_FACTS:
            left_out.append(LeftOut(f"{len(facts):,} facts, and is not compared: {MOST_FACTS:,} are the most"))
            facts = None
        found = list(_found(results))
        if len(found) > MOST_RESULTS:
            found.sort(key=_gravity, reverse=True)
            gravest = found[MOST_RESULTS]
            what = f"{len(found):,} findings, of which the gravest {MOST_RESULTS:,} are kept"
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


def _compared(command: str, subjects: list[_Table]) -> Iterator[tuple[str, str | None]]:
    """What of a report can be compared with the same command's on another host."""
    for subject in subjects:
        kind, name, facts = subject.text("kind"), subject.text("id"), subject.table("facts")
        if kind == "host" and command == DOCTOR:
            yield from facts.table("machine").texts()
        elif kind == "distribution":
            yield facts.text("name"), facts.text("version")
        elif kind == "environment":
            yield "target", facts.text("target")
            yield "accelerator", f"{facts.text('accelerator')} {facts.text('accelerator_version')}".strip()
        elif kind == "installation":
            yield from _of_installation(facts)
        else:
            yield f"{kind} {name}", subject.text("verdict")


def _of_installation(facts: _Table) -> Iterator[tuple[str, str | None]]:
    """Of `wheelproof smoke`: what it ran on. Rates and times differ a little everywhere, and are not compared."""
    for name in ("python", "machine", "torch", "triton", "driver", "device", "level"):
        if facts.text(name):
            yield name, facts.text(name)
    yield "GPUs", ", ".join(gpu.text("name") for gpu in facts.tables("gpus")) or "none"


def _found(results: Iterable[tuple[str, Any]]) -> Iterator[CheckResult]:
    """The findings, and the checks that could not be made."""
    for whose, result in results:
        # Of a hundred results most have passed: these are only counted out, which halves the time of a merge
        if not (isinstance(result, dict) and result.get("outcome") in _NOTHING_FOUND):
            yield _result(_Table(result, "a result"), whose)


def _gravity(result: CheckResult) -> float:
    """What could not be checked is less grave than an error, and graver than a warning."""
    return Severity.ERROR.rank - 0.5 if result.outcome is Outcome.ERROR else result.severity.rank


def _left_out(told: _Table) -> LeftOut:
    severity = told.text("severity")
    return LeftOut(told.text("what"), _choice(Severity, severity) if severity else None)


def _result(result: _Table, whose: str) -> CheckResult:
    fix, location = result.table("fix"), result.table("location")
    line = location.values.get("line")
    return CheckResult(
        rule=result.text("rule"),
        title=result.text("title"),
        outcome=_choice(Outcome, result.text("outcome")),
        severity=_choice(Severity, result.text("severity")),
        message=f"{whose}{result.text('message')}",
        evidence=tuple(
            Evidence(e.text("label"), e.text("value"), e.text("source"))
            for e in result.tables("evidence")[:_MOST_PARTS]
        ),
        fix=Fix(fix.text("summary"), tuple(fix.strings("commands")[:_MOST_PARTS])) if fix.values else None,
        location=(
            Location(location.text("member"), location.text("path"), line if type(line) is int else None)
            if location.values
            else None
        ),
    )


def _choice(choices: type[E], text: str) -> E:
    try:
        return choices(text)
    except ValueError:
        raise FormatError(f"a result is {text[:60]!r}", expected=", ".join(choices)) from None


class _Table:
    """A JSON object whose values have the types that are asked for. What is missing is empty, another type a fault."""

    def __init__(self, values: Any, where: str = "the document") -> None:
        if not isinstance(values, dict):
            raise FormatError(f"{where} is {_kind(values)}", expected="a JSON object")
        self.values: dict[str, Any] = values
        self._where = where

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise FormatError(f"{name} is {_kind(value)}", expected="a text")
        return value[: 4 * _LONGEST]

    def count(self, name: str) -> int:
        value = self.values.get(name)
        if type(value) is not int or value < 0:
            raise FormatError(f"{name} is {_kind(value)}", expected="how many there are")
        return value

    def texts(self) -> Iterator[tuple[str, str | None]]:
        """All values, each a text or null."""
        for name, value in self.values.items():
            yield name, None if value is None else self.text(name)

    def strings(self, name: str) -> list[str]:
        values = self.items(name)
        if not all(isinstance(value, str) for value in values):
            raise FormatError(f"{name} holds something else", expected="a list of texts")
        return [value[: 4 * _LONGEST] for value in values]

    def table(self, name: str) -> _Table:
        value = self.values.get(name)
        return _Table({} if value is None else value, name)

    def tables(self, name: str) -> list[_Table]:
        return [_Table(value, f"an entry of {name}") for value in self.items(name)]

    def items(self, name: str) -> list[Any]:
        values = self.values.get(name)
        if values is None:
            return []
        if not isinstance(values, list):
            raise FormatError(f"{name} is {_kind(values)}", expected="a list")
        return values


def _kind(value: Any) -> str:
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "null")
