"""packaging and readme_renderer decide as twine does, whose verdicts ``ci/update_twine_verdicts.py`` recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.catalogue import get_rule
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Outcome, Severity
from wheel_checks.runner import run_rules

VERDICTS = json.loads((Path(__file__).parents[2] / "data" / "twine.json").read_text(encoding="utf-8"))["verdicts"]
DECIDED_BY_LIBRARIES = ("WHL106", "WHL107", "REL306", "REL307")


@pytest.mark.parametrize(("metadata", "verdict"), VERDICTS.items(), ids=range(len(VERDICTS)))
def test_metadata_is_refused_where_twine_refuses_it(metadata: str, verdict: str) -> None:
    facts = facts_of(WheelBuilder().dist_info_file("METADATA", metadata), upload=True)
    results = run_rules([get_rule(rule_id) for rule_id in DECIDED_BY_LIBRARIES], facts, Expectations())
    errors = [r.message for r in results if r.outcome is Outcome.FAIL and r.severity is Severity.ERROR]
    assert bool(errors) == bool(verdict), f"twine: {verdict!r}, ours: {errors}, {metadata!r}"
