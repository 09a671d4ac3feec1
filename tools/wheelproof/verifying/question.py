"""The question of `verify`, about wheels or about an environment."""

from __future__ import annotations

from wheel_checks.answers.wheels import WheelQuestion
from wheel_checks.facts.wheel.expectations import Expectations
from wheelproof.wheels.model import requested_drivers


def question_of(expected: Expectations, *, provenance: bool = False) -> WheelQuestion:
    """The question of the command line."""
    expect = str(expected.accelerator) if expected.accelerator else ""
    return WheelQuestion(expect, tuple(gpu.name for gpu in expected.gpus), requested_drivers(expected), provenance)
