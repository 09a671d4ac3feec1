"""The answer of a probe, and its record. Imports neither torch nor triton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kernels_smoke.suite.advice import Advice

Outcome = Literal["pass", "fail", "skip", "error"]


@dataclass(frozen=True)
class Answer:
    """The result of a probe, in one sentence.

    ``fail``: it does not work. ``error``: it could not be checked. ``skip``: it does not apply; the message says why.
    ``fix`` has commands as data, or sentences without a command. ``evidence`` are observations; a ``severity`` of
    ``warning`` among it means that the kernels do not depend on the failed part. ``rates`` are in bytes a second.
    """

    outcome: Outcome
    message: str
    evidence: Mapping[str, str] = field(default_factory=dict)
    fix: tuple[Advice, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)


def record(name: str, answer: Answer, seconds: float = 0.0) -> dict[str, Any]:
    """The record of the probe ``name``."""
    return {
        "kind": "probe",
        "name": name,
        "outcome": answer.outcome,
        "message": answer.message,
        "evidence": dict(answer.evidence),
        "fix": list(answer.fix),
        "seconds": round(seconds, 3),
        **({"rates": dict(answer.rates)} if answer.rates else {}),
    }


def first_line(text: object) -> str:
    """The first line of ``text`` that is not blank: the message of an exception before its hints."""
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")
