from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.catalogue import all_rules
from wheel_checks.model import CheckResult, Evidence, Location, Report, Severity, Subject
from wheel_checks.report import pages

SCHEMA = Path(__file__).parents[1] / "data" / "sarif-2.1.0.schema.json"


def run_of(report: Report) -> dict[str, Any]:
    [run] = json.loads(rendered(report, "sarif"))["runs"]
    return dict(run)


def fingerprints(*results: CheckResult) -> list[str]:
    run = run_of(reports.report(reports.wheel(results=results)))
    return [result["partialFingerprints"]["wheelproof/v2"] for result in run["results"]]


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


def category(*wheels: Subject, command: str = "verify") -> str:
    return str(run_of(replace(reports.report(*wheels), command=command))["automationDetails"]["id"])


def test_uploads_for_two_platforms_do_not_replace_each_other() -> None:
    arm, intel = category(reports.wheel()), category(reports.wheel(machine="x86_64"))
    assert (arm, intel) == ("wheelproof/verify/torch/aarch64/", "wheelproof/verify/torch/x86_64/")


def test_a_category_says_what_was_asked() -> None:
    both = (reports.wheel(), reports.wheel(machine="x86_64"))
    assert category(*both, command="release") == "wheelproof/release/torch/aarch64+x86_64/"
    stack = Subject("pins/requirements.txt on cp312 aarch64", "stack", facts={"target": "cp312 aarch64"})
    gpu = replace(
        reports.wheel(name="vllm"), facts={"target": "cp312 aarch64", "gpu_code": {"products": [{"name": "GB200"}]}}
    )
    assert category(stack, gpu, command="stack") == "wheelproof/stack/pins_requirements.txt/cp312 aarch64/GB200/"
    assert category() == "wheelproof/verify/"


def test_a_new_release_of_the_project_has_the_category_and_the_fingerprints_of_the_old_one() -> None:
    at = Location(member="torch-2.11.0.dist-info/METADATA")
    again = Location(member="torch-2.12.0.dist-info/METADATA")
    old = reports.wheel("2.11.0", results=(reports.EXPECTED_CUDA, replace(reports.BAD_MEMBER, location=at)))
    new = reports.wheel("2.12.0", results=(reports.EXPECTED_CUDA, replace(reports.BAD_MEMBER, location=again)))
    first, second = run_of(reports.report(old)), run_of(reports.report(new))
    assert first["automationDetails"] == second["automationDetails"]
    assert [r["partialFingerprints"] for r in first["results"]] == [r["partialFingerprints"] for r in second["results"]]


def test_fingerprints_do_not_depend_on_where_the_checkout_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        at = Location(path=str(tmp_path / folder / "requirements.txt"), line=3)
        found |= set(fingerprints(replace(reports.BAD_MEMBER, location=at)))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (
            ["Repository, https://example.test/them/wheelproof/"],
            "https://example.test/them/wheelproof/blob/HEAD/docs/rules/",
        ),
        (["Repository, https://example.test/OWNER/wheelproof"], None),
        (["Homepage, https://example.test/them"], None),
    ],
)
def test_a_rule_links_to_its_page_where_the_repository_is_known(
    urls: list[str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = Message()
    for url in urls:
        message["Project-URL"] = url
    monkeypatch.setattr(pages, "metadata", lambda name: message)
    pages._repository.cache_clear()
    rule = all_rules()[0]
    failed = replace(reports.BAD_MEMBER, rule=rule.id)
    try:
        [described] = run_of(reports.report(reports.wheel(results=(failed,))))["tool"]["driver"]["rules"]
    finally:
        pages._repository.cache_clear()
    assert described.get("helpUri") == (expected and f"{expected}{rule.id}.md")
