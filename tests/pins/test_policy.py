"""Which requirements a policy means: sets of families, names, and globs."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheel_checks.facts.pins.families import family
from wheelproof.pins import NameSet, Policy, plan
from wheelproof.pins.check import check_files
from wheelproof.pins.policy import names_of


def removed(text: str, policy: Policy, folder: Path) -> list[str]:
    (folder / "requirements.txt").write_text(text)
    return [change.found.text for file in plan([folder], policy).files for change in file.changes]


REQUIREMENTS = "torch==2.7.0\nnumpy\njax[cuda12]==0.6\njaxlib\njax-cuda12-plugin\nnvidia_cudnn_cu12==9\nnvidia-ml-py\n"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy(), ["torch==2.7.0"]),
        (Policy(families=(family("jax"),)), ["jax[cuda12]==0.6", "jaxlib"]),
        (
            Policy(families=(family("jax"),), names=NameSet.WIDE),
            ["jax[cuda12]==0.6", "jaxlib", "jax-cuda12-plugin", "nvidia_cudnn_cu12==9"],
        ),
        (Policy(families=(family("jax"), family("torch"))), ["torch==2.7.0", "jax[cuda12]==0.6", "jaxlib"]),
        (Policy(packages=names_of(["NVIDIA_*"])), ["nvidia_cudnn_cu12==9", "nvidia-ml-py"]),
        (Policy(packages=names_of(["nvidia-*-cu1?"])), ["nvidia_cudnn_cu12==9"]),
    ],
)
def test_what_is_meant(policy: Policy, expected: list[str], tmp_path: Path) -> None:
    assert removed(REQUIREMENTS, policy, tmp_path) == expected


def test_a_package_that_matches_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    policy = Policy(packages=names_of(["nvidia-*", "nvidia-cudn", "amd-*"]))
    notices = plan([tmp_path], policy).notices
    assert [(n.code, n.message.split()[1]) for n in notices] == [
        ("package-unmatched", "amd-*"),
        ("package-unmatched", "nvidia-cudn"),
    ]
    assert check_files([tmp_path], policy, {}, []).subjects[-1].id == "--package"
    assert plan([tmp_path], Policy()).notices == ()
