"""The GitHub workflows agree with the commands that they call. zizmor and the schema check are lanes of ``ci/develop.py
lint``.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.lanes import HEAVY
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
        for number, step in enumerate(value.get("steps", ()))
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
        assert "timeout-minutes" in job or "uses" in job  # who calls a workflow has the timeouts of its jobs
    if "workflow_call" not in workflow["on"]:  # a called workflow has its caller's concurrency
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


def test_nothing_is_published_that_was_not_tested_or_does_not_lie_on_main() -> None:
    jobs = read(ROOT / ".github/workflows/release.yml")["jobs"]
    assert set(jobs["publish"]["needs"]) == {"test", "build"}
    assert jobs["test"]["uses"] == "$/.github/workflows/ci.yml"
    assert jobs["test"]["needs"] == jobs["build"]["needs"] == "main"
    assert "git merge-base --is-ancestor" in jobs["main"]["steps"][-1]["run"]


def test_the_pythons_of_ci_are_those_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert read(ROOT / ".github/workflows/ci.yml")["jobs"]["unit"]["strategy"]["matrix"]["python"] == named


def test_every_heavy_lane_has_its_job() -> None:
    assert read(ROOT / ".github/workflows/ci.yml")["jobs"]["heavy"]["strategy"]["matrix"]["lane"] == list(HEAVY)


def test_the_reusable_workflow_offers_what_the_action_takes() -> None:
    call = read(ROOT / ".github/workflows/wheelproof.yml")["on"]["workflow_call"]
    assert {"command", "arguments"} <= set(call["inputs"]) & set(ACTION["inputs"])
    assert set(call["outputs"]) <= set(ACTION["outputs"])
