"""What the rules about kernels share: the suite's notes as evidence, its advice as a fix."""

from collections.abc import Iterable, Sequence

from wheel_checks.commands import Step
from wheel_checks.facts.kernels.facts import Note
from wheel_checks.model import Evidence, Fix

SHOWN_LINES = 12
"""Lines of one note that are shown: the last words of a process end with what matters."""


def as_evidence(notes: Iterable[Note]) -> tuple[Evidence, ...]:
    """Each note, one item of evidence for every line of it."""
    return tuple(item for note in notes for item in evidence_lines(note.label, note.value))


def evidence_lines(label: str, text: str) -> tuple[Evidence, ...]:
    """The last lines of ``text`` that are not empty, each an item of evidence."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return tuple(Evidence(label, line) for line in lines[-SHOWN_LINES:])


def as_fix(advice: Sequence[Step | str]) -> Fix | None:
    """The advice of the suite, its sentences as the summary; None if there isn't one."""
    sentences = [item for item in advice if isinstance(item, str)]
    steps = tuple(item for item in advice if not isinstance(item, str))
    return Fix("; ".join(sentences) or "run this:", steps) if advice else None
