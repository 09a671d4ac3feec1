"""``pins guard --check`` on an environment: open ways fail, unavoidable ones do not, damage is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.guarded_world import GuardedWorld, Index


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.create(tmp_path_factory.mktemp("index"))


@pytest.fixture
def world(tmp_path: Path, index: Index) -> GuardedWorld:
    return GuardedWorld.create(tmp_path / "world", index)


def check(world: GuardedWorld, *options: str) -> tuple[int, dict[str, list[str]], list[dict[str, Any]]]:
    """The exit code, the findings that fail by their rule, and the subjects of the report."""
    done = world.guard("--check", "--format", "json", "--output", str(world.root / "report.json"), *options)
    report = json.loads((world.root / "report.json").read_text())
    failed: dict[str, list[str]] = {}
    for subject in report["subjects"]:
        for result in subject["results"]:
            if result["outcome"] == "fail" and result["severity"] != "note":
                failed.setdefault(result["rule"], []).append(result["message"])
    return done.status, failed, report["subjects"]


def test_an_installed_guard_passes_and_names_what_it_cannot_close(world: GuardedWorld) -> None:
    world.install_guard()
    status, failed, subjects = check(world)
    assert (status, failed) == (0, {})
    notes = [r["message"] for s in subjects for r in s["results"] if r["rule"] == "PIN213" and r["outcome"] == "fail"]
    assert any("uv --no-config" in note for note in notes)
    assert subjects[-1]["facts"]["held"]["nvidia-cudnn-cu12"] == "9.7"


def test_variables_alone_fail_in_a_project_that_pins_another_torch(world: GuardedWorld) -> None:
    folder = world.root / "torch-guard"
    assert world.guard("--quiet", "--directory", str(folder)).status == 0
    world.variables |= dict(line.split("=", 1) for line in (folder / "guard.env").read_text().splitlines())
    world.write_project("torch==2.8.0")
    status, failed, _ = check(world)
    assert (status, set(failed)) == (1, {"PIN210"})
    assert any("uv sync" in message for message in failed["PIN210"])
    assert world.shell("uv sync").status == 0
    assert not world.is_intact  # as the check reported


def test_a_front_program_that_an_upgrade_wrote_over(world: GuardedWorld) -> None:
    world.install_guard()
    world.check(str(world.uv), "pip", "install", "--quiet", "--reinstall", "pip")
    status, failed, _ = check(world)
    assert status == 1
    assert any("bin/pip" in message for message in failed["PIN211"])
    assert world.install_guard().status == 0
    assert check(world)[0] == 0


def test_another_uv_comes_first(world: GuardedWorld) -> None:
    world.install_guard()
    world.variables["PATH"] = f"{world.root}/tools:{world.variables['PATH']}"
    status, failed, _ = check(world)
    assert status == 1
    assert "comes before" in failed["PIN210"][0]
    del world.variables["VIRTUAL_ENV"]  # not active: a uv elsewhere is out of reach
    assert check(world)[0] == 0


def test_what_was_done_around_the_guard(world: GuardedWorld) -> None:
    world.install_guard()
    world.check(str(world.uv), "pip", "install", "--quiet", "--no-config", "torch==2.8.0", "nvidia-cudnn-cu13")
    status, failed, _ = check(world)
    assert status == 1
    assert [message.partition(" was ")[2] for message in sorted(failed["PIN212"])][1] == "replaced by 2.8.0"
    assert "overwritten by nvidia-cudnn-cu13 9.12" in failed["PIN212"][0] + failed["PIN212"][1]


def test_one_installer(world: GuardedWorld) -> None:
    world.install_guard()
    (world.venv / "pip.conf").unlink()
    assert check(world, "--installer", "pip")[0] == 1


def test_a_described_environment_has_no_ways(world: GuardedWorld) -> None:
    _, failed, subjects = check(world, "--installed", "2.7.0+cu128")
    assert len(subjects) == 2
    assert "PIN210" not in failed


def test_another_family_is_judged_by_what_its_guard_holds(world: GuardedWorld) -> None:
    world.check(str(world.uv), "pip", "uninstall", "--quiet", "torch", "torchvision", "triton")
    world.check(str(world.uv), "pip", "install", "--quiet", "jax")
    assert "--package jax" in world.install_guard().words  # there is no torch
    assert world.install_guard("--family", "jax", "--package", "nvidia-nccl-*").status == 0
    status, failed, subjects = check(world)
    assert (status, failed) == (0, {})
    assert set(subjects[0]["facts"]["installed"]) == {"jax", "nvidia-nccl-cu12"}
    assert world.shell("pip uninstall -y nvidia-nccl-cu12").status != 0
    assert world.shell("uv pip install needs-nccl").status != 0


def test_a_uv_that_came_after_the_guard(world: GuardedWorld, tmp_path: Path) -> None:
    path = world.variables["PATH"]
    system = tmp_path / "system"  # its programs without a uv
    system.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith("uv"):
            (system / program.name).symlink_to(program)
    world.variables["PATH"] = f"{world.venv}/bin:{system}"
    assert world.install_guard().status == 0
    assert not (world.venv / "bin/uv").exists()
    assert check(world)[0] == 0
    world.variables["PATH"] = path
    status, failed, _ = check(world)
    assert (status, "uv was installed after the guard" in failed["PIN210"][0]) == (1, True)
    assert world.install_guard().status == 0
    assert check(world)[0] == 0
