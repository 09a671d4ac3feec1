"""Small real environments in which the start of Python, or the import of torch, goes wrong: the cause and its fix."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.hosts import healthy, replaced
from tests.support.patients import TORCH, Patient, nccl_wheel, torch_wheel
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.host.software import DANGLING
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.fixes.commands import in_words
from wheel_checks.rules.host.installation.search import interpreter_starts

IMPORTS = f"import random\nrandom.Random\n{TORCH}"


def torch_that(source: str, *requires: str) -> WheelBuilder:
    """A small torch of which this is the __init__.py."""
    wheel = torch_wheel().metadata(requires=["nvidia-nccl-cu13==2.28.9", *requires])
    return wheel.add("torch/__init__.py", source)


def patient(folder: Path, source: str = IMPORTS, *requires: str) -> Patient:
    return Patient.make(folder / "venv", torch_that(source, *requires), nccl_wheel())


def found(wheelproof: Wheelproof, python: str, *arguments: str) -> dict[str, Any]:
    """The findings of a diagnosis by their rules."""
    run = wheelproof("doctor", "--python", python, "--format", "json", *arguments)
    assert run.status == 1, run.out
    results = json.loads(run.out)["subjects"][0]["results"]
    return {result["rule"]: result for result in results if result["outcome"] == "fail"}


def command_of(finding: dict[str, Any]) -> str:
    (command,) = finding["fix"]["commands"]
    return str(command)


def sound(patient: Patient, folder: Path) -> bool:
    """Whether torch can be imported as its user would, in a folder."""
    command = [patient.python, "-c", "import torch, random; random.Random"]
    return not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


@pytest.mark.skipif(
    Path(sysconfig.get_path("stdlib"), "sitecustomize.py").exists(),
    reason="this Python has a sitecustomize in its standard library (Debian's has), which is imported instead",
)
def test_a_customized_start_that_hides_the_gpus(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path)
    file = Path(one.installed.site_packages, "sitecustomize.py")
    file.write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n")
    finding = found(wheelproof, one.python)["DOC224"]

    assert f"{file} sets CUDA_VISIBLE_DEVICES to '' when Python starts" in finding["message"]
    subprocess.run(command_of(finding), shell=True, check=True)  # the user would paste it into one
    assert wheelproof("doctor", "--python", one.python).status == 3  # no GPU here, and nothing hides one


def test_a_start_up_file_of_a_distribution_is_not_renamed(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path)
    brought = WheelBuilder("gpu_guard", "1.0", "py3-none-any").metadata()
    one.installed.install(brought.add("gpu_guard.pth", "import os; os.environ['CUDA_VISIBLE_DEVICES'] = ''\n"))
    finding = found(wheelproof, one.python)["DOC224"]

    assert finding["fix"]["commands"] == []
    assert finding["fix"]["summary"].startswith("gpu-guard installed the file: use a release of it")
    assert {"label": "distribution", "value": "gpu-guard", "source": "its RECORD"} in finding["evidence"]


def test_a_start_that_selects_a_gpu_hides_none(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path)
    Path(one.installed.site_packages, "one.pth").write_text("import os; os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n")
    run = wheelproof("doctor", "--python", one.python)

    assert run.status == 3
    assert "warning  DOC224" in run.out


def test_a_file_of_the_working_directory_in_place_of_a_standard_module(
    wheelproof: Wheelproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, here = patient(tmp_path), tmp_path / "here"
    here.mkdir()
    (here / "random.py").write_text("")
    (here / "sunau.py").write_text("")  # torch does not import it
    monkeypatch.chdir(here)
    assert not sound(one, here)
    finding = found(wheelproof, one.python)["DOC225"]

    assert finding["message"].startswith(f"torch imports {here}/random.py instead of Python's own module")
    subprocess.run(command_of(finding), shell=True, check=True, cwd=here)
    (here / "random.py").rename(here / "my_random.py")
    assert wheelproof("doctor", "--python", one.python).status == 3


def test_a_file_of_pythonpath_in_place_of_a_standard_module(
    wheelproof: Wheelproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, there = patient(tmp_path), tmp_path / "there"
    there.mkdir()
    (there / "random.py").write_text("raise ImportError('mine')\n")
    monkeypatch.setenv("PYTHONPATH", str(there))
    finding = found(wheelproof, one.python)["DOC225"]

    assert finding["message"].startswith(f"torch imports {there}/random.py")
    assert command_of(finding) == "unset PYTHONPATH"


@pytest.fixture
def bounded() -> Iterator[None]:
    """At most 16 GiB of addresses for this process and its children."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.usefixtures("bounded")
