"""A sample of ``ci/mutants.py``: what pip or uv refuses does not pass, by the real pip and uv."""

from __future__ import annotations

import pytest

from ci.mutants import examine_many
from ci.update_installers import crafted
from tests.support.mutants import Mutant, mutants
from tests.support.wheel_facts import facts_of
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Outcome
from wheel_checks.rules.shared.installers import installer_evidence
from wheel_checks.runner import run_rules

CRAFTED = crafted()
RULES = select_rules("wheel", ("WHL0", "WHL125"))


def test_the_wheels_are_the_same_every_time() -> None:
    assert mutants(300) == mutants(300)
    assert len({mutant.kind for mutant in mutants(300)}) > 100


def test_no_wheel_passes_that_an_installer_refuses() -> None:
    rows = examine_many(mutants(160)[::13], {})

    assert [row for row in rows if row.bad and "pass" in (row.judged["file, full"], row.judged["range, full"])] == []
    assert sum(row.bad for row in rows) > len(rows) / 5


def test_sound_wheels_pass() -> None:
    sound = [mutant for mutant in mutants(10_000) if mutant.kind == "sound"]
    assert len(sound) == 12
    for mutant in sound:
        results = run_rules(RULES, facts_of(mutant.data, depth=Depth.FULL), Expectations())
        errors = [r.message for r in results if r.outcome is Outcome.FAIL and r.severity == "error"]
        assert errors == [], mutant.what


@pytest.mark.parametrize("case", CRAFTED)
def test_each_row_of_the_table_is_what_a_finding_shows(case: str) -> None:
    mutant: Mutant = CRAFTED[case]
    results = run_rules(RULES, facts_of(mutant.data, depth=Depth.FULL), Expectations())
    shown = [result.evidence for result in results if result.outcome is Outcome.FAIL]
    assert installer_evidence(case)
    assert installer_evidence(case) in shown
