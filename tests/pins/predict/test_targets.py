"""What ``pins predict`` is asked about: projects, groups, commands of installers, lock files and Dockerfiles."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from tests.conftest import Wheelproof
from tests.support.fake_torch import INSTALLED, World

Predict = Callable[..., tuple[int, str]]
PROJECT = """\
[project]
name = "product"
version = "1.0"
requires-python = ">=3.11"
dependencies = ["needs-any"]

[dependency-groups]
new = ["needs-2-8"]

[tool.uv]
package = false
default-groups = []
"""
IMAGE = f"python:{sys.version_info[0]}.{sys.version_info[1]}"  # the Python that this host surely has


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The environment, with this process started in its project and with its variables."""
    world = World.create(tmp_path / "world")
    for name, value in world.variables.items():
        if name != "PATH":
            monkeypatch.setenv(name, value)
    return world


@pytest.fixture
def here(world: World, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> Wheelproof:
    """wheelproof, started in the project of the world."""
    monkeypatch.chdir(world.project)
    return wheelproof


@pytest.fixture
def predict(world: World, here: Wheelproof) -> Predict:
    """Predict in the environment; the exit code, and the first line of the report."""

    def run(*arguments: str, python: str = "", installer: str = "uv") -> tuple[int, str]:
        options = ("--python", python or str(world.python), "--installer", installer, "--format", "json")
        done = here("pins", "predict", *options, *arguments)
        if not done.out:
            return done.status, done.err
        report: dict[str, Any] = json.loads(done.out)
        messages = [result["message"] for subject in report["subjects"] for result in subject["results"]]
        return done.status, "\n".join([report["summary"]["answers"][0]["text"], *messages])

    return run


def write(world: World, **files: str) -> None:
    for name, text in files.items():
        (world.project / name.replace("_toml", ".toml")).write_text(text)


@pytest.mark.parametrize("installer", ["uv", "pip"])
@pytest.mark.parametrize("requested", [["."], ["-e", "."], ["./"]])
def test_a_project(world: World, predict: Predict, requested: list[str], installer: str) -> None:
    write(world, pyproject_toml=PROJECT)
    kept = predict(*requested, installer=installer)
    write(world, pyproject_toml=PROJECT.replace("needs-any", "needs-2-8"))
    lost = predict(*requested, installer=installer)

    assert (kept[0], lost[0]) == (0, 1), (kept, lost)
    assert "required by needs-2-8 1.0 (torch==2.8.0)" in lost[1]


def test_a_project_whose_dependencies_stand_in_a_file(world: World, predict: Predict) -> None:
    text = PROJECT.replace('dependencies = ["needs-any"]', 'dynamic = ["dependencies"]')
    text += '[tool.setuptools.dynamic]\ndependencies = { file = ["core.txt"] }\n'
    text += '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    write(world, pyproject_toml=text)
    (world.project / "core.txt").write_text("# pinned\nneeds-2-8\n")
    lost = predict(".")
    (world.project / "setup.py").write_text("import setuptools\nsetuptools.setup()\n")
    undecided = predict(".")

    assert (lost[0], undecided[0]) == (1, 3), (lost, undecided)


def test_a_project_that_only_a_build_knows(world: World, predict: Predict) -> None:
    write(world, pyproject_toml=PROJECT.replace('dependencies = ["needs-any"]', 'dynamic = ["dependencies"]'))

    status, words = predict(".")

    assert status == 3
    assert "known only by building the project" in words


@pytest.mark.parametrize(
    "requested", [["--group", "new"], ["--group", "pyproject.toml:new"], ["pip", "install", "--group", "new"]]
)
def test_a_group_is_requested_by_itself(world: World, predict: Predict, requested: list[str]) -> None:
    write(world, pyproject_toml=PROJECT.replace("needs-any", "no-such-package"))

    status, words = predict(*requested)

    assert status == 1, words
    assert "needs-2-8 1.0 (torch==2.8.0)" in words


def locked(world: World, text: str = PROJECT) -> None:
    write(world, pyproject_toml=text)
    done = world.run(find_uv_bin(), "lock", "--python", str(world.python))
    assert done.status == 0, done.words


def test_uv_sync_takes_the_torch_of_the_lock(world: World, predict: Predict) -> None:
    locked(world)

    for requested in (["uv", "sync"], ["uv", "sync", "--inexact"], ["uv.lock"], ["uv", "run", "pytest", "-q"]):
        status, words = predict(*requested)
        assert status == 1, (requested, words)
        assert f"torch {INSTALLED} would be replaced by 2.8.0" in words


def test_uv_sync_with_an_exclude_uninstalls_unless_it_is_inexact(world: World, predict: Predict) -> None:
    locked(world, PROJECT + 'exclude-dependencies = ["torch"]\n')

    exact, words = predict("uv", "sync")
    inexact, _ = predict("uv", "sync", "--inexact")

    assert (exact, inexact) == (1, 0)
    assert f"torch {INSTALLED} would be removed" in words


def test_uv_add_leaves_the_project_as_it_is(world: World, predict: Predict) -> None:
    locked(world, PROJECT + 'exclude-dependencies = ["torch"]\n')
    before = {path: path.read_bytes() for path in world.project.iterdir() if path.is_file()}

    status, words = predict("uv", "add", "needs-2-8")

    assert status == 0, words
    assert {path: path.read_bytes() for path in world.project.iterdir() if path.is_file()} == before


def test_a_project_whose_version_is_dynamic_is_not_built(world: World, predict: Predict, tmp_path: Path) -> None:
    marker = tmp_path / "was-built"
    backend = f"open({str(marker)!r}, 'w').close()\ndef build_editable(*_): raise SystemExit\n"
    text = PROJECT.replace('version = "1.0"', 'dynamic = ["version"]').replace("package = false\n", "")
    text += '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    locked(world, text.replace('dynamic = ["version"]', 'version = "1.0"'))
    write(world, pyproject_toml=text)
    (world.project / "backend.py").write_text(backend)

    current, _ = predict("uv", "sync")
    write(world, pyproject_toml=text.replace("needs-any", "needs-2-8"))
    stale, words = predict("uv", "sync")

    assert not marker.exists()
    assert (current, stale) == (1, 1), words


def test_what_uv_run_puts_in_front(world: World, predict: Predict) -> None:
    shadowed, words = predict("--with", "needs-2-8")
    world.shell("uv pip install --no-deps needs-any")
    satisfied, _ = predict("uv", "run", "--no-sync", "--with", "needs-any", "python")

    assert (shadowed, satisfied) == (1, 0)
    assert f"torch {INSTALLED} would be shadowed by 2.8.0" in words


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("pip install -U torch", 1, "--upgrade does"),
        ("pip install needs-any", 0, "stays"),
        ("pip install --no-deps needs-2-8", 0, "stays"),
        ("pip uninstall -y torch", 1, "would be removed"),
        ("python3 -m pip install needs-2-8", 1, "torch==2.8.0"),
        ("uv pip install needs-2-8", 1, "torch==2.8.0"),
        ("uvx needs-2-8", 0, "stays"),
        ("uv tool install needs-2-8", 0, "stays"),
        ("uv pip install --frobnicate torch", 3, "--frobnicate is unknown"),
        ("poetry add torch", 3, "resolves with poetry itself"),
        ("pip install needs-any && uv pip install needs-2-8", 1, "needs-2-8 1.0 (torch==2.8.0)"),
        ("if true; then pip install needs-2-8; fi", 3, "it runs under a condition"),
        ("pip install $UNKNOWN", 3, "it contains an unknown value"),
    ],
)
def test_a_line_of_shell(predict: Predict, command: str, status: int, message: str) -> None:
    found, words = predict(command)

    assert found == status, words
    assert message in words


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sudo -H pip install needs-2-8", "sudo looks for the program on its own PATH"),
        ("sudo -u app pip install needs-2-8", "sudo -u runs it as another user"),
        ("env -i pip install needs-2-8", "env -i removes variables"),
        ("python3 -I -m pip install needs-2-8", "option -I of Python"),
        ("python3 -Im pip install needs-2-8", "option -Im of Python"),
        ("cat requirements.txt | xargs pip install", "xargs runs `pip install ...`"),
        ("xargs -a requirements.txt -n1 pip install", "xargs runs `pip install ...`"),
        ("retry 3 uv pip install needs-2-8", "retry runs `uv pip install ...`"),
        ("uv run pip install needs-2-8", "what `uv run` runs is an installer itself"),
        ("uv run --no-sync -m pip install needs-2-8", "what `uv run` runs is an installer itself"),
        ("uv run bash -c 'pip install needs-2-8'", "what `uv run` runs is an installer itself"),
        ("poetry run pip install needs-2-8", "what `poetry run` runs is an installer itself"),
        ("pdm run python -m pip uninstall torch", "what `pdm run` runs is an installer itself"),
        ("uv venv --clear", "it empties the environment"),
        ("python3 -m venv --clear .venv", "it empties an environment"),
        ("virtualenv --clear .venv", "it empties an environment"),
        ("python setup.py develop", "only known by running it"),
        ("uv pip install --system needs-2-8", "--system makes it work on the Python of the system"),
        ("PIP_TARGET=/elsewhere pip install needs-2-8", "PIP_TARGET makes it work on another environment"),
        ("VIRTUAL_ENV=/other uv pip install needs-2-8", "VIRTUAL_ENV makes it work on another environment"),
        ("export PIP_PRE=$CI; pip install needs-2-8", "what PIP_PRE means for"),
        ("PIP_FROBNICATE=1 pip install needs-2-8", "what PIP_FROBNICATE means for"),
        ("pipenv install torch", "pipenv install has no dry run"),
        ("$INSTALLER install needs-2-8", "the program it runs is unknown"),
        ("bash missing.sh", "a script that is not available here"),
        ("(cd sub && true); pip install -r core.txt", "in another folder"),
        ("cd $HOME && pip install -r core.txt", "in another folder"),
    ],
)
def test_what_is_not_followed_is_open(predict: Predict, command: str, message: str) -> None:
    found, words = predict(command)

    assert found == 3, words
    assert message in words


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("nice -n 10 pip install needs-2-8", 1, "torch==2.8.0"),
        ("timeout 600 uv pip install needs-2-8", 1, "torch==2.8.0"),
        ("env A=1 pip install needs-2-8", 1, "torch==2.8.0"),
        ("python3 -u -m pip install needs-2-8", 1, "torch==2.8.0"),
        ("PIP_NO_DEPS=1 pip install needs-2-8", 0, "stays"),
        ("export PIP_NO_DEPS=1; pip install needs-2-8", 0, "stays"),
        ("cd sub && pip install -r core.txt", 1, "torch==2.8.0"),
        ("cd sub && uv pip install -r core.txt", 1, "torch==2.8.0"),
        ("bash sub/setup.sh", 1, "torch==2.8.0"),
        (". ./sub/setup.sh && pip install needs-any", 1, "torch==2.8.0"),
        ("echo pip install needs-2-8; pip install needs-any", 0, "stays"),
        ("apt-get install -y pip && pip install needs-any", 0, "stays"),
        ("uv run --no-sync pytest", 0, "stays"),
        ("uv venv other && uv pip list", 0, "stays"),
    ],
)
def test_what_is_followed(world: World, predict: Predict, command: str, status: int, message: str) -> None:
    locked(world, PROJECT)
    (world.project / "sub").mkdir()
    (world.project / "sub" / "core.txt").write_text("needs-2-8\n")
    (world.project / "core.txt").write_text("needs-any\n")
    (world.project / "sub" / "setup.sh").write_text("#!/bin/sh\nset -e\npip install needs-2-8\n")

    found, words = predict(command)

    assert found == status, words
    assert message in words


