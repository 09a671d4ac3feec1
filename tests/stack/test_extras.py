"""Extras and dependency groups of a pyproject.toml, with the indexes that [tool.uv.sources] gives them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.stack.test_declared import CONFIG, TARGET, written
from wheel_checks.errors import UsageError
from wheel_checks.sources.trust import NO_TRUST
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheelproof.stacks.inputs import parse_inputs
from wheelproof.wheels.handing import hand_over

PROJECT = """
[project]
name = "demo"
dependencies = ["numpy"]
[project.optional-dependencies]
cpu = ["torch==2.9.1"]
GPU = ["torch==2.9.1", "triton"]
[dependency-groups]
lint = ["ruff"]
dev = ["pytest", {include-group = "lint"}]
[tool.uv.sources]
torch = [{ index = "cpu", extra = "cpu" }, { index = "cuda", extra = "gpu", marker = "platform_machine == 'x86_64'" }]
[[tool.uv.index]]
name = "cpu"
url = "https://mine.example/cpu"
explicit = true
[[tool.uv.index]]
name = "cuda"
url = "https://mine.example/cuda"
explicit = true
"""


@pytest.mark.parametrize(
    ("chosen", "requirements", "pinned"),
    [
        (ExtrasAndGroups(), ["numpy"], {}),
        (ExtrasAndGroups(("gpu",)), ["numpy", "torch==2.9.1", "triton"], {"torch": "https://mine.example/cuda"}),
        (ExtrasAndGroups(("cpu",)), ["numpy", "torch==2.9.1"], {"torch": "https://mine.example/cpu"}),
        (ExtrasAndGroups(groups=("dev",)), ["numpy", "pytest", "ruff"], {}),
        (ExtrasAndGroups(groups=("lint",)), ["numpy", "ruff"], {}),
    ],
)
def test_extras_and_groups(
    tmp_path: Path, chosen: ExtrasAndGroups, requirements: list[str], pinned: dict[str, str]
) -> None:
    requested = parse_inputs([str(written(tmp_path, PROJECT, "pyproject.toml"))], [], chosen)
    config = replace(CONFIG, trust=NO_TRUST.with_places(["https://mine.example"]))
    given = hand_over(requested, TARGET, config)
    assert (sorted(given.of_files), dict(given.pinned)) == (requirements, pinned)
    assert requested.chosen == (*chosen.extras, *chosen.groups)
    assert all(PROJECT.splitlines()[line.number - 1].count(str(line.requirement)) for line in requested.declared.lines)


def test_every_extra(tmp_path: Path) -> None:
    requested = parse_inputs([str(written(tmp_path, PROJECT, "pyproject.toml"))], [], ExtrasAndGroups(all_extras=True))
    assert sorted(line.name for line in requested.declared.lines) == ["numpy", "torch", "torch", "triton"]


@pytest.mark.parametrize(
    ("name", "chosen", "what"),
    [
        (
            "pyproject.toml",
            ExtrasAndGroups(("tpu",)),
            "pyproject.toml has no extra 'tpu'; expected one of these: cpu, gpu",
        ),
        (
            "pyproject.toml",
            ExtrasAndGroups(groups=("gpu",)),
            "pyproject.toml has no group 'gpu'; expected one of these: dev, lint",
        ),
        ("requirements.txt", ExtrasAndGroups(("gpu",)), "an extra or group was given, but no project is checked"),
    ],
)
def test_extras_and_groups_that_do_not_exist(tmp_path: Path, name: str, chosen: ExtrasAndGroups, what: str) -> None:
    text = PROJECT if name == "pyproject.toml" else "torch\n"
    with pytest.raises(UsageError) as raised:
        parse_inputs([str(written(tmp_path, text, name))], [], chosen)
    assert str(raised.value).startswith(what)
