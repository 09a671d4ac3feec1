"""The dangerous steps, run for real: by this interpreter or another, with a driver of the tests' own or with none."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

from tests.support.hosts import healthy
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Interpreter
from wheelproof.doctor.children import Budget
from wheelproof.doctor.probes.dangerous import Answers, read_dangerous


def known(python: str = sys.executable, *, gpu: bool = True) -> HostFacts:
    """What is known before the dangerous steps: the interpreter, and whether there is a GPU on the bus."""
    example = healthy()
    assert isinstance(example.interpreter, Interpreter)
    return HostFacts(interpreter=replace(example.interpreter, path=python), pci=example.pci if gpu else ())


def probe(
    environment: Mapping[str, str],
    *,
    python: str = sys.executable,
    gpu: bool = True,
    seconds: float = 60,
) -> Answers:
    """What the steps give in this environment."""
    facts = known(python, gpu=gpu)
    return read_dangerous(facts, environment=environment, budget=Budget(seconds))
