"""jax and tensorflow as families: replacements, conflicts and additions are found as for torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheel_checks.catalogue import all_rules
from wheel_checks.facts.pins.families import family
from wheel_checks.model import Outcome
from wheelproof.pins import NameSet, Policy, plan
from wheelproof.pins.check import KIND, check_files

JAX = {"jax": "0.6.0", "jaxlib": "0.6.0", "jax-cuda12-plugin": "0.6.0", "nvidia-cudnn-cu12": "9.10.2.21"}
TENSORFLOW = {"tensorflow": "2.20.0", "tf-keras": "2.20.0", "nvidia-cudnn-cu12": "9.3.0.75"}


def fails(text: str, name: str, installed: dict[str, str], folder: Path) -> bool:
    (folder / "requirements.txt").write_text(text)
    rules = [rule for rule in all_rules() if rule.kind == KIND]
    policy = Policy(names=NameSet.WIDE, families=(family(name),))
    subjects = check_files([folder], policy, installed, rules).subjects
    results = [result for subject in subjects for result in subject.results]
    return any(r.outcome is Outcome.FAIL and r.severity.value == "error" for r in results)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jax==0.6.0\n", False),
        ("jax==0.7.0\n", True),
        ("jax[cuda12]>=0.6\n", False),
        ("jax>0.6.0,<0.8\n", True),
        ("jaxlib<0.6\n", True),
        ("jax_cuda12_plugin==0.7.0\n", True),
        ("nvidia-cudnn-cu12==9.11\n", True),
        ("nvidia-cudnn-cu12>=9.8,<10\n", False),
        ("torch==2.8.0\n", False),
        ("jax==0.7.0; sys_platform == 'darwin'\n", False),
    ],
)
def test_jax(text: str, expected: bool, tmp_path: Path) -> None:
    assert fails(text, "jax", JAX, tmp_path) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensorflow==2.20.0\n", False),
        ("tensorflow==2.19.0\n", True),
        ("tensorflow[and-cuda]~=2.20\n", False),
        ("tensorflow>=2.21\n", True),
        ("tensorflow-cpu\n", True),
        ("tf-nightly==2.23.0.dev20261026\n", True),
        ("tf_keras<2.20\n", True),
        ("nvidia-cudnn-cu12<9.3\n", True),
        ("nvidia-cudnn-cu12<10.0,>=9.3.0.75\n", False),
        ("tensorflow-datasets==4.9\n", False),
    ],
)
def test_tensorflow(text: str, expected: bool, tmp_path: Path) -> None:
    assert fails(text, "tensorflow", TENSORFLOW, tmp_path) is expected


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("jax", "jax[cuda12]\njaxlib==0.6\njax-cuda12-pjrt\nequinox\ntorch\n", "equinox\ntorch\n"),
        (
            "tensorflow",
            "tensorflow==2.20\ntensorflow-cpu\ntensorflow-datasets\nkeras\n",
            "tensorflow-datasets\nkeras\n",
        ),
        ("cupy", "cupy-cuda12x\ncupy\ncuml\n", "cuml\n"),
    ],
)
def test_a_rewriting(name: str, text: str, left: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(text)
    (file,) = plan([tmp_path], Policy(names=NameSet.WIDE, families=(family(name),))).files
    assert file.rewritten.decode() == left


def test_one_import_package_of_two_distributions(tmp_path: Path) -> None:
    assert fails("cupy-cuda13x\n", "cupy", {"cupy-cuda12x": "14.2.0"}, tmp_path)
    assert not fails("cupy-cuda12x\n", "cupy", {"cupy-cuda12x": "14.2.0"}, tmp_path)
    assert fails("onnxruntime\n", "onnxruntime", {"onnxruntime-gpu": "1.31.1"}, tmp_path)
