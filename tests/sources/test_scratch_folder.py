"""Temporary folders: leftovers of killed processes do not pile up, and folders in use stay."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wheel_checks.sources.scratch_folder import KIND, prefix_of, scratch_folder, sweep

# Makes folders until it is killed, and says so after each.
HOLDER = """
import sys
from wheel_checks.sources.scratch_folder import scratch_folder
with scratch_folder(where=sys.argv[1]) as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""
CHURN = """
import sys
from wheel_checks.sources.scratch_folder import scratch_folder, sweep
for number in range(150):
    sweep(where=sys.argv[1])
    with scratch_folder(where=sys.argv[1]) as folder:
        (folder / "file").write_text("x")
        assert (folder / "file").read_text() == "x"
"""


def start(program: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def hold(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    holder = start(HOLDER, folder)
    assert holder.stdout is not None
    return holder, Path(holder.stdout.readline().strip())


def end(holder: subprocess.Popen[str], number: int) -> None:
    holder.send_signal(number)
    holder.communicate()


def test_a_folder_is_private_and_goes_with_its_block(tmp_path: Path) -> None:
    with scratch_folder(where=tmp_path) as folder:
        (folder / "below").mkdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ZeroDivisionError), scratch_folder(where=tmp_path):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_leaves_goes_with_the_next_one(tmp_path: Path) -> None:
    holder, folder = hold(tmp_path)
    assert sweep(where=tmp_path) == []  # it is in use
    assert (folder / "file").exists()
    end(holder, signal.SIGKILL)
    assert folder.exists()
    next_one, _ = hold(tmp_path)
    assert not folder.exists()
    next_one.communicate("")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_never_locked_goes_too(tmp_path: Path) -> None:
    (tmp_path / f"{prefix_of(KIND)}x").mkdir()  # killed between making and locking
    assert len(sweep(where=tmp_path)) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = prefix_of(KIND)
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / f"{prefix}link").symlink_to(target)
    os.mkfifo(tmp_path / f"{prefix}pipe")
    (tmp_path / f"{KIND}-other").mkdir()
    assert sweep(where=tmp_path) == []
    (tmp_path / f"{prefix}folder").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # the folder is of another user
    assert sweep(where=tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 5
    assert sweep(where=tmp_path / "missing") == []


def test_a_file_is_removed_when_it_is_old_and_not_locked(tmp_path: Path) -> None:
    file = tmp_path / f"{prefix_of('.kind')}x"
    file.write_text("x")
    assert sweep(".kind", tmp_path, seconds=60) == []
    os.utime(file, (0, 0))
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert sweep(".kind", tmp_path, seconds=60) == []
    assert sweep(".kind", tmp_path, seconds=60) == [file.name]


def test_no_folder_is_taken_from_a_process_that_just_made_it(tmp_path: Path) -> None:
    processes = [start(CHURN, tmp_path) for _ in range(4)]
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 4
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_was_not_finished_goes_with_the_next_one(tmp_path: Path) -> None:
    left = tmp_path / f"{prefix_of('.wheelproof-report')}0123456789abcdef"
    left.write_text("half a rep")
    os.utime(left, (0, 0))
    command = [sys.executable, "-m", "wheelproof", "explain", "--output", str(tmp_path / "report.txt")]
    subprocess.run(command, input=b"GPU is lost.", check=False)
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]


def test_there_is_no_other_kind_of_temporary_folder() -> None:
    root = Path(__file__).resolve().parents[2]
    others = re.compile(r"\b(?:TemporaryDirectory|mkdtemp|NamedTemporaryFile|mkstemp|SpooledTemporaryFile)\b")
    files = (path for top in ("tools", "wheel_checks") for path in (root / top).rglob("*.py"))
    found = {str(path.relative_to(root)) for path in files if others.search(path.read_text(encoding="utf-8"))}
    elsewhere = {"tools/wheelproof/matrix/inside/run_command.py"}  # in the cell of a matrix, without this package
    assert found - elsewhere == {"wheel_checks/sources/scratch_folder.py"}
