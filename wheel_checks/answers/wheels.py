"""Is a wheel what was expected, does it run on the GPUs that were named, and is it in order?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wheel_checks.answers.evidence import Evidence, certainty_of, gather, of_being_checked, package_name
from wheel_checks.answers.questions import OF_AN_EXPECTATION, OF_PROVENANCE, of_gpu_and_driver
from wheel_checks.model import Answer, Subject, Verdict
from wheel_checks.phrases import joined, plural, summarised

MANY = 6
"""Up to this many wheels are answered for one by one."""

_NAMED = 3  # wheels that are named when many are answered for together


@dataclass(frozen=True, slots=True)
class WheelQuestion:
    """What is asked about wheels: ``expect`` is what ``--expect`` says, ``gpus`` are names of products.

    ``driver`` is the version of NVIDIA's driver, or several ("535 and 580"), "" when none was given. ``provenance``:
    who attested the files.
    """

    expect: str = ""
    gpus: tuple[str, ...] = ()
    driver: str = ""
    provenance: bool = False


def answer_wheels(asked: WheelQuestion, subjects: Sequence[Subject]) -> tuple[Answer, ...]:
    """An answer for each wheel, one for all of many, and before them one for every other subject with an error."""
    wheels = [subject for subject in subjects if subject.kind == "wheel"]
    answers = [_answer(asked, wheel) for wheel in wheels]
    if len(answers) > MANY:
        answers = [_together(asked, answers)]
    return (*_others(subjects), *answers)


def _others(subjects: Sequence[Subject]) -> Iterator[Answer]:
    for subject in subjects:
        evidence = gather(subject, ())
        if subject.kind != "wheel" and evidence.verdict is not Verdict.PASS:
            no = f"{subject.id} gives no wheel" if subject.kind == "requirement" else f"{subject.id} is not in order"
            sentence = "not proven" if evidence.verdict is Verdict.UNDECIDED else no
            yield Answer(evidence.verdict, sentence, subject.id, evidence.reasons, "", evidence.rules)


def _answer(asked: WheelQuestion, wheel: Subject) -> Answer:
    expected = gather(wheel, OF_AN_EXPECTATION) if asked.expect else Evidence()
    evidence = expected + gather(wheel, of_gpu_and_driver(asked.gpus, asked.driver))
    evidence += of_being_checked([wheel])
    if asked.provenance:
        evidence += gather(wheel, OF_PROVENANCE)
    certainty = certainty_of([wheel]) if asked.gpus else ""
    answer = Answer(evidence.verdict, "", label_of(wheel), evidence.texts, certainty, evidence.rules)
    return replace(answer, sentence=_words(asked, answer, wheel))


def label_of(wheel: Subject) -> str:
    """Such as "torch 2.11.0 for aarch64" (or "for Windows x86_64"); the file's name when it says neither."""
    version, machine = wheel.facts.get("version"), wheel.facts.get("machine")
    if machine and wheel.facts.get("system", "Linux") != "Linux":
        machine = f"{wheel.facts['system']} {machine}"
    if not wheel.facts.get("name") or not version:
        return wheel.id
    return f"{package_name(wheel)} {version}" + (f" for {machine}" if machine else "")


def _words(asked: WheelQuestion, answer: Answer, wheel: Subject) -> str:
    subject, is_no = answer.about, answer.verdict is Verdict.FAIL
    if answer.verdict is Verdict.UNDECIDED:
        wanted = [f"be a build for {asked.expect}"] if asked.expect else []
        wanted += [f"run {_where(asked)}"] if asked.gpus or asked.driver else []
        return f"{subject} is not proven to {' and to '.join(wanted or ['be in order'])}"
    if is_no and asked.expect and not set(OF_AN_EXPECTATION).isdisjoint(answer.decided_by):
        return f"{subject} is not a build for {asked.expect}"
    if is_no and not set(of_gpu_and_driver(asked.gpus, asked.driver)).isdisjoint(answer.decided_by):
        return f"{subject} does not run {_where(asked)}"
    if is_no:
        return f"{subject} is not in order"
    claims = [is_a_build(wheel)] if asked.expect else []
    claims += _runs(asked, answer.certainty)
    return f"{subject} {joined(claims)}" if claims else f"no error was found in {subject} ({wheel.headline})"


def _runs(asked: WheelQuestion, certainty: str) -> list[str]:
    """What is claimed of GPUs and driver; without a certainty there is no GPU code."""
    if asked.gpus and not certainty:
        no_code = f"has no code for any GPU, so nothing is missing for {joined(asked.gpus)}"
        return [f"runs with driver {asked.driver}", no_code] if asked.driver else [no_code]
    return [f"runs {_where(asked)}"] if asked.gpus or asked.driver else []


def _where(asked: WheelQuestion) -> str:
    """``on GB200 with driver 580``."""
    on, beside = f"on {joined(asked.gpus)}" if asked.gpus else "", f"with driver {asked.driver}" if asked.driver else ""
    return " ".join(filter(None, (on, beside)))


_ACCELERATORS = {"cuda": "a CUDA", "rocm": "a ROCm", "xpu": "an XPU", "cpu": "a CPU"}


def is_a_build(wheel: Subject) -> str:
    """Such as "is a CUDA 13.0 build", of a wheel or of the torch of an environment."""
    accelerator = str(wheel.facts.get("accelerator", ""))
    version = str(wheel.facts.get("accelerator_version") or "")
    if accelerator not in _ACCELERATORS:
        return "has no accelerator"
    return f"is {' '.join(filter(None, (_ACCELERATORS[accelerator], version)))} build"


def _together(asked: WheelQuestion, answers: Sequence[Answer]) -> Answer:
    """One answer for many wheels: the worst, and which they are."""
    bad = [answer for answer in answers if answer.verdict is Verdict.FAIL]
    left_open = [answer for answer in answers if answer.verdict is Verdict.UNDECIDED]
    wheels = plural(len(answers), "wheel")
    claims = [f"a build for {asked.expect}"] if asked.expect else []
    claims += [f"able to run {_where(asked)}"] if asked.gpus or asked.driver else []
    good = joined(claims) or "without an error"
    if not bad and not left_open:
        return Answer(Verdict.PASS, f"all {wheels} are {good}")
    verdict, worst = (Verdict.FAIL, bad) if bad else (Verdict.UNDECIDED, left_open)
    names = summarised(list(dict.fromkeys(answer.about for answer in worst)), _NAMED)
    reasons = tuple(dict.fromkeys(reason for answer in worst for reason in answer.reasons))
    if bad:
        return Answer(verdict, f"{len(bad)} of {wheels} are not {good} ({names})", reasons=reasons)
    return Answer(verdict, f"not proven of {len(left_open)} of {wheels} ({names})", reasons=reasons)