def test_a_script_that_runs_itself_ends(world: World, predict: Predict) -> None:
    (world.project / "again.sh").write_text("bash again.sh\n")

    status, words = predict("bash again.sh")

    assert status == 3
    assert "too deep" in words


@pytest.mark.parametrize("line", ["pip install -r {}", "pip install -c {} needs-any", "uv pip install --override {} x"])
def test_a_file_outside_of_the_tree_of_a_dockerfile_is_not_read(
    world: World, here: Wheelproof, tmp_path: Path, line: str
) -> None:
    outside = tmp_path / "private.txt"
    outside.write_text("needs-2-8\n")
    write(world, Dockerfile=f"FROM {IMAGE}\nRUN pip install torch==2.7.0\nRUN {line.format(outside)}\n")

    run = here("pins", "predict", "Dockerfile")

    assert run.status == 3, run.out
    assert "outside of the tree" in run.out


def test_the_python_of_an_image_decides(world: World, here: Wheelproof) -> None:
    write(world, Dockerfile="FROM python:3.9-slim\nRUN uv pip install torch==2.7.0\nRUN uv pip install needs-any\n")

    assert "cp39" in here("pins", "predict", "Dockerfile").out
    assert "cp312" in here("pins", "predict", "Dockerfile", "--python", "3.12").out


