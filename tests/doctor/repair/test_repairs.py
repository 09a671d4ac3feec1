"""A sample of the broken environments, each fixed by the whole command; ``ci/repairs.py`` fixes all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.repairs import BROKEN, World, conflicts, findings, tree, versions

SAMPLE = (
    "vllm, and a CPU build of another release",
    "jax with its own cuDNN, and a CPU build",
    "lightning, and a file of torch that was edited",
    "vllm, and a torchvision of another release",
    "vllm, and files that an uninstall of another took",
)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_broken_environment_is_mended_and_put_back(tmp_path: Path, name: str) -> None:
    broken, world = BROKEN[name], World(tmp_path)
    environment = broken.make(world)
    before, complaints = tree(environment.folder), conflicts(environment)

    assert broken.rule in findings(world.doctor(environment, "--format", "json", **broken.variables))
    mended = world.doctor(environment, "--fix", "--yes", "--format", "json", **broken.variables)

    assert findings(mended) == {}, mended.stderr
    repair = json.loads(mended.stdout)["subjects"][0]["facts"]["repair"]
    assert repair["outcome"] == "repaired"
    assert environment.run(f"{environment.python} -c 'import torch'") == ""
    assert conflicts(environment) == set()
    installed = versions(environment)
    assert broken.installed.items() <= installed.items()
    assert not set(broken.gone) & installed.keys()

    undone = world.doctor(environment, "--undo")
    assert undone.returncode == 0, undone.stderr
    assert tree(environment.folder) == before
    assert conflicts(environment) == complaints


def test_there_are_fifteen_environments_of_each_kind_of_user() -> None:
    assert len(BROKEN) >= 15
    assert all(sum(user in name for name in BROKEN) >= 2 for user in ("vllm", "sglang", "lightning", "jax"))
