"""What the rules about kernels share: the suite's notes as evidence, its advice as a fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from wheel_checks.facts.kernels.facts import Note
from wheel_checks.model import Evidence, Fix

SHOWN_LINES = 12
"""Lines of one note that are shown: the last words of a process end with what matters."""

# How a command begins; everything else that the suite advises is a sentence.
_COMMAND = re.compile(
    r"(?:sudo )?(?:\S*python[\d.]* -|(?:pip|uv|apt-get|apt|dnf|export|nvidia-smi|docker|mkdir) \S|[A-Z_]+=)"
)


def as_evidence(notes: Iterable[Note]) -> tuple[Evidence, ...]:
    """Each note, one item of evidence for every line of it."""
    return tuple(item for note in notes for item in evidence_lines(note.label, note.value))


def evidence_lines(label: str, text: str) -> tuple[Evidence, ...]:
    """The last lines of ``text`` that are not empty, each an item of evidence."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return tuple(Evidence(label, line) for line in lines[-SHOWN_LINES:])


def as_fix(advice: Sequence[str]) -> Fix | None:
    """The advice of the suite, its sentences and commands told apart; None when there is none."""
    commands = tuple(item for item in advice if _COMMAND.match(item))
    sentences = [item for item in advice if item not in commands]
    if not advice:
        return None
    return Fix("; ".join(sentences) or "run this:", commands)