def test_words_of_a_command_need_no_quotes(predict: Predict) -> None:
    assert predict("pip", "install", "-U", "torch")[0] == 1


def test_commands_stand_alone(predict: Predict) -> None:
    status, words = predict("uv add x", "vllm")

    assert status == 2
    assert "is next to" in words


def test_a_dockerfile_keeps_what_its_own_lines_installed(world: World, here: Wheelproof) -> None:
    write(
        world,
        Dockerfile=f"ARG TORCH=2.7.0\nFROM {IMAGE} AS base\nRUN pip install torch==$TORCH\n"
        "FROM base\nCOPY requirements.txt /app/\n"
        "RUN --mount=type=cache,target=/x pip install -r /app/requirements.txt\n",
    )
    (world.project / "requirements.txt").write_text("needs-any\n")
    kept = here("pins", "predict", "Dockerfile")
    (world.project / "requirements.txt").write_text("needs-2-8\n")
    lost = here("pins", "predict", "Dockerfile")

    assert (kept.status, lost.status) == (0, 1), kept.out + lost.out
    assert "torch 2.7.0 would be replaced by 2.8.0" in lost.out


def test_an_image_of_which_nothing_is_known(world: World, here: Wheelproof) -> None:
    write(world, Dockerfile="FROM nvcr.io/nvidia/pytorch:25.03-py3\nRUN pip install needs-2-8\n")

    unknown = here("pins", "predict", "Dockerfile")
    described = here("pins", "predict", "Dockerfile", "--installed", "torch==2.7.0a0+ecf3bae40a.nv25.3")

    assert (unknown.status, described.status) == (3, 1)
    assert "describe it with --installed" in unknown.out


def test_an_index_that_only_a_dockerfile_names_is_not_contacted(world: World, here: Wheelproof) -> None:
    write(world, Dockerfile=f"FROM {IMAGE}\nRUN pip install --index-url https://index.example/simple torch\n")

    run = here("pins", "predict", "Dockerfile")

    assert run.status == 3
    assert "index.example" in run.out
    assert "--trust-index" in run.out


def test_a_lock_of_poetry_compares_whole_versions(world: World, predict: Predict) -> None:
    (world.project / "poetry.lock").write_text(
        '[[package]]\nname = "torch"\nversion = "2.7.0"\noptional = false\npython-versions = "*"\ngroups = ["main"]\n'
        'files = []\n\n[metadata]\nlock-version = "2.1"\npython-versions = ">=3.11"\ncontent-hash = "x"\n'
    )

    status, words = predict("poetry", "install")

    assert status == 1, words
    assert f"torch {INSTALLED} would be replaced by 2.7.0" in words


def test_a_folder_is_no_copy_of_the_environment(world: World, predict: Predict) -> None:
    status, words = predict("pip", "install", "--target", str(world.root / "elsewhere"), "torch")

    assert status == 0, words
    shutil.rmtree(world.root / "elsewhere", ignore_errors=True)
