"""How rules show the signals by which an accelerator was judged."""

from __future__ import annotations

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.model import Evidence


def signals_shown(facts: AcceleratorFacts) -> tuple[Evidence, ...]:
    """The three signals, each with what it says."""
    return tuple(
        Evidence(s.name, f"{' and '.join(s.accelerators) or 'nothing'}: {s.detail}", s.source) for s in facts.signals
    )
