"""The first line of ``verify``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.answers.results import ERROR, FAIL, PASS, SKIP, result
from wheel_checks.answers.wheels import MANY, WheelQuestion, answer_wheels
from wheel_checks.model import CheckResult, Outcome, Severity, Subject, Verdict

CUDA = WheelQuestion("cuda")
BOTH = WheelQuestion("cuda==13.0", ("GB200", "H100"))


def wheel(*results: CheckResult, accelerator: str = "cuda", version: str = "13.0", gpus: bool = True) -> Subject:
    products = [{"name": gpu, "runs": "native"} for gpu in BOTH.gpus if gpus]
    facts: dict[str, Any] = {"name": "torch", "version": "2.11.0", "machine": "aarch64"}
    facts["gpu_code"] = {"certainty": "exact", "products": products}
    facts |= {"accelerator": accelerator, "accelerator_version": version}
    given = {item.rule for item in results}
    rest = (result(rule) for rule in ("WHL201", "WHL601") if rule not in given)
    return Subject("torch-2.11.0.whl", "wheel", "CUDA 13.0 (2.11.0+cu130)", facts, (*results, *rest))


def line(asked: WheelQuestion, *subjects: Subject) -> str:
    (found,) = answer_wheels(asked, subjects)
    return found.line


def test_yes_in_the_words_of_the_question() -> None:
    assert line(CUDA, wheel()) == "torch 2.11.0 for aarch64 is a CUDA 13.0 build"
    assert line(WheelQuestion("cpu"), wheel(accelerator="none", version="")) == (
        "torch 2.11.0 for aarch64 has no accelerator"
    )
    assert line(BOTH, wheel()) == "torch 2.11.0 for aarch64 is a CUDA 13.0 build and has code for GB200 and H100"
    assert line(WheelQuestion("", ("GB200",), "580"), wheel(result("WHL605"), result("WHL606"), result("WHL607"))) == (
        "torch 2.11.0 for aarch64 has code for GB200 with driver 580"
    )
    assert line(BOTH, wheel(gpus=False)) == (
        "torch 2.11.0 for aarch64 is a CUDA 13.0 build and has no code for any GPU, "
        "so nothing is missing for GB200 and H100"
    )
    assert line(WheelQuestion(), wheel()) == "no error was found in torch 2.11.0 for aarch64 (CUDA 13.0 (2.11.0+cu130))"


def test_a_host_without_a_driver() -> None:
    none, both = WheelQuestion(without_driver=True), WheelQuestion("", ("GB200",), "580", without_driver=True)
    with_driver = [result(rule) for rule in ("WHL605", "WHL606", "WHL607")]
    assert line(none, wheel(result("WHL608"))) == "torch 2.11.0 for aarch64 imports without a driver"
    assert line(both, wheel(result("WHL608"), *with_driver)) == (
        "torch 2.11.0 for aarch64 has code for GB200 with driver 580 and imports without a driver"
    )
    assert line(both, wheel(result("WHL608", FAIL, message="_C.so needs libcuda.so.1"), *with_driver)) == (
        "torch 2.11.0 for aarch64 does not import without a driver: _C.so needs libcuda.so.1"
    )
    assert line(none, wheel(result("WHL608", SKIP, message="libraries are not followed"))) == (
        "torch 2.11.0 for aarch64 is not proven to import without a driver: libraries are not followed"
    )
    (found,) = answer_wheels(none, [wheel(result("WHL608", FAIL))])
    assert [(claim.name, claim.verdict) for claim in found.claims] == [("imports without a driver", Verdict.FAIL)]


def test_no() -> None:
    wrong = wheel(result("WHL201", FAIL, message="the wheel is CPU; expected cuda"))
    assert line(CUDA, wrong) == "torch 2.11.0 for aarch64 is not a build for cuda: the wheel is CPU; expected cuda"
    lacking = wheel(result("WHL601", FAIL, message="no code for GB200 (10.0) in libtorch_cuda.so"))
    lacking.facts["gpu_code"]["products"][0]["runs"] = "none"  # GB200; H100 has code
    assert line(BOTH, lacking) == (
        "torch 2.11.0 for aarch64 does not run on GB200: no code for GB200 (10.0) in libtorch_cuda.so"
    )
    damaged = wheel(result("WHL124", FAIL, message="torch/_C.so is damaged"))
    assert line(CUDA, damaged) == "torch 2.11.0 for aarch64 is not in order: torch/_C.so is damaged"


@pytest.mark.parametrize("rule", ["WHL201", "WHL601"])
@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("severity", list(Severity))
def test_only_a_pass_of_each_rule_that_answers_is_a_yes(rule: str, outcome: Outcome, severity: Severity) -> None:
    (found,) = answer_wheels(BOTH, [wheel(result(rule, outcome, severity))])
    is_remark = outcome is FAIL and severity is not Severity.ERROR and rule == "WHL601"
    expected = Verdict.PASS if outcome is PASS or is_remark else Verdict.UNDECIDED
    assert found.verdict is (Verdict.FAIL if (outcome, severity) == (FAIL, Severity.ERROR) else expected)


@pytest.mark.parametrize("rule", ["WHL201", "WHL601"])
def test_a_rule_that_answers_and_was_not_selected(rule: str) -> None:
    judged = wheel()
    judged = replace(judged, results=tuple(r for r in judged.results if r.rule != rule))
    assert line(BOTH, judged) == (
        "torch 2.11.0 for aarch64 is not proven to be a build for cuda==13.0 and to have code for GB200 and H100: "
        f"{rule} was not run"
    )


def test_nothing_was_checked() -> None:
    judged = replace(wheel(), results=(result("WHL001", SKIP),))
    assert line(WheelQuestion(), judged) == "torch 2.11.0 for aarch64 is not proven to be in order: nothing was checked"


def test_what_is_no_wheel_is_answered_first() -> None:
    missing = Subject(
        "torch==9 for cp312 aarch64", "requirement", results=(result("WHL401", FAIL, message="no wheel"),)
    )
    unread = Subject("dist", "target", results=(result("WHL000", ERROR, message="there is no folder dist"),))
    found = answer_wheels(CUDA, [missing, unread, wheel()])
    assert [answer.line for answer in found] == [
        "torch==9 for cp312 aarch64 gives no wheel: no wheel",
        "not proven: there is no folder dist",
        "torch 2.11.0 for aarch64 is a CUDA 13.0 build",
    ]


def test_many_wheels_have_one_answer() -> None:
    good = [wheel() for _ in range(MANY)]
    assert line(CUDA, *good, wheel()) == "all 7 wheels are a build for cuda"
    assert line(CUDA, *good, wheel(result("WHL201", FAIL, message="the wheel is CPU"))) == (
        "1 of 7 wheels are not a build for cuda (torch 2.11.0 for aarch64): the wheel is CPU"
    )
    (found,) = answer_wheels(CUDA, [*good, wheel(result("WHL201", SKIP, message="unread"))])
    assert (found.verdict, found.line) == (
        Verdict.UNDECIDED,
        "not proven of 1 of 7 wheels (torch 2.11.0 for aarch64): unread",
    )
