from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.model import Location, Report


def entries(report: Report) -> list[dict[str, Any]]:
    return list(json.loads(rendered(report, "gitlab")))


def test_each_problem_is_an_entry_with_what_gitlab_demands() -> None:
    found = entries(reports.mixed())
    assert [(one["check_name"], one["severity"]) for one in found] == [
        ("WHL301", "critical"),
        ("WHL101", "critical"),
        ("WHL501", "minor"),
        ("WHL601", "major"),
    ]
    for one in found:
        assert one["description"]
        assert one["location"]["path"]
        assert one["location"]["lines"]["begin"] >= 1
    assert len({one["fingerprint"] for one in found}) == len(found)


def test_a_pass_is_an_empty_array() -> None:
    assert entries(reports.passing()) == []


def test_what_could_not_be_checked_says_so() -> None:
    (unchecked,) = (one for one in entries(reports.mixed()) if one["check_name"] == "WHL601")
    assert unchecked["description"].startswith("not checked: WHL601 ")


def test_a_file_below_the_working_folder_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "pins/all.txt", "./pins/all.txt", "pins/all.txt"):
        at = Location(path=str(path), line=3)
        (one,) = entries(reports.report(reports.wheel(results=(replace(reports.BAD_MEMBER, location=at),))))
        assert one["location"] == {"path": "pins/all.txt", "lines": {"begin": 3}}


def test_two_findings_that_are_alike_have_fingerprints_of_their_own() -> None:
    wheels = [reports.wheel(results=(reports.BAD_MEMBER, reports.BAD_MEMBER)) for _ in range(2)]
    found = entries(reports.report(*wheels))
    assert len({one["fingerprint"] for one in found}) == 4


def test_evidence_and_fix_are_in_the_body() -> None:
    (cpu,) = (one for one in entries(reports.mixed()) if one["check_name"] == "WHL101")
    assert cpu["content"]["body"].endswith("    pip install 'torch>=2.11'")
