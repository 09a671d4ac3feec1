"""The result model: severities, verdicts and exit codes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wheel_checks.model import (
    Audience,
    CheckResult,
    FactUnavailableError,
    FailOn,
    Outcome,
    Report,
    Severity,
    Subject,
    Unavailable,
    Verdict,
    need,
)


def result(outcome: str, severity: str = "error") -> CheckResult:
    return CheckResult("TST001", "a title", Outcome(outcome), Severity(severity), "a message")


def subject(*results: CheckResult) -> Subject:
    return Subject("demo-1.0-py3-none-any.whl", "wheel", results=results)


def report(*subjects: Subject, fail_on: FailOn = FailOn.ERROR) -> Report:
    return Report("verify", "0.1", "2026-11-20T09:00:00Z", 0.1, subjects, fail_on)


def test_severities_are_ordered() -> None:
    assert sorted(Severity, key=lambda severity: severity.rank) == ["note", "warning", "error"]


@pytest.mark.parametrize(
    ("fail_on", "included"),
    [("error", ["error"]), ("warning", ["warning", "error"]), ("never", [])],
)
def test_fail_on_names_the_lowest_severity_that_fails(fail_on: str, included: list[str]) -> None:
    assert [severity for severity in Severity if FailOn(fail_on).includes(severity)] == included


@pytest.mark.parametrize(
    ("results", "fail_on", "verdict", "exit_code"),
    [
        ([], "error", "pass", 0),
        ([("pass", "error"), ("skip", "error")], "error", "pass", 0),
        ([("fail", "error")], "error", "fail", 1),
        ([("fail", "warning")], "error", "pass", 0),
        ([("fail", "warning")], "warning", "fail", 1),
        ([("fail", "note")], "warning", "pass", 0),
        ([("fail", "error")], "never", "pass", 0),
        ([("error", "note")], "error", "undecided", 3),
        ([("error", "note")], "never", "undecided", 3),
        ([("error", "error"), ("fail", "error")], "error", "fail", 1),
        ([("error", "error"), ("fail", "warning")], "error", "undecided", 3),
    ],
)
def test_the_verdict_of_one_subject(results: list[tuple[str, str]], fail_on: str, verdict: str, exit_code: int) -> None:
    judged = subject(*(result(outcome, severity) for outcome, severity in results))
    whole = report(judged, fail_on=FailOn(fail_on))

    assert (whole.verdict_of(judged), whole.verdict, whole.exit_code) == (verdict, verdict, exit_code)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([], Verdict.UNDECIDED),
        (["pass", "pass"], Verdict.PASS),
        (["pass", "error"], Verdict.UNDECIDED),
        (["error", "fail"], Verdict.FAIL),
    ],
)
def test_the_worst_subject_decides_and_no_subject_decides_nothing(outcomes: list[str], verdict: Verdict) -> None:
    assert report(*(subject(result(outcome)) for outcome in outcomes)).verdict is verdict


def test_a_finding_weighs_as_its_reader_takes_it() -> None:
    taken = replace(result("fail", "error"), by_reader=(Audience.INSTALLER, Severity.WARNING))
    judged = subject(taken, result("fail", "note"))
    assert [one.severity for one in judged.read_by(Audience.INSTALLER).results] == ["warning", "note"]
    assert [one.severity for one in judged.read_by(Audience.PUBLISHER).results] == ["error", "note"]
    assert report(judged.read_by(Audience.INSTALLER)).verdict is Verdict.PASS
    assert report(judged.read_by(Audience.BOTH)).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("decides", "refused_by", "installer", "severity", "counts"),
    [
        (True, "", "", "error", True),
        (True, "", "uv", "error", True),
        (False, "", "", "warning", False),  # code at start-up
        (False, "", "uv", "warning", False),
        (True, "pip", "", "warning", False),  # a line that only pip refuses
        (True, "pip", "uv", "note", False),
        (True, "pip", "pip", "error", True),
        (True, "uv", "pip", "note", False),
    ],
)
def test_only_what_decides_is_an_error_for_an_installer(
    decides: bool, refused_by: str, installer: str, severity: str, counts: bool
) -> None:
    found = replace(result("fail", "error"), decides=decides, refused_by=refused_by)
    read = subject(found).read_by(Audience.INSTALLER, installer)
    assert read == read.read_by(Audience.INSTALLER)  # once read it stays
    (seen,) = read.results
    assert (seen.severity, seen.decides, report(read).verdict is Verdict.FAIL) == (severity, counts, counts)
    assert report(subject(found).read_by(Audience.PUBLISHER)).verdict is Verdict.FAIL
    unread = subject(replace(found, outcome=Outcome.ERROR)).read_by(Audience.INSTALLER, installer)
    assert report(unread).verdict is (Verdict.UNDECIDED if counts else Verdict.PASS)


def test_a_warning_that_decides_nothing_fails_where_warnings_fail() -> None:
    judged = subject(replace(result("fail", "error"), decides=False)).read_by(Audience.INSTALLER)
    assert replace(report(judged), fail_on=FailOn.WARNING).verdict is Verdict.FAIL


def test_outcomes_are_counted() -> None:
    whole = report(subject(result("pass"), result("fail")), subject(result("pass")))

    assert [whole.count(outcome) for outcome in Outcome] == [2, 1, 0, 0]


def test_need_gives_the_fact_or_raises_with_the_reason() -> None:
    missing = Unavailable("RECORD is not read", "--depth full")

    assert need("") == ""
    with pytest.raises(FactUnavailableError, match="RECORD is not read") as caught:
        need(missing)
    assert caught.value.unavailable is missing
