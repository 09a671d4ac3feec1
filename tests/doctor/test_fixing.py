"""What --fix may run: installs into this virtual environment, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hosts import VENV, healthy, replaced
from wheel_checks.facts.host.advice import reinstall_torch
from wheel_checks.facts.host.commands import check_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import CheckResult, Fix, Outcome, Severity, Unavailable
from wheelproof.doctor.diagnosis import Diagnosis
from wheelproof.doctor.fixing import Ran, difference, plan, refusal, run_steps, what_to_run

INSTALL = f"{VENV}/bin/python -m pip install demo"


def host(**fields: str) -> HostFacts:
    return replaced(healthy(), "interpreter", **fields)


def why_not(command: str, facts: HostFacts | None = None) -> str:
    (step,) = plan(Fix("", (command,)), facts or host())
    return step.refusal


def refused(*commands: str) -> str:
    return refusal(plan(Fix("", commands), host()))


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
    assert why_not(command) == ""


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("sudo apt install nvidia-driver-580-open", "it needs root"),
        ("unset CUDA_VISIBLE_DEVICES", "it sets something in your shell"),
        ("export TRITON_CACHE_DIR=/tmp/triton", "it sets something in your shell"),
        ("docker run --gpus all image", "it changes more than this environment"),
        ("rm -rf /opt/env/lib/python3.12/site-packages/~orch", "it changes more than this environment"),
        ("pip install torch", "it changes more than this environment"),  # of which Python is that pip?
        ("/usr/bin/python3 -m pip install torch", "it changes more than this environment"),
        ("/opt/env/bin/../../other/bin/python -m pip install torch", "it changes more than this environment"),
        (f"{VENV}/bin/python -m pip download torch", "it changes more than this environment"),
        (f"{VENV}/bin/python -c 'import os'", "it changes more than this environment"),
        (f"{VENV}/bin/python -m pip install torch>=2.11", "it needs a shell"),  # writes a file named =2.11
        (f"{VENV}/bin/python -m pip install torch && reboot", "it needs a shell"),
        (f"{VENV}/bin/python -m pip install $(cat torch)", "it needs a shell"),
        (f"{VENV}/bin/python -m pip install 'torch", "it needs a shell"),
        (f"{VENV}/bin/python -m pip install --user torch", "--user leads outside of the environment"),
        (f"{VENV}/bin/python -m pip install --target=/srv torch", "--target=/srv leads outside of the environment"),
        ("uv pip install torch", "it changes more than this environment"),
        ("uv pip install --system torch", "it changes more than this environment"),
        (f"uv pip install --python {VENV} --python /usr torch", "it changes more than this environment"),
    ],
)
def test_nothing_else_is_run(command: str, reason: str) -> None:
    assert why_not(command) == reason


def test_the_systems_python_is_never_changed() -> None:
    system = host(path="/usr/bin/python3", prefix="/usr", base_prefix="/usr")

    assert why_not("/usr/bin/python3 -m pip install torch", system) == "/usr is no virtual environment"


def test_an_unknown_interpreter_is_never_changed() -> None:
    unknown = healthy(interpreter=Unavailable("it hangs"))

    assert why_not("/usr/bin/python3 -m pip install torch", unknown) == "the interpreter is unknown"


def test_a_fix_is_run_as_a_whole_or_not_at_all() -> None:
    assert refused(INSTALL) == ""
    assert refused("sudo apt install nvidia-open", INSTALL) == "it needs root: sudo apt install nvidia-open"


def test_the_command_that_checks_torch_is_no_part_of_it() -> None:
    install, check = reinstall_torch(host()).lines

    assert [step.command for step in plan(reinstall_torch(host()), host())] == [install]
    assert check == check_torch(host())


def test_a_choice_is_left_to_the_user() -> None:
    assert refused(f"{INSTALL}  # when the driver may be replaced", f"{INSTALL}  # else") == "it asks for a choice"


def test_without_a_command_there_is_nothing_to_run() -> None:
    assert plan(None, host()) == ()
    assert refused() == "it has no command"


def test_what_is_allowed_is_what_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A real pip of a real environment; it stops at the first command that fails."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv/bin/python")
    real = host(path=python, prefix=str(tmp_path / "venv"), base_prefix=sys.base_prefix)
    commands = (
        f"uv pip uninstall --python {python} demo",
        f"{python} -m pip uninstall -y demo",  # this environment has no pip
        f"{python} -m pip install x",
    )

    assert run_steps(plan(Fix("", commands), real)) == (Ran(commands[0], 0), Ran(commands[1], 1))
    out, err = capfd.readouterr()
    assert out == ""
    assert "No module named pip" in err


def found(rule: str, *commands: str, severity: Severity = Severity.ERROR) -> CheckResult:
    return CheckResult(rule, "", Outcome.FAIL, severity, "", fix=Fix("", commands))


def test_the_root_is_mended_first_and_alone() -> None:
    diagnosis = Diagnosis((), found("DOC202", INSTALL), others=(found("DOC101", f"{INSTALL} x"),))

    steps, notes = what_to_run(diagnosis, host())

    assert ([step.command for step in steps], notes) == ([INSTALL], [])


def test_without_a_root_whatever_was_found_is_mended_once() -> None:
    others = (found("DOC202", INSTALL), found("DOC206", INSTALL), found("DOC401", "sudo reboot"))
    note = found("DOC701", f"{INSTALL} x", severity=Severity.NOTE)

    steps, notes = what_to_run(Diagnosis((), others=(*others, note)), host())

    assert [step.command for step in steps] == [INSTALL]
    assert notes == ["--fix does not run the fix of DOC401: it needs root: sudo reboot"]


def test_a_healthy_host_needs_nothing() -> None:
    assert what_to_run(Diagnosis(()), host()) == ((), ["--fix has nothing to do"])


def test_what_a_fix_has_changed_is_told() -> None:
    before = Diagnosis((), found("DOC202"), consequences=(found("DOC801"),))

    assert difference(before, before) == "After the fix: nothing has changed."
    assert difference(before, Diagnosis(())) == "After the fix: DOC202 is gone, DOC801 is gone."
    assert difference(Diagnosis(()), before) == "After the fix: DOC202 is new, DOC801 is new."
