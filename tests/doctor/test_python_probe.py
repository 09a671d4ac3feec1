"""The interpreter: the choice, its own facts, and facts of one that does not run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.wheels import elf_stub
from wheel_checks.facts.host.software import Interpreter
from wheel_checks.model import Unavailable
from wheelproof.doctor.children import Budget
from wheelproof.doctor.probes.python import read_interpreter

LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
VERSION = ".".join(map(str, sys.version_info[:3]))
BASE = str(Path(sys.base_prefix) / "bin" / "python3")


def read(python: str = "", *, seconds: float = 20, **variables: str) -> Interpreter:
    """The interpreter, with these variables and no others."""
    found = read_interpreter(python=python, environ={"PATH": "", **variables}, budget=Budget(seconds))
    assert isinstance(found, Interpreter), found
    return found


def refused(python: str = "", **variables: str) -> Unavailable:
    found = read_interpreter(python=python, environ={"PATH": "", **variables})
    assert isinstance(found, Unavailable), found
    return found


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def program(path: Path, script: str) -> Path:
    """A program that a shell runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def broken_environment(folder: Path, interpreter: bytes) -> Path:
    """An environment whose interpreter is these bytes."""
    (folder / "lib/python3.12/site-packages").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text("home = /opt/python/bin\nversion = 3.12.4\n")
    (folder / "bin/python3").write_bytes(interpreter)
    (folder / "bin/python3").chmod(0o755)
    return folder


def test_this_interpreter() -> None:
    python = read(sys.executable)

    assert (python.path, python.found, python.fault) == (sys.executable, "asked for", "")
    assert (python.version, python.implementation) == (VERSION, "cpython")
    assert (python.prefix, python.base_prefix) == (sys.prefix, sys.base_prefix)
    assert python.purelib == sysconfig.get_path("purelib")
    assert python.working_directory == os.getcwd()  # noqa: PTH109
    assert python.machine == os.uname().machine
    assert python.libc[0] in {"glibc", "musl"}
    assert python.python_h == Path(python.include, "Python.h").is_file()
    assert not python.free_threaded


def test_its_tags_begin_with_its_own_abi_and_this_machine() -> None:
    python = read(sys.executable)
    abi = f"cp{sys.version_info.major}{sys.version_info.minor}"
    glibc = python.libc[1].replace(".", "_")

    assert python.tags[0] == f"{abi}-{abi}-manylinux_{glibc}_{python.machine}"
    assert len(python.tags) == 40


def test_an_environment_by_its_folder_and_by_its_interpreter(venv: Path) -> None:
    for name in (venv, venv / "bin" / "python", venv / "bin" / "python3"):
        python = read(str(name))
        assert python.is_virtual
        assert python.prefix == str(venv)
        assert python.path.startswith(f"{venv}/bin/python")  # the link, not its target
        assert python.purelib == str(venv / LIBRARY / "site-packages")
        assert python.purelib in python.search_path
        assert not python.has_pip


def test_the_active_environment_then_the_first_on_path(venv: Path, tmp_path: Path) -> None:
    path = os.pathsep.join((str(tmp_path / "empty"), str(venv / "bin")))

    assert read(VIRTUAL_ENV=str(venv)).found == "VIRTUAL_ENV names it"
    assert read(CONDA_PREFIX=str(venv), PATH="/usr/bin").found == "CONDA_PREFIX names it"
    assert read(PATH=path).found == "the first python3 on PATH"
    assert read(PATH=path).prefix == str(venv)
    assert read("python3", PATH=path).found == "asked for"


def test_a_script_that_starts_another_one_is_followed(venv: Path, tmp_path: Path) -> None:
    """Such as a version manager's."""
    shim = program(tmp_path / "shims/python3", f'exec {venv}/bin/python3 "$@"')

    python = read(PATH=str(shim.parent))

    assert python.path == f"{venv}/bin/python3"
    assert python.found == f"the first python3 on PATH: {shim} starts it"


def test_the_search_path_is_the_user_s(venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "extra").mkdir()
    (tmp_path / "more").mkdir()
    (venv / LIBRARY / "site-packages/more.pth").write_text(f"{tmp_path}/more\n")

    python = read(str(venv), PYTHONPATH=f"{tmp_path}/extra")

    assert python.search_path[:2] == ("", f"{tmp_path}/extra")
    assert python.search_path[-1] == f"{tmp_path}/more"
    assert python.working_directory == str(tmp_path)
    assert "" not in read(str(venv), PYTHONSAFEPATH="1").search_path or sys.version_info < (3, 11)


