"""--full: the kernels are run by another of our processes, and its report becomes a part of the doctor's."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.patients import Patient
from tests.support.stub_driver import build, variables
from wheel_checks.fixes.commands import Command
from wheel_checks.model import Answer, CheckResult, Evidence, Fix, Outcome, Report, Severity, Subject, Verdict
from wheel_checks.report.json_report import as_dict
from wheelproof.doctor.full import run_smoke, smoke_command, smoke_subject

WRONG = CheckResult(
    "KRN201",
    "results are right",
    Outcome.FAIL,
    Severity.ERROR,
    "2 elements differ",
    (Evidence("case", "8x8"),),
    Fix("report it", (Command(("wheelproof", "smoke", "--seed", "1")),)),
)
LEFT_OPEN = Answer(Verdict.UNDECIDED, "not proven on 2 GPUs", reasons=("one of them was busy",))
GOOD = replace(WRONG, outcome=Outcome.PASS)


def report(*subjects: Subject) -> Report:
    return Report("smoke", "0", "2026-11-20T09:00:00Z", 1.0, subjects)


def test_what_did_not_pass_is_taken_over() -> None:
    kernels = Subject("norm", "kernel", results=(GOOD, WRONG)), Subject("rope", "kernel", results=(GOOD,))
    subject = smoke_subject(as_dict(report(*kernels)))

    assert (subject.id, subject.kind, subject.headline) == (
        "smoke --level quick",
        "smoke",
        "2 kernels ran, 2 checks passed",
    )
    assert subject.results == (replace(WRONG, message="norm: 2 elements differ"),)


def test_a_report_that_is_undecided_by_its_answer_is_taken_over() -> None:
    """Every check passed, and the report says that they do not suffice."""
    passed = replace(report(Subject("norm", "kernel", results=(GOOD,))), answers=(LEFT_OPEN,))
    (result,) = smoke_subject(as_dict(passed)).results

    assert result.outcome is Outcome.ERROR
    assert result.message == "whether the kernels work is not decided: not proven on 2 GPUs: one of them was busy"


def test_a_report_without_kernels_is_no_pass() -> None:
    (result,) = smoke_subject(as_dict(report())).results
    assert (result.outcome, result.message) == (
        Outcome.ERROR,
        "whether the kernels work is not decided: its report has no details",
    )


def test_the_command_line_is_one_that_smoke_understands(wheelproof: Wheelproof) -> None:
    """Its options are checked before it looks for torch."""
    python, apart, *command = smoke_command("/nowhere/python", 30)
    assert (python, apart, command[:3]) == (sys.executable, "-P", ["-m", "wheelproof", "smoke"])
    options = command[2:]
    run = wheelproof(*options)

    assert run.status == 3
    assert "there is no /nowhere/python" in run.err


def test_an_interpreter_without_torch_leaves_it_undecided() -> None:
    subject = run_smoke(sys.executable, 60)

    assert {result.outcome for result in subject.results} == {Outcome.ERROR}


def test_it_is_a_subject_of_the_doctors_report(
    wheelproof: Wheelproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torch that only pretends to compute passes the doctor's small trial, and not the kernels."""
    patient = Patient.make(tmp_path / "venv")
    for name, value in variables(build(tmp_path / "driver")).items():
        monkeypatch.setenv(name, value)
    run = wheelproof("doctor", "--python", patient.python, "--full")

    assert run.status in {1, 3}
    assert "smoke --level quick" in run.out


def test_without_a_gpu_no_kernel_is_run(wheelproof: Wheelproof) -> None:
    run = wheelproof("doctor", "--python", sys.executable, "--full")

    assert "--full ran no kernels: torch sees no GPU." in run.out
