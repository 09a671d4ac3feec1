"""Logs of public reports: the first cause and its fix; and logs in which nothing failed, which show no cause."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from wheel_checks.fixes.commands import in_words
from wheel_checks.model import Outcome, Severity
from wheelproof.doctor.explain import explain

TABLE = tomllib.loads((Path(__file__).parents[1] / "data/logs/public.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", TABLE["log"], ids=lambda case: case["name"])
def test_the_cause_of_a_public_log_comes_first_with_its_fix(case: dict[str, Any]) -> None:
    report = explain(case["text"].encode(), "a.log")
    first = report.subjects[0].results[0]
    assert report.exit_code == 1
    assert first.fix is not None
    commands = [in_words(step) for step in first.fix.commands]
    named = {first.rule, *re.findall(r"DOC\d+", next(item.value for item in first.evidence if item.label == "see"))}
    assert named & set(case["rules"]), first.message
    assert re.search(case["fix"], " ".join([first.message, first.fix.summary, *commands]), re.IGNORECASE)
    assert "not_in_commands" not in case or not any(re.search(case["not_in_commands"], one) for one in commands)


@pytest.mark.parametrize("case", TABLE["harmless"], ids=lambda case: case["name"])
def test_no_cause_is_found_where_nothing_failed(case: dict[str, Any]) -> None:
    report = explain(case["text"].encode(), "a.log")
    found = [result for result in report.subjects[0].results if result.outcome is Outcome.FAIL]
    assert report.exit_code == (0 if found else 3)
    assert all(result.severity is Severity.NOTE for result in found)


def test_there_are_as_many_as_promised() -> None:
    assert len([case for case in TABLE["log"] if case["url"].startswith("https://github.com/")]) >= 20
    assert len(TABLE["harmless"]) >= 10
