"""What a probe answers, and the record that it becomes. Imports neither torch nor triton."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kernels_smoke.suite.advice import Advice

Outcome = Literal["pass", "fail", "skip", "error"]


@dataclass(frozen=True)
class Answer:
    """What became of a probe, in one sentence.

    ``fail``: it does not work. ``error``: it could not be checked. ``skip``: it does not apply; the message says why.
    ``fix`` holds commands as data, and sentences where none can be given. ``evidence`` is what was seen; a
    ``severity`` of ``warning`` among it says that the kernels do not depend on what failed. ``rates`` are in
    bytes a second.
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
    """The first line of ``text`` that is not blank: what an exception says before its hints."""
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")
