"""The first line of ``pins predict``."""

from __future__ import annotations

from tests.answers.results import ERROR, FAIL, result
from wheel_checks.answers.pins import answer_prediction
from wheel_checks.model import CheckResult, Severity, Subject, Verdict

KEEPS = ("PIN311", "PIN314", "PIN315")


def package(name: str, *results: CheckResult, version: str = "2.7.0", role: str = "framework") -> Subject:
    facts = {"installer": "uv", "name": name, "role": role, "from": version, "to": version}
    return Subject(f"{name} under uv", "package", facts=facts, results=results or tuple(map(result, KEEPS)))


def install(*results: CheckResult) -> Subject:
    return Subject("uv: vllm", "install", facts={"installer": "uv"}, results=results or (result("PIN316"),))


def test_what_stays() -> None:
    answer = answer_prediction([install(), package("torch"), package("jax")])

    assert (answer.verdict, answer.line) == (Verdict.PASS, "torch 2.7.0 and jax 2.7.0 stay with uv")


def test_a_companion_counts_where_no_framework_is() -> None:
    answer = answer_prediction([install(), package("torchcodec", role="companion")])

    assert answer.line == "torchcodec 2.7.0 stays with uv"


def test_what_is_lost_comes_first() -> None:
    lost = [result("PIN311", FAIL, message="torch would be replaced"), result("PIN315", FAIL, message="and broken")]

    answer = answer_prediction([install(result("PIN316", ERROR, message="it is open")), package("torch", *lost)])

    assert (answer.verdict, answer.line) == (Verdict.FAIL, "torch would be replaced (and 1 more finding)")


def test_a_warning_loses_nothing() -> None:
    warned = result("PIN313", FAIL, Severity.WARNING, "the install would fail, and change nothing")

    assert answer_prediction([install(warned, result("PIN316")), package("torch")]).verdict is Verdict.PASS


def test_what_is_open() -> None:
    answer = answer_prediction([install(result("PIN316", ERROR, message="a build computes it")), package("torch")])

    assert answer.verdict is Verdict.UNDECIDED
    assert answer.line == "it is not proven that torch 2.7.0 stays: a build computes it"


def test_without_anything_nothing_is_proven() -> None:
    assert answer_prediction([install()]).verdict is Verdict.UNDECIDED


def test_a_rule_that_was_not_run_leaves_it_open() -> None:
    answer = answer_prediction([install(), package("torch", result("PIN311"))])

    assert answer.verdict is Verdict.UNDECIDED
    assert answer.line == "it is not proven that torch 2.7.0 stays: PIN314 and PIN315 were not run"
