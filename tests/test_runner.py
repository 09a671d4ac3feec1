"""The runner: every outcome of a rule, and rules that misbehave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from wheel_checks.errors import NotFoundError
from wheel_checks.model import Evidence, Finding, Fix, Location, Outcome, Rule, Severity, Unavailable, need
from wheel_checks.runner import MAX_FINDINGS, run_rules


def rule_of(check: Callable[[Any, Any], Iterable[Finding]], rule_id: str = "TST001") -> Rule:
    return Rule(rule_id, "three is a prime", "number", Severity.ERROR, "Why.", "4", "Take 3.", check)


def test_no_finding_is_a_pass_with_the_title() -> None:
    (result,) = run_rules([rule_of(lambda facts, expectations: [])], None, None)

    assert (result.outcome, result.message, result.severity) == (Outcome.PASS, "three is a prime", Severity.ERROR)
    assert result.seconds >= 0


def test_a_finding_is_a_failure_with_all_that_it_says() -> None:
    finding = Finding("4 is even", (Evidence("half", "2"),), Fix("Take 3."), Location("a", line=1))

    (result,) = run_rules([rule_of(lambda facts, expectations: [finding])], None, None)

    assert (result.rule, result.outcome, result.severity) == ("TST001", Outcome.FAIL, Severity.ERROR)
    assert (result.message, result.evidence, result.fix, result.location) == (
        finding.message,
        finding.evidence,
        finding.fix,
        finding.location,
    )


def test_every_finding_is_a_result_and_its_severity_goes_before_the_rules() -> None:
    def check(facts: list[int], _: object) -> Iterator[Finding]:
        for number in facts:
            yield Finding(f"{number}", severity=Severity.NOTE if number > 1 else None)

    results = run_rules([rule_of(check)], [1, 2], None)

    assert [(result.message, result.severity) for result in results] == [("1", "error"), ("2", "note")]


@pytest.mark.parametrize(
    ("hint", "message"), [("", "not asked for"), ("--depth full reads it", "not asked for (--depth full reads it)")]
)
def test_a_missing_fact_is_a_skip_with_its_reason(hint: str, message: str) -> None:
    def check(facts: str | Unavailable, _: object) -> Iterator[Finding]:
        yield Finding(need(facts))

    (result,) = run_rules([rule_of(check)], Unavailable("not asked for", hint), None)

    assert (result.outcome, result.message) == (Outcome.SKIP, message)


def test_an_error_that_is_meant_for_a_user_is_told_as_it_is() -> None:
    def check(_facts: object, _: object) -> Iterable[Finding]:
        raise NotFoundError("there is no such file", expected="a wheel", hint="Look elsewhere.")

    (result,) = run_rules([rule_of(check)], None, None)

    assert (result.outcome, result.message) == (Outcome.ERROR, "there is no such file")
    assert (result.evidence, result.fix) == ((Evidence("expected", "a wheel"),), Fix("Look elsewhere."))


def test_a_crash_is_an_error_that_names_its_place_and_hides_nothing_else() -> None:
    def crash(facts: dict[str, int], _: object) -> Iterator[Finding]:
        yield Finding(str(facts["absent"]))

    results = run_rules([rule_of(crash), rule_of(lambda facts, expectations: [], "TST002")], {}, None)

    assert [(result.rule, result.outcome) for result in results] == [("TST001", "error"), ("TST002", "pass")]
    assert results[0].message == "the check itself crashed; please report this as a bug"
    (evidence,) = results[0].evidence
    assert evidence.value == "KeyError: 'absent'"
    assert evidence.source.startswith("test_runner.py:")
    assert evidence.source.endswith(" in crash")


def test_findings_beyond_the_limit_are_counted_with_their_worst_severity() -> None:
    def check(_facts: object, _: object) -> Iterator[Finding]:
        for number in range(MAX_FINDINGS + 1_500):
            yield Finding(f"{number}", severity=Severity.NOTE if number < MAX_FINDINGS else Severity.WARNING)

    results = run_rules([rule_of(check)], None, None)

    assert len(results) == MAX_FINDINGS + 1
    assert (results[-1].message, results[-1].severity) == ("and 1,500 more findings of this rule", Severity.WARNING)
    assert {result.severity for result in results[:-1]} == {Severity.NOTE}


def test_an_undecided_finding_is_an_error_beside_the_failures() -> None:
    found = [Finding("4 is even"), Finding("5 could not be divided", (Evidence("by", "0"),), undecided=True)]

    results = run_rules([rule_of(lambda facts, expectations: found)], None, None)

    assert [(result.outcome, result.message) for result in results] == [
        (Outcome.FAIL, "4 is even"),
        (Outcome.ERROR, "5 could not be divided"),
    ]
    assert results[1].evidence == (Evidence("by", "0"),)


def test_undecided_findings_beyond_the_limit_do_not_become_failures() -> None:
    def check(_facts: object, _: object) -> Iterator[Finding]:
        for number in range(MAX_FINDINGS + 3):
            yield Finding(f"{number}", undecided=number != MAX_FINDINGS)

    results = run_rules([rule_of(check)], None, None)

    assert [(result.outcome, result.message) for result in results[MAX_FINDINGS:]] == [
        (Outcome.FAIL, "and 1 more findings of this rule"),
        (Outcome.ERROR, "and 2 more findings of this rule"),
    ]


def test_rules_see_facts_and_expectations() -> None:
    seen: list[object] = []

    def check(facts: object, expectations: object) -> Iterable[Finding]:
        seen.append((facts, expectations))
        return ()

    run_rules([rule_of(check)], "facts", "expectations")

    assert seen == [("facts", "expectations")]
