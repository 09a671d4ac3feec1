"""Obstacles of cells before anything is installed: the Python, and the disk space."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.matrix import HERE, PYTHON, MatrixWorld, torch_wheel
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from wheel_checks.sources.installers.config import configured_indexes
from wheelproof.matrix.cell.pipeline import RESOLVE, Task
from wheelproof.matrix.cell.steps import Record, now, stamp, write_record
from wheelproof.matrix.cell.trees import Lock, Trees
from wheelproof.matrix.executors.venv import VenvExecutor
from wheelproof.matrix.model import Cell
from wheelproof.matrix.run import blockers
from wheelproof.matrix.run.blockers import UNPACKED, executor_blocker, lock_blockers

GIB = 1 << 30
TORCH = {"torch": (4 * GIB, "aa"), "numpy": (GIB, "bb")}


def task(folder: Path, name: str, packages: dict[str, tuple[int, str]]) -> Task:
    """A cell that was resolved: of each package the size and the digest of its file."""
    found = Task(Cell(name, HERE, PYTHON, "2.11.0"), "run", folder / "work", folder / "cache", "venv", 60.0)
    lock = Lock({package: ("1.0", (digest,)) for package, (_, digest) in packages.items()})
    sizes = {package: size for package, (size, _) in packages.items()}
    found.folder.mkdir(parents=True)
    result = {"packages": lock.as_json(), "sizes": sizes}
    write_record(found.folder / f"{RESOLVE}.json", Record(RESOLVE, "run", "", stamp(now()), result=result))
    return found


def found(monkeypatch: pytest.MonkeyPatch, tasks: Sequence[Task], free: float, *cached: str) -> dict[str, str]:
    monkeypatch.setattr(blockers, "_least_room", lambda _: (int(free), Path("/full")))
    monkeypatch.setattr(blockers, "_is_cached", lambda task, _: task.cell.id in cached)
    return {cell: blocker.reason for cell, blocker in lock_blockers(tasks).items()}


def test_a_file_takes_room_once_however_many_cells_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [task(tmp_path, name, TORCH | {"other": (GIB, name)}) for name in ("one", "two")]
    assert found(monkeypatch, tasks, UNPACKED * 7 * GIB) == {}
    says = "the packages of 2 cells need at least 12.0 GB, but /full has 12.0 GB free"
    assert found(monkeypatch, tasks, UNPACKED * 7 * GIB - 10) == {"one": says, "two": says}


def test_what_is_there_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = task(tmp_path, "one", TORCH), task(tmp_path, "two", {"torch": (GIB, "cc")})
    assert list(found(monkeypatch, [one, two], GIB, "one")) == ["two"]
    assert list(found(monkeypatch, [one, two], GIB, "two")) == ["one"]
    lock = Lock.from_json({"torch": ["1.0", ["cc"]]})
    Trees(tmp_path / "cache" / "trees").path(lock).mkdir(parents=True)
    assert found(monkeypatch, [two], 0) == {}


def test_an_index_that_states_no_size_blocks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, [task(tmp_path, "one", {"torch": (0, "aa")})], 1) == {}


def test_uv_says_what_it_would_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = torch_wheel("cpu")
    with RangeServer(simple_index(wheel)) as server:
        world = MatrixWorld.create(tmp_path, server)
        for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
            monkeypatch.delenv(name)
        for name in ("UV_DEFAULT_INDEX", "UV_CACHE_DIR"):
            monkeypatch.setenv(name, world.environ[name])
        world.write("accelerator = 'cpu'")
        cell = Cell("one", HERE, PYTHON, "2.11.0")
        config, trees = configured_indexes(os.environ, tmp_path), Trees(tmp_path / "cache" / "matrix" / "trees")
        import hashlib

        lock = Lock({"torch": ("2.11.0", (hashlib.sha256(wheel.build()).hexdigest(),))})
        assert not trees.is_cached(lock, cell.target, config)
        assert world.run()["subjects"][0]["verdict"] == "pass"
        assert trees.is_cached(lock, cell.target, config)
        assert trees.path(lock).is_dir()


@pytest.mark.parametrize("python", ["3.13t", "3.14t"])
def test_a_free_threaded_python_cannot_be_resolved_for(python: str) -> None:
    blocker = executor_blocker(Cell("c", HERE, python, "2.11.0"), VenvExecutor())
    assert blocker is not None
    assert blocker.reason == f"uv cannot resolve for the free-threaded Python {python[:-1]} without that interpreter"
    assert blocker.hint == "expected a Python version without t, such as 3.13"
