"""Does the stack run on that platform, Python and GPU? Without a GPU: can it be installed, and does it fit?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wheel_checks.answers.claims import LOADS, claim, is_requested, loads, of_loading, on_hosts
from wheel_checks.answers.evidence import Evidence, Reason, certainty_of, gather
from wheel_checks.answers.questions import (
    OF_A_DRIVER,
    OF_A_GPU,
    OF_A_PACKAGE,
    OF_FITTING,
    OF_FOREIGN_FILES,
    OF_NO_DRIVER,
    OF_THE_STACK,
    of_driver,
    of_gpu_and_driver,
)
from wheel_checks.model import Answer, Subject, Verdict
from wheel_checks.phrases import joined

_WEAKER = {
    "sampled": "its code was found by sampling",
    "declared": "by what the wheels declare",
}


@dataclass(frozen=True, slots=True)
class StackQuestion:
    """The question: ``where`` is the target for people ("aarch64, Python 3.12"), ``gpus`` are names of products.

    ``driver`` is the version of NVIDIA's driver, or several ("535 and 580"), "" when none was given;
    ``without_driver``: the import on a host that has none. ``needs`` is what was not named of the system: "driver 580
    or newer and glibc 2.28 or newer", ``hosts`` what else the wheels assume.
    """

    where: str
    gpus: tuple[str, ...] = ()
    driver: str = ""
    what: str = ""
    needs: str = ""
    without_driver: bool = False
    hosts: str = ""


def answer_stack(
    question: StackQuestion, stack: Subject, packages: Sequence[Subject], others: Sequence[Subject] = ()
) -> tuple[Answer, ...]:
    """One answer, or one for each GPU if they differ.

    ``packages`` are all of the resolution; ``others`` are further subjects of the report, whose errors are included.
    """
    question = replace(question, hosts=on_hosts(packages))
    if not question.gpus:
        return (_answer(question, "", stack, packages, others),)
    answers: dict[tuple[str, ...], list[str]] = {}
    found: dict[tuple[str, ...], Answer] = {}
    for gpu in question.gpus:
        answer = _answer(question, gpu, stack, packages, others)
        key = (answer.verdict, *answer.reasons)
        answers.setdefault(key, []).append(gpu)
        found[key] = answer
    return tuple(replace(found[key], sentence=_words(question, found[key], gpus)) for key, gpus in answers.items())


def _answer(
    question: StackQuestion, gpu: str, stack: Subject, packages: Sequence[Subject], others: Sequence[Subject]
) -> Answer:
    of_wheels = of_gpu_and_driver(gpu, question.driver, question.without_driver)
    evidence = gather(stack, OF_THE_STACK)
    for package in sorted(packages, key=lambda one: (one.facts.get("package") != "torch", not is_requested(one))):
        deciding = OF_A_PACKAGE if package.kind == "package" else (*OF_A_PACKAGE, *of_wheels, *of_loading(package))
        evidence += gather(package, deciding, gpu)
    for other in others:
        evidence += gather(other, ())
    if not packages and evidence.verdict is Verdict.PASS:
        evidence += Evidence(left_open=(Reason("", "nothing was resolved"),))
    installable = [(stack, OF_THE_STACK), *((package, OF_A_PACKAGE) for package in packages)]
    claims = [claim("installs", installable, denies=(OF_FOREIGN_FILES,)), loads(packages)]
    wheels = [package for package in packages if package.kind == "wheel"]
    if gpu:
        claims.append(claim("has code", [(wheel, OF_A_GPU) for wheel in wheels], gpu))
    if question.driver:
        claims.append(claim("driver", [(wheel, of_driver(gpu)) for wheel in wheels]))
    if question.without_driver:
        claims.append(claim("imports without a driver", [(wheel, OF_NO_DRIVER) for wheel in wheels]))
    certainty = certainty_of(packages) if gpu else ""
    reasons, rules = evidence.reasons, evidence.rules
    answer = Answer(evidence.verdict, "", question.what, reasons, certainty, rules, tuple(claims))
    return replace(answer, sentence=_words(question, answer, [gpu] if gpu else []))


def _words(question: StackQuestion, answer: Answer, gpus: Sequence[str]) -> str:
    if answer.verdict is Verdict.UNDECIDED:
        return f"not proven to run on {joined(gpus)}" if len(question.gpus) > len(gpus) else "not proven"
    passes = answer.verdict is Verdict.PASS
    if not passes and set(answer.decided_by) == set(OF_NO_DRIVER):
        return "does not import without a driver"
    without = " and imports without a driver" if passes and question.without_driver else ""
    if gpus:
        weaker = f" ({_WEAKER[answer.certainty]})" if passes and answer.certainty in _WEAKER else ""
        driver = f"driver {question.driver}" if question.driver else ""
        system = joined([part for part in (driver, question.needs if passes else "") if part])
        condition = f" with {system}" if system else ""
        hosts = question.hosts if passes else ""
        runs = f"{'runs' if passes else 'does not run'} on {joined(gpus)}{condition}{hosts}{weaker}"
        if passes and not answer.certainty:
            runs = f"installs on {question.where}{hosts}; nothing in it has code for a GPU"
        return f"{runs}{without}"
    if passes:
        load = " and loads" if any(claim.name == LOADS and claim.obligations for claim in answer.claims) else ""
        driver = f" and runs with driver {question.driver}" if question.driver else ""
        no_gpu = "no GPU was specified: --gpu GB200 checks whether it runs"
        return f"installs{load} on {question.where}{driver}{without}{question.hosts}; {no_gpu}"
    if not set(OF_A_DRIVER).isdisjoint(answer.decided_by):
        return f"does not run with driver {question.driver}"
    fits = any(rule in OF_FITTING for rule in answer.decided_by)
    return f"does not {'fit together' if fits else 'install'} on {question.where}"
