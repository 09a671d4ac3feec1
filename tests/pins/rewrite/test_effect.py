"""The effect of an install on torch before and after a rewrite, with stand-in wheels of a local index."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.fake_torch import INSTALLED, World

KEEPS = "an install keeps torch " + INSTALLED


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An environment with torch, with this process started in its project and with its variables."""
    world = World.create(tmp_path / "world")
    for name, value in world.variables.items():
        if name != "PATH":
            monkeypatch.setenv(name, value)
    return world


@pytest.fixture
def rewrite(world: World, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The effects of rewriting a file of the project, which is not written."""

    def run(text: str, name: str = "requirements.txt", *options: str) -> Any:
        monkeypatch.chdir(world.project)
        (world.project / name).write_text(text)
        run = wheelproof("pins", "rewrite", name, "--dry-run", "--json", "--python", str(world.python), *options)
        assert run.status == 0, run.err
        found = json.loads(run.out)["effects"]
        return [(effect["before"]["torch"], effect["after"]["torch"], effect["after"]["message"]) for effect in found]

    return run


def test_the_pin_that_goes_was_the_danger(rewrite: Callable[..., Any]) -> None:
    assert rewrite("torch==2.8.0\nneeds-any\n") == [("replaced", "kept", KEEPS)]


def test_another_package_still_demands_one(rewrite: Callable[..., Any]) -> None:
    ((before, after, shown),) = rewrite("torch>=2\nneeds-2-8\n")
    assert (before, after) == ("replaced", "replaced")
    assert "needs-2-8" in shown


def test_a_constraint_that_goes_kept_torch(rewrite: Callable[..., Any]) -> None:
    text = (
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["needs-2-8"]\n'
        f'[tool.uv]\nconstraint-dependencies = ["torch=={INSTALLED}"]\n'
    )
    ((before, after, _),) = rewrite(text, "pyproject.toml")
    assert (before, after) == ("conflict", "replaced")


def test_an_override_becomes_a_guard(rewrite: Callable[..., Any]) -> None:
    text = (
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["needs-2-8"]\n'
        f'[tool.uv]\noverride-dependencies = ["torch=={INSTALLED}"]\n'
    )
    ((before, after, _),) = rewrite(text, "pyproject.toml")
    assert (before, after) == ("unknown", "kept")


def test_it_can_be_left_out(rewrite: Callable[..., Any]) -> None:
    assert rewrite("torch==2.8.0\n", "requirements.txt", "--no-resolve") == []


def test_the_sentence_says_what_would_help(
    world: World, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.project)
    (world.project / "requirements.txt").write_text("torch>=2\nneeds-2-8\n")
    out = wheelproof("pins", "rewrite", "requirements.txt", "--dry-run", "--python", str(world.python)).out
    assert "requirements.txt: after the rewriting torch " in out
    assert "guard it: `torch; sys_platform == 'never'`" in out


def test_what_is_not_requested_is_not_known(rewrite: Callable[..., Any]) -> None:
    for more in ("needs-2-8 @ https://mirror.example/needs_2_8-1.0-py3-none-any.whl", "-r more.txt"):
        ((_, after, why),) = rewrite(f"torch==2.7.0\nneeds-any\n{more}\n")
        assert (after, "could bring another torch" in why) == ("unknown", True), why


def test_a_requirement_that_never_applies_is_no_override(rewrite: Callable[..., Any]) -> None:
    ((_, after, _),) = rewrite("torch==2.7.0\ntorch; sys_platform == 'never'\nneeds-2-8\n")
    assert after == "replaced"
