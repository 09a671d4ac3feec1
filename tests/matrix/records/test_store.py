"""The files of a project that a command may read: their digest changes with a file, and excludes other files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelproof.matrix.records import store
from wheelproof.matrix.records.store import project_digest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a = 1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "link").symlink_to("src")
    return tmp_path


def digest(project: Path, *without: Path) -> str:
    project_digest.cache_clear()
    return project_digest(project, without)


@pytest.mark.parametrize(
    "change",
    [
        lambda project: (project / "src" / "a.py").write_text("a = 2\n"),
        lambda project: (project / "src" / "a.py").rename(project / "src" / "b.py"),
        lambda project: (project / "tests" / "new.bin").write_bytes(b"\0"),
        lambda project: (project / "link").unlink(),
        lambda project: ((project / "link").unlink(), (project / "link").symlink_to("tests")),
    ],
)
def test_a_change_is_seen(project: Path, change: Callable[[Path], object]) -> None:
    before = digest(project)
    change(project)
    assert digest(project) != before != ""


@pytest.mark.parametrize(
    "change",
    [
        lambda project: (project / ".cache").mkdir(),
        lambda project: (project / "src" / "__pycache__").mkdir(),
        lambda project: os.utime(project / "src" / "a.py", (1, 1)),
        lambda project: (project / "records" / "cell.json").write_text("{}"),
        lambda project: (project / "env" / "bin.py").write_text(""),
        lambda project: os.mkfifo(project / "src" / "pipe"),
        lambda project: (project / "wheelproof-17_3.log").touch(),
    ],
)
def test_what_is_no_part_of_it_is_not_read(project: Path, change: Callable[[Path], object]) -> None:
    (project / "records").mkdir()
    (project / "env").mkdir()
    (project / "env" / "pyvenv.cfg").touch()
    before = digest(project, project / "records")
    change(project)
    assert digest(project, project / "records") == before != ""


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 1), ("MOST_BYTES", 5)])
def test_a_large_project_is_not_known(project: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(store, limit, value)
    assert digest(project) == ""


def test_the_root_of_a_machine_ends() -> None:
    """A pod starts there: its cell has no known inputs, and no file of /proc is read."""
    assert digest(Path("/")) == ""
