"""Which faults of METADATA keep an installer from taking a wheel, and which only its publisher can fix."""

from __future__ import annotations

import pytest

from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.catalogue import get_rule
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Audience


@pytest.mark.parametrize(
    ("builder", "audience"),
    [
        (WheelBuilder().metadata(metadata_version="2.0"), Audience.PUBLISHER),  # pip and uv install these
        (WheelBuilder().metadata("License-Expression: MIT", metadata_version="2.1"), Audience.PUBLISHER),
        (WheelBuilder().metadata(version=""), None),
    ],
    ids=["a version of METADATA that never was", "a field of a later version", "no version of the package"],
)
def test_who_a_fault_of_metadata_concerns(builder: WheelBuilder, audience: Audience | None) -> None:
    findings = list(get_rule("WHL106").check(facts_of(builder), Expectations()))
    assert [finding.audience for finding in findings] == [audience]
