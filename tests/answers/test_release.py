"""The first line of ``release``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.answers.results import ERROR, FAIL, SKIP, result
from wheel_checks.answers.release import ReleaseQuestion, answer_release
from wheel_checks.model import CheckResult, Outcome, Subject, Verdict

EVERYTHING = ReleaseQuestion(parity=True, accelerators={"a.whl"}, gpus={"a.whl"})


def release(*results: CheckResult) -> Subject:
    given = {item.rule for item in results}
    rest = (result(rule) for rule in ("REL101", "REL108", "REL109", "REL110") if rule not in given)
    return Subject("demo 1.0", "release-set", results=(*results, *rest))


def file(*results: CheckResult) -> Subject:
    given = {item.rule for item in results}
    facts = {"native_members": {"count": 0}}
    return Subject(
        "a.whl", "wheel", facts=facts, results=(*results, *(result(r) for r in ("REL103", "WHL601") if r not in given))
    )


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


def test_the_libraries_of_every_compiled_wheel_are_read() -> None:
    compiled = replace(file(), facts={"native_members": {"count": 2}})
    unread = result("WHL521", SKIP, message="its libraries were not read (--depth links)")
    found = answer_release(ReleaseQuestion(), [release(), replace(compiled, results=(*compiled.results, unread))])
    assert found.line == (
        "must not be uploaded: something is not proven: a.whl: its libraries were not read (--depth links)"
    )
    assert found.claims[1].command == "--depth links"
    elsewhere = replace(compiled, facts={**compiled.facts, "platform": "macosx_11_0_arm64"})
    assert answer_release(ReleaseQuestion(), [release(), elsewhere]).line == (
        "may be uploaded; loading on macosx_11_0_arm64 was not checked"
    )
