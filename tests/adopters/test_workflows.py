"""The GitHub workflows agree with what they call. zizmor and the schema check are lanes of ``ci/develop.py lint``."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Wheelproof
from wheelproof.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def read(path: Path) -> dict[str, Any]:
    """A workflow; YAML 1.1 takes the key ``on`` for true."""
    document: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in document.items()}


def steps() -> list[Any]:
    """Every step of every workflow, by the workflow's name."""
    return [
        pytest.param(step, id=f"{path.stem}-{job}-{number}")
        for path in WORKFLOWS
        for job, value in read(path)["jobs"].items()
        for number, step in enumerate(value["steps"])
    ]


def test_the_matrix_of_the_workflow_is_that_of_the_command(
    wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    run = wheelproof("matrix", "github")
    assert (run.status, run.out.count("\n")) == (0, 1), "GITHUB_OUTPUT takes one line"
    entries = json.loads(run.out)["include"]
    used = set(re.findall(r"\bmatrix\.([a-z-]+)", (ROOT / ".github/workflows/matrix.yml").read_text()))
    used -= {"toml"}  # of ci/matrix.toml
    assert entries
    for entry in entries:
        # `minutes` is for who has no other deadline.
        assert used == set(entry) - {"minutes"}
        assert re.fullmatch(r"[A-Za-z0-9_.-]+", entry["id"]), "it stands among the arguments of the action"
        assert all(isinstance(label, str) for label in entry["runner"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_nothing_but_what_a_job_says(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"] in ({"contents": "read"}, {"id-token": "write"})
        assert "timeout-minutes" in job
    if "workflow_call" not in workflow["on"]:  # the concurrency of one that is called is its caller's
        assert "concurrency" in workflow


def test_machines_of_our_own_run_no_pull_request() -> None:
    assert set(read(ROOT / ".github/workflows/matrix.yml")["on"]) == {"schedule", "push", "workflow_dispatch"}


@pytest.mark.parametrize("step", steps())
def test_a_step_is_pinned_and_calls_what_exists(step: dict[str, Any]) -> None:
    if "run" in step:
        assert "${{" not in step["run"]
        for script in re.findall(r"(?<![\w/])(?:ci|\.ci)/\S+", step["run"]):
            assert (ROOT / script).is_file()
        return
    if step["uses"] != "$/":
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        return
    assert set(step["with"]) <= set(ACTION["inputs"])
    command = step["with"]["command"]
    assert command.startswith("${{") or shlex.split(command)[0] in COMMANDS


def test_the_reusable_workflow_offers_what_the_action_takes() -> None:
    call = read(ROOT / ".github/workflows/wheelproof.yml")["on"]["workflow_call"]
    assert {"command", "arguments"} <= set(call["inputs"]) & set(ACTION["inputs"])
    assert set(call["outputs"]) <= set(ACTION["outputs"])