def test_too_few_addresses(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path, f"import mmap\nmmap.mmap(-1, 20 << 30)\n{TORCH}")
    finding = found(wheelproof, one.python)["DOC226"]

    assert "limited to 17.2 GB (ulimit -v)" in finding["message"]
    assert command_of(finding) == "ulimit -v unlimited"


def test_a_requirement_that_was_left_out(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path, f"import typing_extensions\n{TORCH}", "typing-extensions>=4.10.0")
    finding = found(wheelproof, one.python)["DOC227"]

    assert "torch requires typing-extensions>=4.10.0, which is not installed" in finding["message"]
    assert "'typing-extensions>=4.10.0'" in command_of(finding)


def test_an_extension_module_for_another_python(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path, f"from torch._C import *\n{TORCH}")
    name = "_C.cpython-36m-x86_64-linux-gnu.so"
    Path(one.installed.site_packages, "torch", name).write_bytes(b"")
    finding = found(wheelproof, one.python)["DOC228"]

    assert finding["message"].startswith(f"torch is built for {name}, which Python {sys.version.split()[0]} cannot")
    assert "torch==2.11.0" in command_of(finding)


def test_a_file_that_was_edited(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path)
    file = Path(one.installed.site_packages, "torch/__init__.py")
    file.write_text(f"{file.read_text()}\nraise ValueError('mine')\n")
    finding = found(wheelproof, one.python)["DOC229"]

    assert finding["message"] == f"{file} is not the file that torch 2.11.0 installed: its hash does not match RECORD"
    assert "--reinstall-package=torch" in command_of(finding)


def test_an_interpreter_that_is_gone(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path)
    for link in one.folder.glob("bin/python*"):
        link.unlink()
    Path(one.python).symlink_to("/nonexistent/python3")
    finding = found(wheelproof, str(one.folder))["DOC200"]

    assert finding["message"].endswith("it is a link to /nonexistent/python3, which does not exist")
    assert finding["fix"]["commands"][0].startswith(f"uv venv --python {sys.version_info[0]}.{sys.version_info[1]} ")


def test_an_interpreter_that_may_not_be_executed(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path)
    for link in one.folder.glob("bin/python*"):
        link.unlink()
    shutil.copyfile(os.path.realpath(sys.executable), one.python)
    finding = found(wheelproof, str(one.folder))["DOC200"]

    assert "Permission denied" in finding["message"]
    assert command_of(finding) == f"chmod +x {one.python}"


def test_an_interpreter_whose_mode_allows_it_and_whose_script_does_not_run(
    wheelproof: Wheelproof, tmp_path: Path
) -> None:
    """The kernel reports Permission denied for the program in the first line: chmod does not help."""
    one = patient(tmp_path)
    for link in one.folder.glob("bin/python*"):
        link.unlink()
    Path(one.python).write_text("#!/proc/version\n")
    Path(one.python).chmod(0o755)
    finding = found(wheelproof, str(one.folder))["DOC200"]

    assert "Permission denied" in finding["message"]
    assert [command.split()[0] for command in finding["fix"]["commands"]] == ["findmnt", "ls"]


def test_an_interpreter_that_speaks_of_what_does_not_exist_is_no_dead_link(
    wheelproof: Wheelproof, tmp_path: Path
) -> None:
    one = patient(tmp_path)
    for link in one.folder.glob("bin/python*"):
        link.unlink()
    Path(one.python).write_text("#!/bin/sh\necho 'Error: a folder, which does not exist' >&2\nexit 1\n")
    Path(one.python).chmod(0o755)
    finding = found(wheelproof, str(one.folder))["DOC200"]

    assert "which does not exist" in finding["message"]
    assert "uv venv" not in str(finding["fix"]["commands"])


def test_a_free_threaded_environment_is_made_again_as_one() -> None:
    facts = replaced(healthy(), "interpreter", version="3.13.1", free_threaded=True, fault="gone", obstacle=DANGLING)
    (finding,) = interpreter_starts(facts, Expectations())

    assert finding.fix is not None
    assert "--python 3.13t" in in_words(finding.fix.commands[0])


def test_a_torch_of_which_the_metadata_is_gone(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path)
    shutil.rmtree(one.installed.site_packages / "torch-2.11.0.dist-info")

    assert "for pip and uv it is not installed" in found(wheelproof, one.python)["DOC002"]["message"]


def test_nothing_of_this_where_nothing_is_wrong(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = patient(tmp_path, f"import typing_extensions\n{TORCH}".replace("typing_extensions", "random"))
    run = wheelproof("doctor", "--python", one.python, "-v")

    assert run.status == 3
    assert all(f"skipped  DOC{number}" in run.out or f"passed   DOC{number}" in run.out for number in range(224, 230))
    assert os.environ.get("PYTHONPATH", "") == ""
