"""The families: their rows, and how names and globs are matched."""

from __future__ import annotations

import pytest
from packaging.utils import canonicalize_name

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.facts.pins.families import as_pattern, families, families_of, family, matches


@pytest.mark.parametrize(
    ("name", "core", "wide"),
    [
        ("torch", True, True),
        ("torchaudio", True, True),
        ("torchcodec", False, True),
        ("nvidia-cudnn-cu12", False, True),
        ("nvidia-cublas-cu117", False, True),
        ("nvidia-cudnn-frontend", False, False),
        ("nvidia-dali-cuda120", False, False),
        ("nvidia-ml-py", False, False),
        ("torchmetrics", False, False),
        ("pytorch", False, False),
    ],
)
def test_sets_of_torch(name: str, core: bool, wide: bool) -> None:
    torch = family("torch")
    assert (torch.in_set(name, wide=False), torch.in_set(name, wide=True)) == (core, wide)


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("jax", "jaxlib"),
        ("jax", "jax-cuda13-pjrt"),
        ("jax", "nvidia-cudnn-cu12"),
        ("torch", "nvidia-cublas"),
        ("torch", "cuda-toolkit"),
        ("torch", "torchao"),
        ("tensorflow", "tensorflow-cpu"),
        ("cupy", "cupy-cuda12x"),
        ("flash-attn", "torch"),
        ("onnxruntime", "onnxruntime"),
        ("nvidia", "nvidia-nccl-cu13"),
    ],
)
def test_members(name: str, member: str) -> None:
    assert family(name).is_member(member)
    assert not family(name).is_member("numpy")


def test_what_is_installed_has_families() -> None:
    assert [one.name for one in families_of(["numpy", "tf-nightly", "torch"])] == ["torch", "tensorflow"]
    assert [one.name for one in families_of(["cupy-cuda12x"])] == ["cupy"]
    assert families_of(["nvidia-cudnn-cu12", "torchvision"]) == ()


def test_globs_are_over_whole_normalized_names() -> None:
    assert as_pattern("NVIDIA_*") == "nvidia-*"
    assert matches("nvidia-cudnn-cu12", {as_pattern("nvidia_cudnn.*")})
    assert not matches("my-nvidia-x", ("nvidia-*",))
    assert not matches("nvidia", ("nvidia-*",))


def test_an_unknown_family_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="the family 'mxnet' does not exist"):
        family("mxnet")


def test_rows_are_normalized_sourced_and_whole() -> None:
    assert families()[0].name == "torch"
    for row in load("families")["family"]:
        assert row["source"], row["name"]
        assert row["seen"], row["name"]
        assert set(row["silent"]) <= set(row["companions"]), row["name"]
        names = [n for key in ("core", "wide", "companions", "closure", "alternatives") for n in row[key]]
        assert all(name == canonicalize_name(name) for name in names), row["name"]
        assert not row["anchor"] or matches(row["anchor"], row["core"]), row["name"]
