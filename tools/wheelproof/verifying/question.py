"""The question of `verify`, about wheels or about an environment."""

from __future__ import annotations

from wheel_checks.answers.wheels import WheelQuestion
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.phrases import joined


def question_of(expected: Expectations, *, provenance: bool = False) -> WheelQuestion:
    """The question of the command line."""
    expect = str(expected.accelerator) if expected.accelerator else ""
    gpus, drivers = tuple(gpu.name for gpu in expected.gpus), joined(expected.named_drivers)
    return WheelQuestion(expect, gpus, drivers, provenance, expected.without_driver)
