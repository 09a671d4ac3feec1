"""Is a wheel the expected one, does it run on the named GPUs, and is it in order?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wheel_checks.answers.claims import LOADS, claim, loads, of_loading, on_hosts
from wheel_checks.answers.evidence import Evidence, certainty_of, gather, of_being_checked, package_name
from wheel_checks.answers.questions import (
    OF_A_GPU,
    OF_AN_EXPECTATION,
    OF_NO_DRIVER,
    OF_PROVENANCE,
    of_driver,
    of_gpu_and_driver,
)
from wheel_checks.model import Answer, Claim, Subject, Verdict
from wheel_checks.phrases import joined, plural, summarised

MANY = 6
"""Up to this many wheels are answered for one by one."""

_NAMED = 3  # wheels that are named when many are answered for together


@dataclass(frozen=True, slots=True)
class WheelQuestion:
    """The question about wheels: ``expect`` is the value of ``--expect``, ``gpus`` are names of products.

    ``driver`` is the version of NVIDIA's driver, or several ("535 and 580"), "" when none was given;
    ``without_driver``: the import on a host that has none. ``provenance``: the attestations of the files.
    """

    expect: str = ""
    gpus: tuple[str, ...] = ()
    driver: str = ""
    provenance: bool = False
    without_driver: bool = False

    @property
    def of_running(self) -> tuple[str, ...]:
        """The rules about the GPUs and drivers that were requested."""
        return of_gpu_and_driver(self.gpus, self.driver, self.without_driver)


def answer_wheels(question: WheelQuestion, subjects: Sequence[Subject]) -> tuple[Answer, ...]:
    """An answer for each wheel, one for all of many, and before them one for every other subject with an error."""
    wheels = [subject for subject in subjects if subject.kind == "wheel"]
    answers = [_answer(question, wheel) for wheel in wheels]
    if len(answers) > MANY:
        answers = [_together(question, answers)]
    return (*_others(subjects), *answers)


def _others(subjects: Sequence[Subject]) -> Iterator[Answer]:
    for subject in subjects:
        evidence = gather(subject, ())
        if subject.kind != "wheel" and evidence.verdict is not Verdict.PASS:
            no = f"{subject.id} gives no wheel" if subject.kind == "requirement" else f"{subject.id} is not in order"
            sentence = "not proven" if evidence.verdict is Verdict.UNDECIDED else no
            yield Answer(evidence.verdict, sentence, subject.id, evidence.reasons, "", evidence.rules)


def _answer(question: WheelQuestion, wheel: Subject) -> Answer:
    expected = gather(wheel, OF_AN_EXPECTATION) if question.expect else Evidence()
    evidence = expected + gather(wheel, question.of_running)
    evidence += of_being_checked([wheel])
    if question.provenance:
        evidence += gather(wheel, OF_PROVENANCE)
    if _is_read(wheel):
        evidence += gather(wheel, of_loading(wheel))
    certainty = certainty_of([wheel]) if question.gpus else ""
    claims = tuple(_claims(question, wheel))
    answer = Answer(evidence.verdict, "", label_of(wheel), evidence.texts, certainty, evidence.rules, claims)
    return replace(answer, sentence=_words(question, answer, wheel))


def _claims(question: WheelQuestion, wheel: Subject) -> Iterator[Claim]:
    """The statements that the question is about; that it loads is claimed only if its libraries were judged."""
    for name, is_wanted, rules in (
        ("is a build", question.expect, OF_AN_EXPECTATION),
        ("has code", question.gpus, OF_A_GPU),
        ("driver", question.driver, of_driver(question.gpus)),
        ("imports without a driver", question.without_driver, OF_NO_DRIVER),
        ("attested", question.provenance, OF_PROVENANCE),
    ):
        if is_wanted:
            yield claim(name, [(wheel, rules)])
    if _is_read(wheel):
        yield loads([wheel])


def _is_read(wheel: Subject) -> bool:
    """Whether its libraries were read, and no rule about them was deselected."""
    return "links" in wheel.facts and {result.rule for result in wheel.results}.issuperset(of_loading(wheel))


def label_of(wheel: Subject) -> str:
    """Such as "torch 2.11.0 for aarch64" (or "for Windows x86_64"); the file's name when it says neither."""
    version, machine = wheel.facts.get("version"), wheel.facts.get("machine")
    if machine and wheel.facts.get("system", "Linux") != "Linux":
        machine = f"{wheel.facts['system']} {machine}"
    if not wheel.facts.get("name") or not version:
        return wheel.id
    return f"{package_name(wheel)} {version}" + (f" for {machine}" if machine else "")


