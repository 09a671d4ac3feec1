from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.catalogue import all_rules
from wheel_checks.model import CheckResult, Evidence, Location, Report, Severity

SCHEMA = Path(__file__).parents[1] / "data" / "sarif-2.1.0.schema.json"


def run_of(report: Report) -> dict[str, Any]:
    [run] = json.loads(rendered(report, "sarif"))["runs"]
    return dict(run)


def fingerprints(*results: CheckResult) -> list[str]:
    run = run_of(reports.report(reports.wheel(results=results)))
    return [result["partialFingerprints"]["wheelproof/v1"] for result in run["results"]]


@pytest.mark.parametrize(
    "build", [reports.passing, reports.mixed, reports.empty, reports.missing_wheel, reports.hostile, reports.forty]
)
def test_logs_follow_the_official_schema(build: Callable[[], Report]) -> None:
    checker = jsonschema.Draft4Validator(json.loads(SCHEMA.read_text()), format_checker=jsonschema.FormatChecker())
    checker.validate(json.loads(rendered(build(), "sarif")))


def test_failures_are_results_with_their_level() -> None:
    run = run_of(reports.mixed())
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("WHL301", "error"),
        ("WHL101", "error"),
        ("WHL501", "warning"),
    ]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == ["WHL301", "WHL101", "WHL501"]


def test_a_check_that_crashed_is_a_notification_and_the_execution_no_success() -> None:
    [invocation] = run_of(reports.mixed())["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 1
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["associatedRule"]["id"] == "WHL601"
    assert run_of(reports.passing())["invocations"][0]["executionSuccessful"] is True


def test_only_rules_with_something_to_say_are_described() -> None:
    assert [rule["id"] for rule in run_of(reports.mixed())["tool"]["driver"]["rules"]] == [
        "WHL101",
        "WHL301",
        "WHL501",
        "WHL601",
    ]
    assert run_of(reports.passing())["tool"]["driver"]["rules"] == []


def test_a_registered_rule_brings_its_page() -> None:
    rule = all_rules()[0]
    failed = replace(reports.BAD_MEMBER, rule=rule.id, severity=Severity.NOTE)
    [described] = run_of(reports.report(reports.wheel(results=(failed,))))["tool"]["driver"]["rules"]
    assert described["defaultConfiguration"] == {"level": rule.severity.value}
    assert rule.fix.split("\n")[0][:20] in described["help"]["text"]


def test_a_finding_is_located_in_its_wheel_and_member() -> None:
    run = run_of(reports.mixed())
    [location] = run["results"][0]["locations"]
    artifact = run["artifacts"][location["physicalLocation"]["artifactLocation"]["index"]]
    assert artifact["location"]["uri"] == "torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert artifact["hashes"] == {"sha-256": "ab" * 32}
    assert artifact["length"] == 145_996_088
    assert artifact["properties"]["facts"]["accelerator"] == "cpu"
    assert location["logicalLocations"] == [
        {"fullyQualifiedName": "../evil.py", "kind": "member", "properties": {"line": 3}}
    ]


def test_a_finding_in_a_file_has_its_line() -> None:
    at = Location(path="/srv/my pins.toml", line=3, column=5)
    run = run_of(reports.report(reports.wheel(results=(replace(reports.BAD_MEMBER, location=at),))))
    assert run["results"][0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "file:///srv/my%20pins.toml"},
        "region": {"startLine": 3, "startColumn": 5},
    }


@pytest.mark.parametrize("name", ["a b#c?d.whl", "//host/x", "http://x", "../up", "é漢"])
def test_a_name_becomes_one_segment_of_a_uri(name: str) -> None:
    uri = run_of(reports.report(replace(reports.wheel(), id=name)))["artifacts"][0]["location"]["uri"]
    assert set(uri).isdisjoint(" :/#?")
    assert unquote(uri) == name


def test_fingerprints_ignore_numbers_that_change_from_run_to_run() -> None:
    again = replace(
        reports.TOO_LARGE,
        message="the wheel is 420.0 MB, above the limit of 401 MB",
        evidence=(Evidence("size", "420,000,000 bytes"),),
        seconds=9.0,
    )
    assert fingerprints(again) == fingerprints(reports.TOO_LARGE)


def test_fingerprints_tell_rules_members_and_repetitions_apart() -> None:
    elsewhere = replace(reports.BAD_MEMBER, location=Location(member="other.py"))
    found = fingerprints(reports.TOO_LARGE, reports.BAD_MEMBER, elsewhere, elsewhere)
    assert len(set(found)) == 4


def test_a_message_holds_no_link_that_a_wheel_chose() -> None:
    texts = [result["message"]["text"] for result in run_of(reports.hostile())["results"]]
    assert texts
    assert not any("](" in text for text in texts)
