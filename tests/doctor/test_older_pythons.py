"""Environments of an older Python, diagnosed by the doctor of this one: its programs run in Python 3.8 and later."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.patience import PATIENCE
from tests.support.patients import NCCL, Patient, torch_wheel
from tests.support.probing import probe
from tests.support.pythons import other_pythons
from tests.support.stub_driver import build, variables
from wheel_checks.model import Unavailable
from wheelproof.doctor.child_output import INSIDE

OLDEST = (3, 8)
PYTHONS = other_pythons()  # now, since a test has another home
needs_the_oldest = pytest.mark.skipif(OLDEST not in PYTHONS, reason="there is no Python 3.8 on this host")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"))


def doctor(python: str, environment: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """The exit code of the command, and the diagnosis."""
    command = [sys.executable, "-m", "wheelproof", "doctor", "--python", python, "--format", "json"]
    done = subprocess.run(
        command, check=False, env=environment, cwd="/", capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout, done.stderr
    return done.returncode, facts_of(done.stdout)


def facts_of(report: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(report)["subjects"][0]["facts"]
    return facts


@pytest.mark.parametrize("program", sorted(INSIDE.glob("*.py")), ids=lambda path: str(path.name))
def test_the_programs_have_the_syntax_of_python_3_8(program: Path) -> None:
    ast.parse(program.read_text(encoding="utf-8"), feature_version=OLDEST)


@pytest.mark.parametrize("version", [OLDEST, (3, 9), (3, 10), (3, 13)], ids=str)
def test_other_pythons_run_the_programs(driver: Path, version: tuple[int, int]) -> None:
    if version not in PYTHONS:
        pytest.skip(f"there is no Python {version[0]}.{version[1]} on this host")

    answers = probe(variables(driver, STUB_GPUS="2"), python=PYTHONS[version])

    assert not isinstance(answers.cuda, Unavailable)
    assert not isinstance(answers.nvml, Unavailable)
    assert not isinstance(answers.torch, Unavailable)
    assert len(answers.cuda.gpus) == len(answers.nvml.gpus) == 2
    assert answers.torch.error == "ModuleNotFoundError: No module named 'torch'"


@needs_the_oldest
@pytest.mark.parametrize(
    ("changed", "status", "root", "confidence"),
    [
        ({}, 0, None, ""),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1, "DOC601", "proven"),
        ({"STUB_CUINIT": "804"}, 1, "DOC313", "proven"),
        ({"STUB_CUDA_VERSION": "12080"}, 1, "DOC105", "certain"),
    ],
)
def test_the_right_cause_in_an_environment_of_python_3_8(
    tmp_path: Path, driver: Path, changed: dict[str, str], status: int, root: str | None, confidence: str
) -> None:
    patient = Patient.make(tmp_path / "venv", python=PYTHONS[OLDEST])

    ended, shown = doctor(patient.python, variables(driver, **changed))

    assert (ended, shown["root"], shown["confidence"], shown["others"]) == (status, root, confidence, [])
    assert shown["versions"]["Python"].startswith("3.8.")


@needs_the_oldest
def test_a_missing_library_in_an_environment_of_python_3_8(tmp_path: Path, driver: Path) -> None:
    patient = Patient.make(tmp_path / "venv", python=PYTHONS[OLDEST])
    patient.installed.remove(NCCL)

    status, shown = doctor(patient.python, variables(driver))

    assert (status, shown["root"], shown["others"]) == (1, None, ["DOC202"])


@needs_the_oldest
def test_a_copied_environment_of_python_3_8(wheelproof: Wheelproof, tmp_path: Path) -> None:
    """The environment and its interpreter, as the how-to page takes them from a node."""
    patient = Patient.make(tmp_path / "venv", torch_wheel("2.4.1", "cpu", python="cp38"), python=PYTHONS[OLDEST])
    archive, node = tmp_path / "venv.tar", tmp_path / "node"
    interpreters = Path(patient.python).resolve().parent.glob("python3*")
    subprocess.run(["tar", "-cf", archive, patient.folder, *interpreters], stderr=subprocess.DEVNULL, check=True)
    node.mkdir()
    subprocess.run(["tar", "-C", node, "-xf", archive], check=True)
    shutil.rmtree(patient.folder)

    run = wheelproof("doctor", "--root", str(node), "--python", str(patient.folder), "--format", "json")
    shown = facts_of(run.out)

    assert (run.status, shown["root"], shown["unexplained"]) == (1, "DOC102", [])
    assert shown["versions"]["Python"].startswith("3.8.")


@pytest.mark.skipif((3, 6) not in PYTHONS, reason="there is no Python 3.6 on this host")
def test_a_python_that_is_too_old_for_torch(wheelproof: Wheelproof) -> None:
    """As on RHEL 8."""
    run = wheelproof("doctor", "--python", PYTHONS[3, 6])

    assert run.status == 1
    assert f"DOC200  {PYTHONS[3, 6]} cannot be started: it is older than Python 3.8" in run.out