def _words(question: WheelQuestion, answer: Answer, wheel: Subject) -> str:
    subject, is_no = answer.about, answer.verdict is Verdict.FAIL
    loaded = any(claim.name == LOADS for claim in answer.claims)
    if answer.verdict is Verdict.UNDECIDED:
        wanted = [f"be a build for {question.expect}"] if question.expect else []
        wanted += [_statement(question, "run", "have", loaded)] if question.gpus or question.driver else []
        wanted += ["import without a driver"] if question.without_driver else []
        return f"{subject} is not proven to {' and to '.join(wanted or ['be in order'])}"
    if is_no and question.expect and not set(OF_AN_EXPECTATION).isdisjoint(answer.decided_by):
        return f"{subject} is not a build for {question.expect}"
    if is_no and not set(OF_NO_DRIVER).isdisjoint(answer.decided_by):
        return f"{subject} does not import without a driver"
    if is_no and not set(question.of_running).isdisjoint(answer.decided_by):
        denied = [gpu for gpu in question.gpus if gather(wheel, question.of_running, gpu).verdict is Verdict.FAIL]
        return f"{subject} does not run {_where(replace(question, gpus=tuple(denied) or question.gpus))}"
    if is_no:
        return f"{subject} is not in order"
    claims = [is_a_build(wheel)] if question.expect else []
    claims += _runs(question, answer.certainty, wheel, loaded=loaded)
    claims += ["imports without a driver"] if question.without_driver else []
    yes = f"{subject} {joined(claims)}" if claims else f"no error was found in {subject} ({wheel.headline})"
    return f"{yes}{on_hosts([wheel])}"


def _runs(question: WheelQuestion, certainty: str, wheel: Subject, *, loaded: bool) -> list[str]:
    """The statement about GPUs and driver; without a certainty there is no GPU code."""
    if question.gpus and not certainty:
        no_code = f"has no code for any GPU, so nothing is missing for {joined(question.gpus)}"
        code = wheel.facts.get("gpu_code", {})
        if isinstance(code, dict) and code.get("compiled_at_first_use", {}).get("compilers"):
            no_code = f"has no code for any GPU, and contains a compiler that knows {joined(question.gpus)}"
        elif not wheel.facts.get("native_members", {}).get("count", 1):
            no_code = "has no machine code; the torch of the stack decides"
        return [f"runs with driver {question.driver}", no_code] if question.driver else [no_code]
    return [_statement(question, "runs", "has", loaded)] if question.gpus or question.driver else []


def _statement(question: WheelQuestion, run: str, have: str, loaded: bool) -> str:
    """``runs on GB200 with driver 580`` if the libraries were read, else ``has code for GB200 with driver 580``."""
    if loaded or not question.gpus:
        return f"{run} {_where(question)}"
    return f"{have} code for {_where(question).removeprefix('on ')}"


def _where(question: WheelQuestion) -> str:
    """``on GB200 with driver 580``."""
    gpus = f"on {joined(question.gpus)}" if question.gpus else ""
    return " ".join(filter(None, (gpus, f"with driver {question.driver}" if question.driver else "")))


_ACCELERATORS = {"cuda": "a CUDA", "rocm": "a ROCm", "xpu": "an XPU", "cpu": "a CPU"}


def is_a_build(wheel: Subject) -> str:
    """Such as "is a CUDA 13.0 build", of a wheel or of the torch of an environment."""
    accelerator = str(wheel.facts.get("accelerator", ""))
    version = str(wheel.facts.get("accelerator_version") or "")
    if accelerator not in _ACCELERATORS:
        return "has no accelerator"
    return f"is {' '.join(filter(None, (_ACCELERATORS[accelerator], version)))} build"


def _together(question: WheelQuestion, answers: Sequence[Answer]) -> Answer:
    """One answer for many wheels: the worst, and which they are."""
    bad = [answer for answer in answers if answer.verdict is Verdict.FAIL]
    left_open = [answer for answer in answers if answer.verdict is Verdict.UNDECIDED]
    wheels = plural(len(answers), "wheel")
    claims = [f"a build for {question.expect}"] if question.expect else []
    claims += [f"able to run {_where(question)}"] if question.gpus or question.driver else []
    claims += ["able to import without a driver"] if question.without_driver else []
    good = joined(claims) or "without an error"
    if not bad and not left_open:
        return Answer(Verdict.PASS, f"all {wheels} are {good}")
    verdict, worst = (Verdict.FAIL, bad) if bad else (Verdict.UNDECIDED, left_open)
    names = summarised(list(dict.fromkeys(answer.about for answer in worst)), _NAMED)
    reasons = tuple(dict.fromkeys(reason for answer in worst for reason in answer.reasons))
    if bad:
        return Answer(verdict, f"{len(bad)} of {wheels} are not {good} ({names})", reasons=reasons)
    return Answer(verdict, f"not proven of {len(left_open)} of {wheels} ({names})", reasons=reasons)
