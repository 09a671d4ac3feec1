"""Unchecked kernels are undecided; checks without a subject are skipped with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from kernels_smoke.suite.advice import shown
from kernels_smoke.suite.probes.compiler import PACKAGES
from kernels_smoke.suite.probes.driver_faults import FAULTS
from kernels_smoke.suite.probes.driver_program import LIBRARIES, NO_DRIVER
from tests.rules.kernels.kernel_cases import PYTHON, REPLAY, gpu, installation, kernel, target
from tests.support.smoke import case, compiled, fault, mutant, probe, speed
from tests.support.wheel_facts import findings, judged
from wheel_checks.facts.kernels.facts import InstallationFacts, NoDocument
from wheel_checks.fixes.commands import Command, NoCommand, Options, decoded, in_words
from wheel_checks.model import CheckResult, Evidence, Fix, Outcome


def only(rule: str, facts: Any) -> CheckResult:
    (result,) = judged(rule, facts)
    return result


@pytest.mark.parametrize(
    ("rule", "facts", "message"),
    [
        ("KRN101", installation(probe("torch", "error", "torch is missing")), "torch is missing"),
        ("KRN199", installation(probe("calibration", "error", "no memory is free")), "no memory is free"),
        ("KRN001", installation(probe("suite", "error", "it exited with code 1")), "it exited with code 1"),
        (
            "KRN001",
            installation(probe("torch"), verdict="undecided", message="nothing was checked"),
            "the suite could not decide: nothing was checked",
        ),
        ("KRN204", kernel(case("norm", outcome="error", message="no memory")), "1 of 1 cases not checked: plain"),
        ("KRN204", kernel(speed("norm", outcome="error")), "1 of 1 runs not checked: 16384x4096"),
        (
            "KRN115",
            installation(probe("kernels /x.py", "error", "/x.py cannot be imported")),
            "/x.py cannot be imported",
        ),
        ("KRN205", kernel(mutant("norm", "m1", "error", "no memory")), "1 of 1 mutants not judged: m1"),
        ("KRN401", target(compiled("mm", outcome="error", message="no compiler")), "mm / plain: _mm: no compiler"),
    ],
)
def test_what_could_not_be_checked_is_undecided(rule: str, facts: Any, message: str) -> None:
    result = only(rule, facts)

    assert (result.outcome, result.message) == (Outcome.ERROR, message)


@pytest.mark.parametrize(
    ("rule", "facts", "why"),
    [
        ("KRN501", gpu(uuid="MIG-1", rates={"bandwidth": 0.4e12}), "a MIG instance is a part of a GPU"),
        ("KRN502", gpu(name="NVIDIA Z1"), "the table has no rates for NVIDIA Z1"),
        ("KRN504", gpu(state={}), "NVML returned no data for this GPU"),
        ("KRN505", gpu(), "no sustained load was requested"),
    ],
)
def test_a_gpu_of_which_too_little_is_known_is_not_judged(rule: str, facts: Any, why: str) -> None:
    result = only(rule, facts)
    assert result.outcome is Outcome.SKIP
    assert why in result.message


def test_a_suite_without_a_report_is_undecided_with_its_last_words() -> None:
    outcome = NoDocument("the suite killed by SIGSEGV, without a report", "one\ntwo\n", "Look there.")
    result = only("KRN001", InstallationFacts(PYTHON, outcome))

    assert (result.outcome, result.message) == (Outcome.ERROR, "the suite killed by SIGSEGV, without a report")
    assert result.evidence == (
        Evidence("interpreter", PYTHON),
        Evidence("last words", "one"),
        Evidence("last words", "two"),
    )
    assert result.fix == Fix("Look there.")


def test_what_is_wrong_counts_beside_what_could_not_be_checked() -> None:
    facts = kernel(case("norm", "a", "refused"), case("norm", "b", "error"))

    assert [result.outcome for result in judged("KRN204", facts)] == [Outcome.FAIL, Outcome.ERROR]


@pytest.mark.parametrize(
    ("rule", "facts", "message"),
    [
        ("KRN111", installation(probe("torch")), "this run did not include the probe"),
        ("KRN111", installation(probe("nccl", "skip", "there is one GPU")), "there is one GPU"),
        ("KRN201", kernel(case("norm", outcome="skip", message="no fp8 here")), "no fp8 here"),
        ("KRN201", kernel(), "this run did not include a case of it"),
        ("KRN301", kernel(case("norm")), "this run did not include a timed run of it"),
        (
            "KRN402",
            target(compiled("mm", outcome="skip", registers=None, message="cuobjdump is missing")),
            "cuobjdump is missing",
        ),
    ],
)
def test_what_there_was_nothing_of_is_skipped_with_its_reason(rule: str, facts: Any, message: str) -> None:
    result = only(rule, facts)

    assert (result.outcome, result.message) == (Outcome.SKIP, message)


def test_a_wrong_result_can_be_repeated_with_its_inputs() -> None:
    (result,) = findings("KRN201", kernel(case("norm", outcome="wrong")))

    assert result.fix == Fix("Repeat it alone, with the same inputs:", (REPLAY,))


def test_commands_and_sentences_of_the_advice_are_told_apart() -> None:
    apt, pip = ["apt-get", "install", "gcc"], ["/opt/my venv/bin/python", "-m", "pip", "install", "x"]
    advice = [{"argv": apt, "note": "as root"}, "in a container, add it to the image", {"argv": pip}]
    (result,) = findings("KRN108", installation(probe("c_compiler", "fail", "there isn't one", fix=advice)))

    assert result.fix == Fix(
        "in a container, add it to the image", (Command(tuple(apt), "as root"), Command(tuple(pip)))
    )


def test_advice_that_is_no_command_or_hides_code_is_withheld() -> None:
    advice = [{"argv": ["sh", "-c", "id"]}, {"argv": "id"}]
    (result,) = findings("KRN108", installation(probe("c_compiler", "fail", "there isn't one", fix=advice)))

    assert result.fix is not None
    assert [type(step) for step in result.fix.commands] == [NoCommand, NoCommand]


def test_what_a_whole_target_lacks_is_said_once_with_its_fix() -> None:
    records = [
        compiled(
            name,
            "sm_121",
            "fail",
            [fault("unknown_to_ptxas", "unknown", {"argv": ["pip", "install", "triton>=3.7.1"]})],
        )
        for name in ("a", "b", "c")
    ]
    (result,) = findings("KRN405", target(*records, name="sm_121"))

    assert result.fix == Fix("run this:", (Command(("pip", "install", "triton>=3.7.1")),))


def test_of_long_last_words_the_end_is_shown() -> None:
    words = "\n".join(f"line {number}" for number in range(100))
    (result,) = findings("KRN202", kernel(case("norm", outcome="crash", evidence={"last words": words})))

    assert [item.value for item in result.evidence[1:]] == [f"line {number}" for number in range(88, 100)]


def test_every_command_that_the_suite_advises_is_a_step() -> None:
    advice = [*(one for fault in FAULTS.values() for one in fault.fix), *LIBRARIES, *NO_DRIVER]
    advice += [one for packages in PACKAGES.values() for one in packages]
    steps = {shown(one): decoded(one) for one in advice if not isinstance(one, str)}

    assert len(steps) > 15
    assert {text: in_words(step) for text, step in steps.items() if isinstance(step, NoCommand)} == {}
    assert [text for text, step in steps.items() if not isinstance(step, Options) and in_words(step) != text] == []
