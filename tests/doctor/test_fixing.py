"""What --fix may run: installs into this virtual environment, and nothing else."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hosts import VENV, healthy, replaced
from wheel_checks.commands import (
    Command,
    Export,
    NoCommand,
    Options,
    Pipe,
    Step,
    Unset,
    WriteFile,
    shell,
)
from wheel_checks.facts.host.advice import reinstall_torch
from wheel_checks.facts.host.commands import check_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import CheckResult, Fix, Outcome, Severity, Unavailable
from wheelproof.doctor.diagnosis import Diagnosis
from wheelproof.doctor.fixing import Ran, difference, plan, refusal, run_steps, what_to_run

INSTALL = Command((f"{VENV}/bin/python", "-m", "pip", "install", "demo"))
SHOWN = f"{VENV}/bin/python -m pip install demo"
REBOOT = Command(("sudo", "reboot"))


def vector(text: str) -> Command:
    """The command that a shell would make of a line without anything but words in quotes."""
    return Command(tuple(shlex.split(text)))


def host(**fields: str) -> HostFacts:
    return replaced(healthy(), "interpreter", **fields)


def why_not(step: Step, facts: HostFacts | None = None) -> str:
    (planned,) = plan(Fix("", (step,)), facts or host())
    return planned.refusal


def refused(*steps: Step) -> str:
    return refusal(plan(Fix("", steps), host()))


@pytest.mark.parametrize(
    "command",
    [
        f"{VENV}/bin/python -m pip install --force-reinstall --no-deps nvidia-nccl-cu13==2.28.9",
        f"{VENV}/bin/python -m pip install 'torch>=2.11'",
        f"{VENV}/bin/python -m pip uninstall -y torch",
        f"uv pip install --python {VENV}/bin/python 'torch==2.11.0' --torch-backend=cu126",
        f"uv pip install --python={VENV} triton==3.6.0",
    ],
)
def test_installs_into_the_environment_may_be_run(command: str) -> None:
    assert why_not(vector(command)) == ""


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("sudo apt install nvidia-driver-580-open", "it needs root"),
        ("docker run --gpus all image", "it changes more than this environment"),
        ("rm -rf /opt/env/lib/python3.12/site-packages/~orch", "it changes more than this environment"),
        ("pip install torch", "it changes more than this environment"),  # of which Python is that pip?
        ("/usr/bin/python3 -m pip install torch", "it changes more than this environment"),
        ("/opt/env/bin/../../other/bin/python -m pip install torch", "it changes more than this environment"),
        (f"{VENV}/bin/python -m pip download torch", "it changes more than this environment"),
        (f"{VENV}/bin/python -c 'import torch'", "it changes more than this environment"),
        (f"{VENV}/bin/python -m pip install --user torch", "--user leads outside of the environment"),
        (f"{VENV}/bin/python -m pip install --target=/srv torch", "--target=/srv leads outside of the environment"),
        ("uv pip install torch", "it changes more than this environment"),
        ("uv pip install --system torch", "it changes more than this environment"),
        (f"uv pip install --python {VENV} --python /usr torch", "it changes more than this environment"),
    ],
)
def test_nothing_else_is_run(command: str, reason: str) -> None:
    assert why_not(vector(command)) == reason


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Unset(("CUDA_VISIBLE_DEVICES",)), "it sets something in your shell"),
        (Export("TRITON_CACHE_DIR", "/tmp/triton"), "it sets something in your shell"),
        (Pipe((("dmesg",), ("grep", "xid"))), "it needs a shell"),
        (WriteFile("/etc/modprobe.d/uvm.conf", ("options",)), "it writes a file"),
        (Options(("docker", "run"), ("--gpus", "all")), "it is for a command of yours"),
        (NoCommand("the path is not known"), "there is no command that is safe to run"),
        (replace(INSTALL, folder="/srv"), "it changes more than this environment"),
        (replace(INSTALL, note="else"), "it asks for a choice"),
    ],
)
def test_only_a_vector_is_run(step: Step, reason: str) -> None:
    assert why_not(step) == reason


def test_the_systems_python_is_never_changed() -> None:
    system = host(path="/usr/bin/python3", prefix="/usr", base_prefix="/usr")

    assert why_not(vector("/usr/bin/python3 -m pip install torch"), system) == "/usr is no virtual environment"


def test_an_unknown_interpreter_is_never_changed() -> None:
    unknown = healthy(interpreter=Unavailable("it hangs"))

    assert why_not(vector("/usr/bin/python3 -m pip install torch"), unknown) == "the interpreter is unknown"


def test_a_fix_is_run_as_a_whole_or_not_at_all() -> None:
    assert refused(INSTALL) == ""
    assert refused(REBOOT, INSTALL) == "it needs root: sudo reboot"


def test_the_command_that_checks_torch_is_no_part_of_it() -> None:
    fix = reinstall_torch(host())

    assert [step.command for step in plan(fix, host())] == [fix.lines[0]]
    assert fix.commands[1:] == (check_torch(host()),)


def test_a_choice_is_left_to_the_user() -> None:
    steps = replace(INSTALL, note="when the driver may be replaced"), replace(INSTALL, note="else")

    assert refused(*steps) == "it asks for a choice"


def test_without_a_command_there_is_nothing_to_run() -> None:
    assert plan(None, host()) == ()
    assert refused() == "it has no command"


def test_what_is_allowed_is_what_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A real pip of a real environment; it stops at the first command that fails."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv/bin/python")
    real = host(path=python, prefix=str(tmp_path / "venv"), base_prefix=sys.base_prefix)
    steps = (
        Command(("uv", "pip", "uninstall", "--python", python, "demo")),
        Command((python, "-m", "pip", "uninstall", "-y", "demo")),  # this environment has no pip
        Command((python, "-m", "pip", "install", "x")),
    )

    assert run_steps(plan(Fix("", steps), real)) == (Ran(shell(steps[0]), 0), Ran(shell(steps[1]), 1))
    out, err = capfd.readouterr()
    assert out == ""
    assert "No module named pip" in err


def found(rule: str, *commands: Step, severity: Severity = Severity.ERROR) -> CheckResult:
    return CheckResult(rule, "", Outcome.FAIL, severity, "", fix=Fix("", commands))


def test_the_root_is_mended_first_and_alone() -> None:
    diagnosis = Diagnosis((), found("DOC202", INSTALL), others=(found("DOC101", vector(f"{SHOWN} x")),))

    steps, notes = what_to_run(diagnosis, host())

    assert ([step.command for step in steps], notes) == ([SHOWN], [])


def test_without_a_root_whatever_was_found_is_mended_once() -> None:
    others = (found("DOC202", INSTALL), found("DOC206", INSTALL), found("DOC401", REBOOT))
    note = found("DOC701", vector(f"{SHOWN} x"), severity=Severity.NOTE)

    steps, notes = what_to_run(Diagnosis((), others=(*others, note)), host())

    assert [step.command for step in steps] == [SHOWN]
    assert notes == ["--fix does not run the fix of DOC401: it needs root: sudo reboot"]


def test_a_healthy_host_needs_nothing() -> None:
    assert what_to_run(Diagnosis(()), host()) == ((), ["--fix has nothing to do"])


def test_what_a_fix_has_changed_is_told() -> None:
    before = Diagnosis((), found("DOC202"), consequences=(found("DOC801"),))

    assert difference(before, before) == "After the fix: nothing has changed."
    assert difference(before, Diagnosis(())) == "After the fix: DOC202 is gone, DOC801 is gone."
    assert difference(Diagnosis(()), before) == "After the fix: DOC202 is new, DOC801 is new."
