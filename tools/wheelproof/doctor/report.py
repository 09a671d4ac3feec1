"""Judges a host and makes the report: the facts may have been read here and now, or elsewhere and long ago."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from wheel_checks.catalogue import select_rules
from wheel_checks.facts.gpu.expected import HostExpectation
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import CheckResult, Claim, Outcome, Report, Severity, Subject, Verdict
from wheel_checks.rules.host.cause import KIND
from wheel_checks.runner import run_rules
from wheelproof.doctor import summary
from wheelproof.doctor.applicable import skip_inapplicable
from wheelproof.doctor.diagnosis import Diagnosis, diagnose
from wheelproof.doctor.verdict import answer_host
from wheelproof.plugins.loading import NO_PLUGINS, Plugins
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection


@dataclass(frozen=True, slots=True)
class Examination:
    """A host, the results of every rule, the diagnosis, and the expected hardware."""

    facts: HostFacts
    results: tuple[CheckResult, ...]
    diagnosis: Diagnosis
    expected: HostExpectation | None = None


def examine(facts: HostFacts, expected: HostExpectation | None = None, plugins: Plugins = NO_PLUGINS) -> Examination:
    """Judge the host by all rules, whichever of them are shown: a diagnosis that ignores a cause would name another."""
    rules = plugins.chosen(select_rules(KIND))
    results = skip_inapplicable(run_rules(rules, facts, Expectations(host=expected)), facts, expected)
    return Examination(facts, results, diagnose(facts, results, expected=expected), expected)


@dataclass(frozen=True, slots=True)
class Showing:
    """How an examination is shown: the name of its subject, the rules, and whether with all facts.

    ``host`` is the machine's name if the user gave one; a fleet goes by it.
    """

    name: str = "this machine"
    selection: Selection = EVERY_RULE
    detail: bool = False
    host: str = ""


def make_report(
    examination: Examination,
    showing: Showing,
    opened: OpenReport,
    *,
    more: Sequence[Subject] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, object] = MappingProxyType({}),
) -> Report:
    """The report of an examination; ``more`` are further subjects, ``notes`` further sentences for its end, and
    ``facts`` further ones of the host.
    """
    known, diagnosis = examination.facts, examination.diagnosis
    host = summary.subject(showing.host or showing.name, known, diagnosis, examination.results)
    named = {"host": showing.host} if showing.host else {}
    host = replace(host, facts={**named, **host.facts, **facts})
    showing.selection.rules(KIND)  # for the error of a prefix that means nothing
    host = replace(host, results=tuple(showing.selection.kept(host.results)))
    overview = summary.overview(known, diagnosis, detail=showing.detail, more=notes)
    answer = answer_host(known, diagnosis, examination.results, examination.expected)
    errors = [r for r in host.results if r.outcome is Outcome.FAIL and r.severity is Severity.ERROR]
    if answer.verdict is Verdict.FAIL and not errors:
        answer = replace(answer, verdict=Verdict.UNDECIDED)  # the deciding rule was not selected, or was ignored
    left_open = answer.reasons if answer.verdict is Verdict.UNDECIDED else ()
    answer = replace(answer, claims=(Claim("computes", answer.verdict, open=left_open),))
    return opened.close((host, *more), showing.selection, overview=overview, answers=(answer,))
