"""The first lines of ``release`` and ``diff``."""

from __future__ import annotations

import pytest

from tests.answers.results import ERROR, FAIL, SKIP, result
from wheel_checks.answers.release import ReleaseQuestion, answer_difference, answer_release
from wheel_checks.model import CheckResult, Outcome, Severity, Subject, Verdict

EVERYTHING = ReleaseQuestion(parity=True, accelerators={"a.whl"}, gpus={"a.whl"})


def release(*results: CheckResult) -> Subject:
    given = {item.rule for item in results}
    rest = (result(rule) for rule in ("REL101", "REL108", "REL109", "REL110") if rule not in given)
    return Subject("demo 1.0", "release-set", results=(*results, *rest))


def file(*results: CheckResult) -> Subject:
    given = {item.rule for item in results}
    return Subject("a.whl", "wheel", results=(*results, *(result(r) for r in ("REL103", "WHL601") if r not in given)))


def test_yes_and_no() -> None:
    assert answer_release(EVERYTHING, [release(), file()]).line == "may be uploaded"
    missing = release(result("REL101", FAIL, message="aarch64 has no file for Python 3.13"))
    assert answer_release(EVERYTHING, [missing, file()]).line == (
        "must not be uploaded: aarch64 has no file for Python 3.13"
    )


@pytest.mark.parametrize("rule", ["REL101", "REL108", "REL109", "REL110", "REL103", "WHL601"])
@pytest.mark.parametrize("outcome", [SKIP, ERROR])
def test_what_is_not_proven_is_not_uploaded(rule: str, outcome: Outcome) -> None:
    open_one = result(rule, outcome, message="not read")
    of_release = rule in ("REL101", "REL108", "REL109", "REL110")
    subjects = [release(open_one), file()] if of_release else [release(), file(open_one)]
    found = answer_release(EVERYTHING, subjects)
    assert found.verdict is Verdict.UNDECIDED
    assert found.line.startswith("must not be uploaded: something is not proven: ")
    if rule in ("REL110", "REL103", "WHL601") and outcome is SKIP:
        assert answer_release(ReleaseQuestion(), subjects).verdict is Verdict.PASS  # not requested


def test_a_comparison() -> None:
    pair = Subject("demo 1.0: aarch64 against x86_64", "pair", results=(result("REL201"),))
    assert answer_difference([pair]).line == "the two sides agree"
    remark = Subject("demo", "pair", results=(result("REL202", FAIL, Severity.WARNING, message="a file more"),))
    assert (
        answer_difference([remark]).line
        == "the two sides agree, apart from 1 finding that is not an error: a file more"
    )
    wrong = Subject("demo", "pair", results=(result("REL201", FAIL, message="CUDA against CPU"),))
    assert answer_difference([wrong]).line == "the two sides do not agree: CUDA against CPU"
    unread = Subject("demo", "pair", results=(result("WHL000", ERROR, message="no such file"),))
    assert answer_difference([unread]).line == "not proven: no such file"
    assert answer_difference([]).verdict is Verdict.UNDECIDED
