"""The question that `verify` is to answer, about wheels or about what is installed."""

from wheel_checks.answers.wheels import WheelQuestion
from wheel_checks.facts.expectations import Expectations
from wheelproof.wheels.model import drivers_asked


def question_of(expected: Expectations, *, provenance: bool = False) -> WheelQuestion:
    """What the command line asks."""
    expect = str(expected.accelerator) if expected.accelerator else ""
    return WheelQuestion(expect, tuple(gpu.name for gpu in expected.gpus), drivers_asked(expected), provenance)
