"""Rates of hosts: who is slow is said where three hosts have measured, and otherwise nothing is."""

from __future__ import annotations

import pytest

from tests.rules.fleet_cases import hosts, timed
from wheel_checks.facts.fleet.hosts import FleetFacts
from wheel_checks.model import Outcome
from wheelproof.testing.facts import judged


@pytest.mark.parametrize("fleet", [FleetFacts(hosts(a=4)), timed(4.25, 1.88), timed("nan", "x", 4.25, 4.2)])
def test_without_rates_of_three_hosts_nothing_is_judged(fleet: FleetFacts) -> None:
    (result,) = judged("MTX207", fleet)
    assert result.outcome is Outcome.SKIP
    assert result.message.startswith("no rate was measured on 3 hosts of one kind (")
