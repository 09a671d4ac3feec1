"""A home folder that is of another user, is missing or is a file costs its settings, and a line that says so."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from wheelproof.cli.main import main

COMMANDS = (("verify", "missing.whl"), ("verify", "demo", "--offline"), ("explain", "job.log"), ("pins", "check", "."))


@pytest.fixture(params=["of another user", "missing", "a file", "unset"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of the kinds of home; root may read every folder, so the kernel's answer is given by a double."""
    path = tmp_path / "home of a user"
    if request.param == "of another user":
        forbid(path, monkeypatch)
    elif request.param == "a file":
        path.touch()
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    if request.param == "unset":
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda text: text)  # a uid that has no entry in passwd
    else:
        monkeypatch.setenv("HOME", str(path))
    return str(request.param)


def forbid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer for everything in ``folder`` as the kernel does where this user may not enter it."""
    stat, access = os.stat, os.access

    def denied(path: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(f"{folder}{os.sep}"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", denied)
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and access(path, mode))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_goes_on(wheelproof: Wheelproof, home: str, command: tuple[str, ...]) -> None:
    Path("job.log").write_text("RuntimeError: CUDA error: no kernel image is available for execution on the device\n")
    Path("requirements.txt").write_text("numpy\n")
    run = wheelproof(*command)
    assert "internal error" not in run.err
    assert run.status == (1 if command[0] == "explain" else 0 if command[0] == "pins" else 3)
    lines = [line for line in run.err.splitlines() if "is not used" in line and "wheelproof.toml" in line]
    assert len(lines) == (home == "of another user"), run.err


def test_a_current_folder_of_another_user_has_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "of root"
    folder.mkdir()
    (folder / "wheelproof.toml").write_text("no TOML")
    (folder / "uv.toml").write_text("no TOML")
    monkeypatch.chdir(folder)
    forbid(folder, monkeypatch)
    status = main(["verify", str(tmp_path / "missing.whl")])
    assert status == 3
    assert capsys.readouterr().err.splitlines() == [
        f"wheelproof: the configuration in {folder} is not used: this user may not enter the folder"
    ]


def test_a_file_that_must_be_read_and_may_not_be_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheelproof: Wheelproof
) -> None:
    forbid(tmp_path / "of root", monkeypatch)
    run = wheelproof("verify", str(tmp_path / "of root" / "demo-1-py3-none-any.whl"))
    assert run.status == 3
    assert "Permission denied" in run.out + run.err
    assert "internal error" not in run.err
