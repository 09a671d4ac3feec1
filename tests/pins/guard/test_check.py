"""``pins guard --check``: it names the hole, and the real installers show that it is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Run
from tests.support.fake_torch import INSTALLED, World
from wheel_checks.catalogue import select_rules
from wheel_checks.errors import UsageError
from wheel_checks.facts.pins.guard import Kind
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Outcome
from wheel_checks.runner import run_rules
from wheel_checks.sources.environment import find_environment
from wheelproof.cli.main import main
from wheelproof.pins.guard.check import read_guard, uv_variables

NAMED = '[project]\nname = "demo"\nversion = "1"\n'
UNGUARDED = {"PIN201", "PIN206", "PIN207"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.create(tmp_path)


def holes(world: World, installer: str = "uv", folder: str = ".") -> set[str]:
    """The rules that find something."""
    environment = find_environment(str(world.python), variables=world.variables)
    facts = read_guard(installer, {"torch": world.torch}, world.project / folder, world.variables, environment)
    results = run_rules(select_rules("pin-guard"), facts, Expectations())
    assert not [result for result in results if result.outcome is Outcome.ERROR]
    return {result.rule for result in results if result.outcome is Outcome.FAIL}


def pyproject(world: World, table: str) -> None:
    (world.project / "pyproject.toml").write_text(f"{NAMED}[tool.uv]\n{table}\n")


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_nothing_is_set_up(world: World, installer: str) -> None:
    assert holes(world, installer) == UNGUARDED


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_the_variables_of_a_guard_close_every_hole(world: World, installer: str) -> None:
    folder = world.root / "torch-guard"
    assert main(["pins", "guard", "--quiet", "--python", str(world.python), "--directory", str(folder)]) == 0
    world.variables |= dict(line.split("=", 1) for line in (folder / "guard.env").read_text().splitlines())

    assert holes(world, installer) == set()


def test_no_build_isolation_for_torch_protects_nothing(world: World) -> None:
    pyproject(world, 'no-build-isolation-package = ["torch"]')

    assert holes(world) == UNGUARDED | {"PIN204"}
    world.shell("uv pip install extension needs-2-8")
    assert (world.built_against, world.torch) == ("2.12.0", "2.8.0")


def test_a_key_that_uv_does_not_know_drops_the_whole_table(world: World) -> None:
    pyproject(world, 'exclude-dependencies = ["torch"]\nof-a-later-uv = 1')

    assert "PIN205" in holes(world)
    world.shell("uv pip install needs-2-8")
    assert world.torch == "2.8.0"


def test_an_exclude_that_uv_reads(world: World) -> None:
    pyproject(world, 'exclude-dependencies = ["torch"]')

    assert holes(world) == {"PIN206", "PIN207", "PIN209"}
    world.shell("uv pip install needs-2-8")
    assert world.torch == INSTALLED


def test_a_constraint_without_the_local_version(world: World) -> None:
    (world.project / "constraints.txt").write_text("torch==2.7.0  # what is installed\n")
    world.variables["UV_CONSTRAINT"] = str(world.project / "constraints.txt")

    assert "PIN203" in holes(world)
    world.shell("uv pip install --reinstall torch")
    assert world.torch == "2.7.0"


def test_a_constraint_for_another_torch(world: World) -> None:
    (world.project / "constraints.txt").write_text("torch==2.8.0\n")
    world.variables["PIP_CONSTRAINT"] = str(world.project / "constraints.txt")

    assert "PIN202" in holes(world, "pip")
    world.shell("pip install torch")
    assert world.torch == "2.8.0"


def test_a_file_that_is_gone(world: World) -> None:
    world.variables["UV_EXCLUDE"] = str(world.project / "gone.txt")

    assert holes(world) == UNGUARDED | {"PIN208"}
    assert world.shell("uv pip install needs-any").status != 0


def test_the_configuration_file_of_the_environment(world: World) -> None:
    (world.project / "constraints.txt").write_text(f"torch=={INSTALLED}\n")
    (world.venv / "pip.conf").write_text(
        f"[install]\nconstraint = {world.project}/constraints.txt\nno-cache-dir = true\n"
    )

    assert holes(world, "pip") == {"PIN206"}
    assert world.shell("pip install needs-2-8").status != 0
    assert world.torch == INSTALLED


def test_pip_without_isolation_says_it_the_other_way_round(world: World) -> None:
    world.variables["PIP_NO_BUILD_ISOLATION"] = "0"

    assert "PIN206" not in holes(world, "pip")
    world.shell("pip install extension")
    assert world.built_against == INSTALLED


def test_the_nearest_table_counts_and_a_uv_toml_before_it(world: World) -> None:
    pyproject(world, 'exclude-dependencies = ["torch"]')
    below = world.project / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text(NAMED)  # without a table: uv looks further up

    assert "PIN201" not in holes(world, folder="below")
    (below / "uv.toml").write_text("offline = true\n")
    assert "PIN201" in holes(world, folder="below")
    world.shell("cd below && uv pip install needs-2-8")
    assert world.torch == "2.8.0"


def test_a_configuration_that_no_toml_is(world: World) -> None:
    (world.project / "uv.toml").write_text("torch = = 1\n")

    with pytest.raises(UsageError, match=r"uv\.toml cannot be read"):
        holes(world)


def test_the_command(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(world.project)
    pyproject(world, 'no-build-isolation-package = ["torch"]')
    arguments = ["--check", "--python", str(world.python), "--installer", "uv", "--format", "json"]

    status = main(["pins", "guard", *arguments])

    run = Run(status, *capsys.readouterr())
    report = json.loads(run.out)
    assert (run.status, report["command"]) == (1, "pins guard")
    assert report["subjects"][0]["facts"]["installed"] == {"torch": INSTALLED}
    failed = [result["rule"] for result in report["subjects"][0]["results"] if result["outcome"] == "fail"]
    assert set(failed) == UNGUARDED | {"PIN204"}


@given(st.binary(max_size=200), st.sampled_from(["UV_CONSTRAINT", "UV_EXCLUDE", "UV_OVERRIDE"]))
def test_arbitrary_bytes_in_a_file_of_the_guard(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "guard.txt"
    path.write_bytes(content)

    (setting,) = uv_variables({name: str(path)})

    assert (setting.kind is Kind.EXCLUDE, setting.path) == (name == "UV_EXCLUDE", str(path))
