"""Does the stack run on that platform, Python and GPU? Without a GPU: can it be installed, and does it fit?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wheel_checks.answers.evidence import Evidence, Reason, certainty_of, gather
from wheel_checks.answers.questions import OF_A_DRIVER, OF_A_PACKAGE, OF_FITTING, OF_THE_STACK, of_gpu_and_driver
from wheel_checks.model import Answer, Subject, Verdict
from wheel_checks.phrases import joined

_WEAKER = {
    "sampled": "its code was found by sampling",
    "declared": "by what the wheels declare",
}


@dataclass(frozen=True, slots=True)
class StackQuestion:
    """What is asked: ``where`` is the target for people ("aarch64, Python 3.12"), ``gpus`` are names of products.

    ``driver`` is the version of NVIDIA's driver, or several ("535 and 580"), "" when none was given.
    """

    where: str
    gpus: tuple[str, ...] = ()
    driver: str = ""
    what: str = ""


def answer_stack(
    asked: StackQuestion, stack: Subject, packages: Sequence[Subject], others: Sequence[Subject] = ()
) -> tuple[Answer, ...]:
    """One answer, or one for each GPU where they differ.

    ``packages`` are all of the resolution; ``others`` are further subjects of the report, whose errors count, too.
    """
    if not asked.gpus:
        return (_answer(asked, "", stack, packages, others),)
    answers: dict[tuple[str, ...], list[str]] = {}
    found: dict[tuple[str, ...], Answer] = {}
    for gpu in asked.gpus:
        answer = _answer(asked, gpu, stack, packages, others)
        key = (answer.verdict, *answer.reasons)
        answers.setdefault(key, []).append(gpu)
        found[key] = answer
    return tuple(replace(found[key], sentence=_words(asked, found[key], gpus)) for key, gpus in answers.items())


def _answer(
    asked: StackQuestion, gpu: str, stack: Subject, packages: Sequence[Subject], others: Sequence[Subject]
) -> Answer:
    of_wheels = of_gpu_and_driver(gpu, asked.driver)
    evidence = gather(stack, OF_THE_STACK)
    for package in sorted(packages, key=lambda package: not is_asked_for(package)):
        deciding = OF_A_PACKAGE if package.kind == "package" else (*OF_A_PACKAGE, *of_wheels)
        evidence += gather(package, deciding, gpu)
    for other in others:
        evidence += gather(other, ())
    if not packages and evidence.verdict is Verdict.PASS:
        evidence += Evidence(left_open=(Reason("", "nothing was resolved"),))
    certainty = certainty_of(packages) if gpu else ""
    answer = Answer(evidence.verdict, "", asked.what, evidence.reasons, certainty, evidence.rules)
    return replace(answer, sentence=_words(asked, answer, [gpu] if gpu else []))


def is_asked_for(package: Subject) -> bool:
    """True for the package of a requirement that was given, not only required by another package."""
    return any(str(demand).startswith("you ask for") for demand in package.facts.get("demanded_by", ()))


def _words(asked: StackQuestion, answer: Answer, gpus: Sequence[str]) -> str:
    if answer.verdict is Verdict.UNDECIDED:
        return f"not proven to run on {joined(gpus)}" if len(asked.gpus) > len(gpus) else "not proven"
    passes = answer.verdict is Verdict.PASS
    if gpus:
        weaker = f" ({_WEAKER[answer.certainty]})" if passes and answer.certainty in _WEAKER else ""
        if passes and not answer.certainty:
            return f"installs on {asked.where}; nothing in it has code for a GPU"
        driver = f" with driver {asked.driver}" if asked.driver else ""
        return f"{'runs' if passes else 'does not run'} on {joined(gpus)}{driver}{weaker}"
    if passes:
        driver = f" and runs with driver {asked.driver}" if asked.driver else ""
        return f"installs on {asked.where}{driver}; no GPU was specified: --gpu GB200 checks whether it runs"
    if not set(OF_A_DRIVER).isdisjoint(answer.decided_by):
        return f"does not run with driver {asked.driver}"
    fits = any(rule in OF_FITTING for rule in answer.decided_by)
    return f"does not {'fit together' if fits else 'install'} on {asked.where}"
