"""Facts in, diagnosis out: one scenario at least for every rule of the doctor."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest

from tests.support.hosts import grace, healthy, hgx, without_gpu
from tests.support.scenarios import Scenario, patched, read_scenario, scenarios
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.host.codec import from_json, to_json
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.redaction import redact
from wheel_checks.model import CheckResult, Outcome, Severity
from wheel_checks.report.text import render
from wheel_checks.rules.host.cause import CAUSES, KIND, rule_id
from wheelproof.doctor.report import Showing, examine, make_report
from wheelproof.reporting import OpenReport

SCENARIOS = scenarios()


def rules(results: tuple[CheckResult, ...]) -> set[str]:
    return {result.rule for result in results}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.file)
def test_given_these_facts_this_diagnosis(scenario: Scenario) -> None:
    examination = examine(scenario.facts)
    diagnosis, expected = examination.diagnosis, scenario.expected

    assert (diagnosis.root and diagnosis.root.rule) == expected.root
    assert diagnosis.confidence == expected.confidence
    assert rules(diagnosis.consequences) == set(expected.consequences)
    assert rules(diagnosis.others) == set(expected.others)
    assert rules(diagnosis.harmless) == set(expected.harmless)
    assert diagnosis.unexplained == expected.unexplained
    found = {result.rule for result in examination.results if result.outcome is Outcome.FAIL}
    assert found.isdisjoint(expected.silent)
    assert not [result for result in examination.results if result.outcome is Outcome.ERROR]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.file)
def test_a_scenario_is_named_after_the_entry_of_its_rule(scenario: Scenario) -> None:
    assert scenario.file.startswith(f"{scenario.catalogue}-")
    rules = {scenario.expected.root, *scenario.expected.others, *scenario.expected.harmless}
    assert rule_id(scenario.catalogue) in {*rules, *scenario.expected.silent}


def test_a_diagnosis_fits_on_a_screen_of_80_columns() -> None:
    """24 lines, but for three whose commands name a dozen packages."""
    lines = {}
    for scenario in SCENARIOS:
        screen = io.StringIO()
        render(make_report(examine(scenario.facts), Showing(), OpenReport("doctor")), screen, color=False, width=80)
        lines[scenario.file] = sum(max(1, math.ceil(len(line) / 80)) for line in screen.getvalue().splitlines())

    assert sorted(file[:3] for file, count in lines.items() if count > 24) == ["A03", "A04", "G01"]
    assert max(lines.values()) <= 31


def test_every_rule_has_a_scenario() -> None:
    rules = {
        rule
        for scenario in SCENARIOS
        for rule in (scenario.expected.root, *scenario.expected.others, *scenario.expected.harmless)
    }

    assert {rule.id for rule in select_rules(KIND) if rule.id in CAUSES and CAUSES[rule.id].catalogue} <= rules


@pytest.mark.parametrize("facts", [healthy(), grace(), hgx(), without_gpu(healthy()), without_gpu(grace())])
def test_healthy_hosts_have_no_findings(facts: HostFacts) -> None:
    results = examine(facts).results

    assert [r for r in results if r.outcome is Outcome.FAIL and r.severity is not Severity.NOTE] == []
    assert [r for r in results if r.outcome is Outcome.ERROR] == []


def test_the_facts_of_a_scenario_can_be_written_and_read_again() -> None:
    for scenario in SCENARIOS:
        assert from_json(json.loads(json.dumps(to_json(scenario.facts)))) == scenario.facts, scenario.file


def test_a_saved_host_is_a_scenario(tmp_path: Path) -> None:
    """Without a base the facts are complete, as --save-facts writes them."""
    facts = redact(hgx())
    data = {"name": "x", "catalogue": "D01", "facts": to_json(facts), "expect": {"root": None}}
    (tmp_path / "x.json").write_text(json.dumps(data))

    assert read_scenario(tmp_path / "x.json").facts == facts


def test_what_a_difference_can_say() -> None:
    base = {"a": {"b": 1, "c": 2}, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "flat": [1, 2]}
    change = {
        "a": {"c": 3, "-": ["b"]},
        "list": {"x": {"v": 5}, "-": ["y"], "new": {"name": "z"}},
        "flat": [3],
        "more": {"unavailable": "no"},
    }

    assert patched(base, change) == {
        "a": {"c": 3},
        "list": [{"name": "x", "v": 5}, {"name": "z"}],
        "flat": [3],
        "more": {"unavailable": "no"},
    }
