"""The receipt of a guard: its files are recognised by their content, and a forged receipt explains nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.guarded_world import GuardedWorld, Index
from wheel_checks.facts.pins.receipt import FileState, InstalledGuard, read_installed_guard
from wheel_checks.model import Unavailable
from wheel_checks.sources.file_tree import FileTree


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.create(tmp_path_factory.mktemp("index"))


@pytest.fixture
def world(tmp_path: Path, index: Index) -> GuardedWorld:
    made = GuardedWorld.create(tmp_path / "world", index)
    done = made.install_guard("--quiet")
    assert done.status == 0, done.words
    return made


def read(world: GuardedWorld) -> InstalledGuard:
    found = read_installed_guard(FileTree(), str(world.venv))
    assert isinstance(found, InstalledGuard)
    return found


def changed(world: GuardedWorld) -> dict[str, FileState]:
    return {Path(file.path).name: file.state for file in read(world).files if file.state is not FileState.INTACT}


def test_no_guard(tmp_path: Path) -> None:
    assert read_installed_guard(FileTree(), str(tmp_path)) is None


def test_every_file_is_recognised(world: GuardedWorld) -> None:
    found = read(world)
    assert changed(world) == {}
    assert found.packages["torch"] == "2.7.0+cu128"
    assert {Path(file.path).name for file in found.files if file.role == "front"} >= {"pip", "pip3", "uv"}
    assert str(world.venv / "pip.conf") in found.recognised
    assert len([path for path in found.recognised if "/originals/" in path]) >= 2  # the pip that stood there before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bin/pip", "#!/bin/sh\nexec evil\n"),
        ("share/torch-guard/program/torch_guard/main.py", "import os\n"),
        ("share/torch-guard/program/__main__.py", "import os\n"),
        ("share/torch-guard/pip-python", "#!/bin/sh\n"),
        ("share/torch-guard/constraints.txt", "-r https://example.invalid/evil.txt\n"),
        ("share/torch-guard/settings.json", "[]"),
        ("pip.conf", "[global]\npython = /tmp/evil\n"),
    ],
)
def test_another_content_is_not_recognised(world: GuardedWorld, name: str, text: str) -> None:
    (world.venv / name).write_text(text)
    assert changed(world) == {Path(name).name: FileState.CHANGED}
    assert str(world.venv / name) not in read(world).recognised


@pytest.mark.parametrize("role", ["front", "hook", "program", "text", "pip.conf", "record", "uv.toml", "other"])
def test_a_forged_receipt_explains_no_other_file(world: GuardedWorld, role: str) -> None:
    import hashlib

    evil = world.site / "evil.pth"
    evil.write_text("import os\n")
    receipt = world.venv / "share/torch-guard/receipt.json"
    document = json.loads(receipt.read_text())
    digest = hashlib.sha256(evil.read_bytes()).hexdigest()
    document["files"] += [{"path": str(evil), "role": role, "sha256": digest, "kept": str(evil), "record": ""}]
    receipt.write_text(json.dumps(document))
    assert str(evil) not in read(world).recognised


def test_a_front_program_that_another_python_runs_is_not_recognised(world: GuardedWorld) -> None:
    receipt = world.venv / "share/torch-guard/receipt.json"
    front = world.venv / "bin/pip"
    for path in (receipt, front):
        path.write_text(path.read_text().replace(f"{world.venv}/bin/python", "/tmp/evil/python"))
    assert changed(world)["pip"] is FileState.CHANGED


@pytest.mark.parametrize("text", ["{}", "[", '{"schema": "wheelproof.guard/1"}', '{"schema": 1}', "[[[[", "null"])
def test_a_receipt_that_cannot_be_read(world: GuardedWorld, text: str) -> None:
    (world.venv / "share/torch-guard/receipt.json").write_text(text)
    assert isinstance(read_installed_guard(FileTree(), str(world.venv)), Unavailable)


def test_a_file_that_is_gone(world: GuardedWorld) -> None:
    (world.venv / "bin/pip3").unlink()
    assert changed(world) == {"pip3": FileState.MISSING}
