"""Is an environment in order, is its torch the expected one, and does its GPU code run on the named GPUs?"""

from __future__ import annotations

from collections.abc import Sequence

from wheel_checks.answers.claims import claim
from wheel_checks.answers.evidence import Evidence, certainty_of, gather, of_being_checked
from wheel_checks.answers.questions import OF_AN_INSTALLED_EXPECTATION, OF_INSTALLED_GPU_CODE
from wheel_checks.answers.wheels import WheelQuestion, is_a_build
from wheel_checks.model import Answer, Subject, Verdict
from wheel_checks.phrases import joined


def answer_installed(question: WheelQuestion, environment: Subject, distributions: Sequence[Subject]) -> Answer:
    """One answer for the environment with all its distributions."""
    evidence = gather(environment, OF_AN_INSTALLED_EXPECTATION if question.expect else ())
    evidence = sum(
        (gather(subject, OF_INSTALLED_GPU_CODE if question.gpus else ()) for subject in distributions), start=evidence
    )
    evidence += of_being_checked((environment, *distributions))
    certainty = certainty_of(distributions) if question.gpus else ""
    sentence = _words(question, environment, evidence, runs=bool(certainty))
    claims = [claim("is a build", [(environment, OF_AN_INSTALLED_EXPECTATION)])] if question.expect else []
    if question.gpus:
        claims.append(claim("has code", [(subject, OF_INSTALLED_GPU_CODE) for subject in distributions]))
    reasons, rules = evidence.reasons, evidence.rules
    return Answer(evidence.verdict, sentence, environment.id, reasons, certainty, rules, tuple(claims))


def _words(question: WheelQuestion, environment: Subject, evidence: Evidence, *, runs: bool) -> str:
    """``runs`` is True when there is GPU code at all."""
    place, on = environment.id, f"on {joined(question.gpus)}"
    if evidence.verdict is Verdict.UNDECIDED:
        wanted = [f"have a torch for {question.expect}"] if question.expect else []
        wanted += [f"run {on}"] if question.gpus else []
        return f"{place} is not proven to {' and to '.join(wanted or ['be in order'])}"
    if evidence.verdict is Verdict.FAIL:
        if question.expect and not set(OF_AN_INSTALLED_EXPECTATION).isdisjoint(evidence.rules):
            return f"the torch in {place} is not a build for {question.expect}"
        is_of_gpus = question.gpus and not set(OF_INSTALLED_GPU_CODE).isdisjoint(evidence.rules)
        return f"{place} does not run {on}" if is_of_gpus else f"{place} is not in order"
    claims = [f"the torch in {place} {is_a_build(environment)}"] if question.expect else []
    if question.gpus:
        claims.append(f"what is installed in {place} runs {on}" if runs else f"nothing in {place} has code for a GPU")
    return joined(claims) or f"no error was found in {place} ({environment.headline})"