def test_files_of_the_working_directory_do_not_harm_it(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('not the standard library')")

    assert read(str(venv)).version == VERSION


def test_the_user_s_site_packages_count_outside_of_environments(venv: Path, tmp_path: Path) -> None:
    own = tmp_path / "home/.local" / LIBRARY / "site-packages"
    own.mkdir(parents=True)
    home = str(tmp_path / "home")

    assert read(BASE, HOME=home).user_site == str(own)
    assert str(own) in read(BASE, HOME=home).search_path
    assert read(BASE, HOME=home, PYTHONNOUSERSITE="1").user_site == ""
    assert read(str(venv), HOME=home).user_site == ""


def test_one_that_hangs_is_ended_and_described_by_its_files(venv: Path) -> None:
    (venv / LIBRARY / "site-packages/hang.pth").write_text("import time; time.sleep(600)\n")

    python = read(str(venv), seconds=1)

    assert python.fault == "it did not answer within 1 s"
    assert (python.version, python.prefix) == (VERSION, str(venv))
    assert python.purelib == str(venv / LIBRARY / "site-packages")
    assert python.base_prefix == sys.base_prefix


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("import os; os.kill(os.getpid(), 11)", "it was killed by SIGSEGV"),
        ("import os; os._exit(3)", "it exited with code 3"),
        (
            "import sys; sys.stderr.write('Fatal Error: x\\nmore'); sys.stderr.flush(); import os; os._exit(1)",
            "Error: x",
        ),
    ],
)
def test_one_that_breaks_at_its_start_says_how(venv: Path, code: str, fault: str) -> None:
    (venv / LIBRARY / "site-packages/broken.pth").write_text(f"{code}\n")

    assert fault in read(str(venv)).fault


def test_pythonhome_of_nowhere() -> None:
    assert "No module named 'encodings'" in read(BASE, PYTHONHOME="/nowhere").fault


def test_one_for_another_machine(tmp_path: Path) -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    folder = broken_environment(tmp_path / "env", elf_stub(other))

    python = read(str(folder))

    # The kernel's message, or qemu's if it runs programs of the other machine.
    assert re.search("Exec format error|Invalid ELF image", python.fault)
    assert (python.machine, python.version, python.base_prefix) == (other, "3.12.4", "/opt/python")


def test_one_that_is_too_old(tmp_path: Path) -> None:
    """What Python 3.6 says of the program."""
    folder = broken_environment(tmp_path / "env", b"")
    program(folder / "bin/python3", "echo 'SyntaxError: future feature annotations is not defined' >&2; exit 1")

    assert read(str(folder)).fault == "it is older than Python 3.8"


def test_below_another_root_the_files_tell(tmp_path: Path) -> None:
    broken_environment(tmp_path / "opt/venv", elf_stub("aarch64"))
    (tmp_path / "opt/venv/lib/python3.12/site-packages/torch").mkdir()
    (tmp_path / "opt/venv/lib/python3.12/site-packages/torch-2.11.0.dist-info").mkdir()

    python = read_interpreter(str(tmp_path), environ={"VIRTUAL_ENV": "/of/this/machine"})

    assert isinstance(python, Interpreter)
    assert (python.path, python.machine, python.version) == ("/opt/venv/bin/python3", "aarch64", "3.12.4")
    assert python.search_path == ("/opt/venv/lib/python3.12/site-packages",)
    assert python.fault == ""


def test_what_is_no_python_is_reported(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no program")

    assert refused("/nowhere").reason == "there is no /nowhere"
    assert refused(VIRTUAL_ENV="/nowhere").reason == "VIRTUAL_ENV names /nowhere: there is no /nowhere"
    assert refused().reason == "no active environment, and no python3 on PATH"
    assert "Permission denied" in refused(str(text)).reason
    assert "is no Python environment" in refused(str(tmp_path)).reason
    assert isinstance(read_interpreter(str(tmp_path), environ={}), Unavailable)


def test_no_budget_is_no_crash(venv: Path) -> None:
    assert "did not answer" in read(str(venv), seconds=0).fault
