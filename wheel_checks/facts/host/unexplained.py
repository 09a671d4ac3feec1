"""What is left of a diagnosis when no rule explains a symptom."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnexplainedSymptom:
    """A symptom of ``wheel_checks.facts.host.log.symptoms`` that no finding explains, and the raw facts to report."""

    symptom: str
    phrase: str
    observed: tuple[tuple[str, str], ...] = ()
