"""The first line of ``verify --installed``."""

from __future__ import annotations

import pytest

from tests.answers.results import ERROR, FAIL, PASS, SKIP, result
from wheel_checks.answers.installed import answer_installed
from wheel_checks.answers.wheels import WheelQuestion
from wheel_checks.model import CheckResult, Outcome, Severity, Subject, Verdict

PLAIN, CUDA, GPU = WheelQuestion(), WheelQuestion("cuda"), WheelQuestion(gpus=("GB200",))


def environment(*results: CheckResult) -> Subject:
    facts = {"accelerator": "cuda", "accelerator_version": "13.0"}
    given = {item.rule for item in results}
    rest = (result(rule) for rule in ("WHL710", "WHL715") if rule not in given)
    return Subject("/opt/venv", "environment", "torch 2.11.0+cu130, CUDA 13.0", facts, (*results, *rest))


def distribution(name: str, *results: CheckResult, code: bool = False) -> Subject:
    product = {"name": "GB200", "runs": "native"}
    facts: dict[str, object] = {"name": name, "version": "1.0"}
    facts |= {"gpu_code": {"certainty": "exact", "products": [product]}} if code else {}
    return Subject(f"{name} 1.0", "distribution", "", facts, results or (result("WHL731"),))


def line(asked: WheelQuestion, found: Subject, *distributions: Subject) -> str:
    return answer_installed(asked, found, distributions).line


def test_yes_in_the_words_of_the_question() -> None:
    torch, numpy = distribution("torch", code=True), distribution("numpy")
    assert line(GPU, environment(), torch, numpy) == "what is installed in /opt/venv runs on GB200"
    assert line(CUDA, environment(), torch) == "the torch in /opt/venv is a CUDA 13.0 build"
    assert line(PLAIN, environment(), torch) == "no error was found in /opt/venv (torch 2.11.0+cu130, CUDA 13.0)"


def test_without_gpu_code_nothing_is_said_to_run() -> None:
    assert line(GPU, environment(), distribution("numpy")) == "nothing in /opt/venv has code for a GPU"


def test_no() -> None:
    old = distribution("torch", result("WHL731", FAIL, message="no code for GB200 (10.0)"), code=True)
    assert line(GPU, environment(), old) == "/opt/venv does not run on GB200: torch: no code for GB200 (10.0)"
    cpu = environment(result("WHL715", FAIL, message="the installed torch is CPU only; expected cuda"))
    assert line(CUDA, cpu) == (
        "the torch in /opt/venv is not a build for cuda: the installed torch is CPU only; expected cuda"
    )
    twice = environment(result("WHL710", FAIL, message="numpy has 2 dist-info folders"))
    assert line(GPU, twice, old).startswith("/opt/venv does not run on GB200: numpy has 2 dist-info folders; ")
    assert line(PLAIN, twice) == "/opt/venv is not in order: numpy has 2 dist-info folders"


@pytest.mark.parametrize("outcome", [SKIP, ERROR])
def test_what_was_not_read_leaves_it_open(outcome: Outcome) -> None:
    unread = distribution("numpy", result("WHL731", outcome, message="RECORD is missing, so nothing can be compared"))
    found = answer_installed(GPU, environment(), [distribution("torch", code=True), unread])
    assert found.verdict is Verdict.UNDECIDED
    assert found.line == (
        "/opt/venv is not proven to run on GB200: numpy: RECORD is missing, so nothing can be compared"
    )


def test_a_rule_that_was_not_run_leaves_it_open() -> None:
    found = answer_installed(GPU, environment(), [distribution("torch", result("WHL701"))])
    assert (found.verdict, found.reasons) == (Verdict.UNDECIDED, ("WHL731 was not run",))


def test_nothing_was_checked() -> None:
    bare = Subject("/opt/venv", "environment", "", {}, (result("WHL715", SKIP),))
    assert line(PLAIN, bare) == "/opt/venv is not proven to be in order: nothing was checked"


def test_a_warning_is_not_a_no() -> None:
    warned = environment(result("WHL710", FAIL, Severity.WARNING))
    assert answer_installed(PLAIN, warned, [distribution("numpy", result("WHL701", PASS))]).verdict is Verdict.PASS
