"""Each way in which torch is lost: first it happens, then ``wheelproof pins guard`` keeps it from happening.

Every command is run by the real uv and pip, on a real environment, with an index of files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.fake_torch import INSTALLED, World
from wheel_checks.errors import UsageError
from wheelproof.cli.main import main
from wheelproof.pins.guard.abilities import UvAbilities
from wheelproof.pins.guard.files import Guard, guard_files, known_extensions, tool_uv

REMOVED = ""
UV = UvAbilities("0.13.8", frozenset({"exclude-dependencies", "no-build-isolation-package"}), excludes=True)


def write_guard(world: World, *options: str) -> Path:
    """Run ``wheelproof pins guard`` on the environment, and return the folder of its files."""
    folder = world.root / "torch-guard"
    arguments = ["--python", str(world.python), "--directory", str(folder), "--extension", "extension", *options]
    assert main(["pins", "guard", "--quiet", *arguments]) == 0
    return folder


@dataclass(frozen=True)
class Way:
    """A command by which torch is lost: the versions installed then, and whether the command fails under the guard."""

    command: str
    lost: str
    fails: bool = False
    project: str = ""  # the requirements of the project in the current folder
    prepared: str = ""  # a requirements file in it


def project(world: World, requirement: str, table: str = "[tool.uv]\n") -> None:
    """A project that requires something; nothing of it is built."""
    named = '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.11"\n'
    (world.project / "pyproject.toml").write_text(f'{named}dependencies = ["{requirement}"]\n{table}package = false\n')


WAYS = {
    "uv, asked for directly": Way("uv pip install torch==2.8.0", "2.8.0", fails=True),
    "uv, by what another package requires": Way("uv pip install needs-2-8", "2.8.0", fails=True),
    "uv, by an upgrade of another package": Way("uv pip install -U needs-any", "2.12.0"),
    "uv, by its own upgrade": Way("uv pip install -U torch", "2.12.0"),
    "uv, by a reinstall of the public version": Way("uv pip install --reinstall torch==2.7.0", "2.7.0", fails=True),
    "uv, by a leftover torchvision": Way("uv pip install torchvision", "2.8.0"),
    "uv, by a sync of a project": Way("uv sync --active", "2.8.0", project="needs-2-8"),
    "uv, by a sync that asks for the public version": Way("uv sync --active", "2.7.0", project="torch==2.7.0"),
    "uv, by a sync that does not list it": Way("uv pip sync files.txt", REMOVED, fails=True, prepared="torch>9"),
    "pip, asked for directly": Way("pip install torch==2.8.0", "2.8.0", fails=True),
    "pip, by what another package requires": Way("pip install needs-2-8", "2.8.0", fails=True),
    "pip, by its own upgrade": Way("pip install -U torch", "2.12.0"),
    "pip, by an eager upgrade": Way("pip install -U --upgrade-strategy eager needs-any", "2.12.0"),
    "pip, by a reinstall of the public version": Way("pip install --force-reinstall torch==2.7.0", "2.7.0", fails=True),
    "pip, by a leftover torchvision": Way("pip install torchvision", "2.8.0"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_way_in_which_torch_is_lost(tmp_path: Path, way: Way) -> None:
    for guarded in (False, True):
        world = World.create(tmp_path / str(guarded))
        if way.project:
            project(world, way.project)
        (world.project / "files.txt").write_text("needs-any\n" if way.prepared else "")
        done = world.shell(way.command, write_guard(world) if guarded else None)
        if guarded:
            assert (world.torch, done.status != 0) == (INSTALLED, way.fails), done.words
        else:
            assert (world.torch, done.status) == (way.lost, 0), done.words


@pytest.mark.parametrize("command", ["uv pip install", "pip install"])
def test_a_leftover_torchvision_gets_the_release_for_the_installed_torch(tmp_path: Path, command: str) -> None:
    world = World.create(tmp_path)

    world.shell(f"{command} torchvision", write_guard(world))

    assert (world.version("torchvision"), world.torch) == ("0.22.0", INSTALLED)


@pytest.mark.parametrize(
    "way", ["uv pip install torch==2.8.0", "uv pip install needs-2-8", "uv pip install -U needs-any"]
)
def test_uv_can_drop_the_requirement_instead_of_failing(tmp_path: Path, way: str) -> None:
    world = World.create(tmp_path)

    done = world.shell(way, write_guard(world, "--on-conflict", "keep"))

    assert (done.status, world.torch) == (0, INSTALLED), done.words


def test_where_requirements_are_dropped_a_companion_is_still_the_one_for_torch(tmp_path: Path) -> None:
    world = World.create(tmp_path)

    world.shell("uv pip install torchvision", write_guard(world, "--on-conflict", "keep"))

    assert (world.version("torchvision"), world.torch) == ("0.22.0", INSTALLED)


def test_a_build_environment_of_uv(tmp_path: Path) -> None:
    plain, guarded = World.create(tmp_path / "plain"), World.create(tmp_path / "guarded")

    assert plain.shell("uv pip install extension").status == 0
    assert plain.built_against == "2.12.0"
    assert guarded.shell("uv pip install extension", write_guard(guarded)).status == 0
    assert guarded.built_against == INSTALLED


def test_a_build_environment_of_pip(tmp_path: Path) -> None:
    plain, guarded = World.create(tmp_path / "plain"), World.create(tmp_path / "guarded")

    assert plain.shell("pip install extension").status == 0
    assert plain.built_against == "2.12.0"
    guard = write_guard(guarded)
    assert guarded.shell("pip install extension", guard).status != 0  # no build rather than one against another torch
    assert guarded.built_against == ""
    assert guarded.shell("pip install --no-build-isolation extension", guard).status == 0
    assert guarded.built_against == INSTALLED


def test_a_build_in_isolation_that_the_guard_does_not_know_fails(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    guard = write_guard(world)
    script = guard / "guard.sh"
    script.write_text(script.read_text().replace("--no-build-isolation-package extension \\\n", "\\\n"))

    assert world.shell("uv pip install extension", guard).status != 0
    assert world.built_against == ""


@pytest.mark.parametrize("pip", ["uv pip", "pip"])
def test_a_cached_build(tmp_path: Path, pip: str) -> None:
    world = World.create(tmp_path)
    world.shell(f"{pip} install extension && uv pip uninstall extension")

    world.shell(f"{pip} install --no-build-isolation extension")
    assert world.built_against == "2.12.0"  # the wheel that was built for another torch
    world.shell("uv pip uninstall extension")
    world.shell(f"{pip} install --no-build-isolation extension", write_guard(world))
    assert world.built_against == INSTALLED


@pytest.mark.parametrize("requirement", ["torch==2.7.0", "needs-2-8"])
def test_the_table_for_a_project_and_an_inexact_sync(tmp_path: Path, requirement: str) -> None:
    world = World.create(tmp_path)
    table = (write_guard(world) / "pyproject-tool-uv.toml").read_text()
    project(world, requirement, table)

    done = world.shell("uv sync --active --inexact")

    assert (done.status, world.torch) == (0, INSTALLED), done.words
    assert "warning" not in done.words
    assert world.shell("uv sync --active", world.root / "torch-guard").status == 0  # the guard adds --inexact
    assert world.torch == INSTALLED
    world.shell("uv sync --active")
    assert world.torch == REMOVED  # not prevented by the table alone


def test_the_table_makes_builds_use_the_installed_torch(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    project(world, "extension", (write_guard(world) / "pyproject-tool-uv.toml").read_text())

    world.shell("uv sync --active --inexact")

    assert (world.built_against, world.torch) == (INSTALLED, INSTALLED)


def test_the_variables_alone_keep_torch(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    lines = (write_guard(world) / "guard.env").read_text().splitlines()
    world.variables |= dict(line.split("=", 1) for line in lines)

    assert world.shell("uv pip install needs-2-8").status != 0
    assert world.shell("pip install needs-2-8").status != 0
    assert world.torch == INSTALLED


def test_every_bash_can_be_guarded(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    guard = write_guard(world)
    world.variables["BASH_ENV"] = str(guard / "guard.sh")
    project(world, "torch==2.7.0")

    done = world.run("bash", "-e", "-c", "uv pip install -U torch && uv sync --active")

    assert (done.status, world.torch) == (0, INSTALLED), done.words


def test_sourcing_twice_and_what_the_user_has_set(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    guard = write_guard(world)
    world.variables["UV_CONSTRAINT"] = "mine.txt"

    done = world.shell(f'. {guard}/guard.sh; echo "$UV_CONSTRAINT"', guard)

    assert done.words == f"mine.txt {guard}/constraints.txt\n"


def test_a_second_guard_takes_the_place_of_the_first(tmp_path: Path) -> None:
    first, second = World.create(tmp_path / "first"), World.create(tmp_path / "second", "2.8.0+cu128")
    second.variables["UV_CONSTRAINT"] = "mine.txt"
    sourced = f". {write_guard(first)}/guard.sh; . {write_guard(second)}/guard.sh"

    shown = 'echo "$UV_CONSTRAINT $PIP_CONSTRAINT"; unset UV_CONSTRAINT'
    done = second.shell(f"{sourced}; {shown}; {sourced}; pip install torch")

    assert done.words.startswith(f"mine.txt {second.root}/torch-guard/constraints.txt {second.root}/torch-guard/")
    assert (done.status, second.torch) == (0, "2.8.0+cu128"), done.words


def test_the_files_may_lie_elsewhere(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    moved = write_guard(world).rename(tmp_path / "moved")
    world.variables["TORCH_GUARD"] = str(moved)

    world.shell("uv pip install -U torch", moved)

    assert world.torch == INSTALLED


def test_only_the_folder_is_written_and_again_the_same(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    before = {path for path in tmp_path.rglob("*") if "torch-guard" not in path.parts}
    folder = write_guard(world)
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    write_guard(world)

    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == first
    assert {path for path in tmp_path.rglob("*") if "torch-guard" not in path.parts} == before


def test_companions_are_guarded_as_they_are_installed(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    world.shell("uv pip install --no-deps torchvision==0.22.0")

    text = (write_guard(world) / "constraints.txt").read_text()

    assert text.splitlines()[1:] == [f"torch=={INSTALLED}", "torchvision==0.22.0"]


def test_no_key_is_written_that_the_uv_at_hand_does_not_know(tmp_path: Path) -> None:
    old = UvAbilities("0.4.0", frozenset({"override-dependencies"}), excludes=False)
    guard = Guard({"torch": INSTALLED}, tmp_path, old, known_extensions(), keep_going=True)

    assert tool_uv(guard).splitlines()[1:] == [
        "[tool.uv]",
        "override-dependencies = [\"torch; sys_platform == 'never'\"]",
    ]
    assert "UV_OVERRIDE=" in guard_files(guard, {})["guard.env"]


def test_what_cannot_be_guarded(tmp_path: Path) -> None:
    guard = Guard({"torch": INSTALLED}, tmp_path, UV, ())

    with pytest.raises(UsageError, match="there is no torch to guard"):
        guard_files(replace(guard, installed={}), {})
    with pytest.raises(UsageError, match="has white space in its path"):
        guard_files(replace(guard, folder=tmp_path / "my folder"), {})
