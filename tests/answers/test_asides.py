"""Findings that decide nothing are one phrase for each rule."""

from __future__ import annotations

from dataclasses import replace

from tests.answers.results import ERROR, FAIL, result
from wheel_checks.answers.evidence import asides
from wheel_checks.answers.questions import ASIDES
from wheel_checks.catalogue import all_rules
from wheel_checks.model import Audience, CheckResult, Severity, Subject


def wheel(name: str, *results: CheckResult, reader: Audience = Audience.INSTALLER) -> Subject:
    aside = tuple(replace(one, decides=False) for one in results)
    return Subject(f"{name}-1.0.whl", "wheel", facts={"package": name}, results=aside).read_by(reader)


def test_packages_are_counted_and_one_is_named() -> None:
    code, script = result("SEC001", FAIL), result("SEC008", FAIL)
    found = asides([wheel("one", code, code, script), wheel("two", code)])
    assert found == ("2 packages run code at start-up", "one installs scripts with the names of other programs")


def test_what_could_not_be_checked_is_counted_too() -> None:
    assert asides([wheel("one", result("SEC010", ERROR))]) == ("SEC010 could not be checked in one",)


def test_notes_what_decides_and_what_is_for_publishers_are_no_asides() -> None:
    note = result("SEC004", FAIL, Severity.NOTE)
    publishers = result("WHL106", FAIL, Severity.WARNING, audience=Audience.PUBLISHER)
    decides = Subject("x.whl", "wheel", results=(result("WHL601", FAIL, Severity.WARNING),), reader=Audience.INSTALLER)
    assert asides([wheel("one", note, publishers), decides]) == ()
    assert asides([wheel("one", result("SEC001", FAIL), reader=Audience.PUBLISHER)]) == ()


def test_every_rule_that_decides_nothing_has_a_phrase() -> None:
    wanted = {rule.id for rule in all_rules() if not rule.decides and rule.severity is not Severity.NOTE}
    assert wanted - {"SEC012"} <= set(ASIDES)  # which judges pairs, and no installer reads them
