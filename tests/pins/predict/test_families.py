"""``pins predict`` for JAX and TensorFlow: packages that stay, are replaced or overwritten, or no longer fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.environments import Installed
from tests.support.wheels import WheelBuilder

PASS, FAIL, UNDECIDED = 0, 1, 3
CUDNN, NCCL = "nvidia-cudnn-cu12", "nvidia-nccl-cu12"

JAX = {
    ("jax", "0.7.0"): (
        "jaxlib<=0.7.0,>=0.6.2",
        "ml_dtypes>=0.5.0",
        "jax-cuda12-plugin[with-cuda]<=0.7.0,>=0.7.0; extra == 'cuda12'",
        "jax-cuda13-plugin[with-cuda]<=0.7.0,>=0.7.0; extra == 'cuda13'",
    ),
    ("jaxlib", "0.7.0"): ("ml_dtypes>=0.5.0",),
    ("jax-cuda12-plugin", "0.7.0"): (
        "jax-cuda12-pjrt==0.7.0",
        "nvidia-cudnn-cu12<10.0,>=9.8; extra == 'with-cuda'",
        "nvidia-nccl-cu12>=2.18.1; extra == 'with-cuda'",
    ),
    ("jax-cuda12-pjrt", "0.7.0"): (),
    (CUDNN, "9.10.2.21"): (),
    (NCCL, "2.27.3"): (),
    ("ml-dtypes", "0.5.3"): (),
}
TENSORFLOW = {
    ("tensorflow", "2.20.0"): (
        "keras>=3.10.0",
        "ml_dtypes<1.0.0,>=0.5.1",
        "numpy>=1.26.0",
        "protobuf>=5.28.0",
        "nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == 'and-cuda'",
        "nvidia-nccl-cu12<3.0,>=2.25.1; extra == 'and-cuda'",
    ),
    ("keras", "3.11.0"): (),
    ("ml-dtypes", "0.5.3"): (),
    ("numpy", "2.3.0"): (),
    ("protobuf", "6.32.0"): (),
    (CUDNN, "9.3.0.75"): (),
    (NCCL, "2.25.1"): (),
}
INDEX = {
    **JAX,
    **TENSORFLOW,
    ("jax", "0.6.2"): ("jaxlib<=0.6.2,>=0.6.1",),
    ("jax", "0.8.0"): ("jaxlib<=0.8.0,>=0.8.0",),
    ("jaxlib", "0.6.2"): ("ml_dtypes>=0.5.0",),
    ("jaxlib", "0.8.0"): ("ml_dtypes>=0.5.0",),
    ("jax-cuda13-plugin", "0.7.0"): ("nvidia-cudnn-cu13>=9.8",),
    ("nvidia-cudnn-cu13", "9.12.0"): (),
    (CUDNN, "9.1.0.70"): (),
    (CUDNN, "8.9.2.26"): (),
    ("ml-dtypes", "0.4.1"): (),
    ("flax", "0.11"): ("jax>=0.6.0",),
    ("old-jax-user", "1.0"): ("jax<0.7",),
    ("old-types", "1.0"): ("ml-dtypes<0.5",),
    ("contradiction", "1.0"): ("jax==0.7.0", "jaxlib==0.8.0"),
    ("torch-old", "1.0"): ("nvidia-cudnn-cu12==9.1.0.70",),
    ("torch-older", "1.0"): ("nvidia-cudnn-cu12==8.9.2.26",),
    ("torch-same", "1.0"): ("nvidia-cudnn-cu12==9.10.2.21",),
    ("tensorflow", "2.18.0"): ("keras>=3.5.0",),
    ("tensorflow", "2.21.0"): ("keras>=3.12.0",),
    ("tensorflow-cpu", "2.20.0"): (),
    ("tf-nightly", "2.21.0.dev20260101"): (),
    ("keras", "2.15.0"): (),
    ("keras", "3.12.0"): (),
    ("numpy", "1.24.0"): (),
    ("protobuf", "4.25.0"): (),
    ("tensorflow-text", "2.18.0"): ("tensorflow<2.19,>=2.18.0",),
    ("tensorflow-hub", "0.16"): ("numpy>=1.12", "protobuf>=3.19.6"),
    ("old-keras-user", "1.0"): ("keras==2.15.0",),
    ("old-protobuf-user", "1.0"): ("protobuf<5",),
    ("old-numpy-user", "1.0"): ("numpy<1.26",),
}


def wheel(name: str, version: str, requires: Sequence[str]) -> WheelBuilder:
    extras = sorted({text.split("'")[1] for text in requires if "extra ==" in text})
    fields = [f"Provides-Extra: {extra}" for extra in extras]
    builder = WheelBuilder(name.replace("-", "_"), version).add(f"{name.replace('-', '_')}/__init__.py", "")
    return builder.metadata(*fields, requires=requires, name=name)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    for (name, version), requires in INDEX.items():
        wheel(name, version, requires).write(folder)
    return folder


JAX_CASES = [
    ("what requires a release that is present", "flax", PASS, "jax 0.7.0 stays"),
    ("an older release is required", "old-jax-user", FAIL, "jax 0.7.0 would be replaced by 0.6.2"),
    (
        "jaxlib by itself: the plug-in is not used with it",
        "jaxlib==0.6.2",
        FAIL,
        "jax-cuda12-plugin 0.7.0 does not match jaxlib 0.6.2: it needs jaxlib 0.7.0",
    ),
    ("an upgrade", "-U jax", FAIL, "jax 0.7.0 would be replaced by 0.8.0"),
    ("the release that is present", "jax[cuda12]==0.7.0", PASS, "jax 0.7.0 stays"),
    ("a torch with an older cuDNN", "torch-old", FAIL, "requires nvidia-cudnn-cu12<10.0,>=9.8"),
    ("a torch with the same cuDNN", "torch-same", PASS, "jax 0.7.0 stays"),
    (
        "the plug-in for another CUDA",
        "jax-cuda13-plugin==0.7.0",
        FAIL,
        "nvidia-cudnn-cu12 9.10.2.21 would be overwritten by",
    ),
    (
        "ml_dtypes, which jax requires",
        "old-types",
        FAIL,
        "it requires ml_dtypes>=0.5.0, but ml-dtypes 0.4.1 would be installed",
    ),
    ("an install that cannot be done", "contradiction", PASS, "jax 0.7.0 stays"),
]
TENSORFLOW_CASES = [
    ("what requires less", "tensorflow-hub", PASS, "tensorflow 2.20.0 stays"),
    ("a companion for an older release", "tensorflow-text", FAIL, "tensorflow 2.20.0 would be replaced by 2.18.0"),
    (
        "the build for the CPU",
        "tensorflow-cpu",
        FAIL,
        "tensorflow 2.20.0 would be overwritten by tensorflow-cpu 2.20.0",
    ),
    ("the nightly build", "tf-nightly --pre", FAIL, "tensorflow 2.20.0 would be overwritten by tf-nightly"),
    ("Keras 2", "old-keras-user", FAIL, "it requires keras>=3.10.0, but keras 2.15.0 would be installed"),
    (
        "an older protobuf",
        "old-protobuf-user",
        FAIL,
        "it requires protobuf>=5.28.0, but protobuf 4.25.0 would be installed",
    ),
    ("an older NumPy", "old-numpy-user", FAIL, "it requires numpy>=1.26.0, but numpy 1.24.0 would be installed"),
    ("a torch with a newer cuDNN, which it allows", "torch-same", PASS, "tensorflow 2.20.0 stays"),
    ("a torch with cuDNN 8", "torch-older", FAIL, "it requires nvidia-cudnn-cu12<10.0,>=9.3.0.75"),
    ("an upgrade", "-U tensorflow", FAIL, "tensorflow 2.20.0 would be replaced by 2.21.0"),
]


def predict(wheelproof: Wheelproof, index: Path, environment: Path, *arguments: str) -> tuple[int, str]:
    """The exit code, and the first line of the report."""
    options = ("--python", str(environment), "--installer", "uv", "--no-index", "--find-links", str(index))
    run = wheelproof("pins", "predict", *options, "--format", "json", *arguments)
    report: dict[str, Any] = json.loads(run.out)
    messages = [result["message"] for subject in report["subjects"] for result in subject["results"]]
    return run.status, "\n".join([report["summary"]["answers"][0]["text"], *messages])


def environment(folder: Path, packages: dict[tuple[str, str], tuple[str, ...]]) -> Path:
    """A flat folder with these packages, as ``--target`` makes it; an extension module shows its platform."""
    installed = Installed(folder)
    for (name, version), requires in packages.items():
        installed.install(wheel(name, version, requires))
    installed.write("numpy/_core.cpython-312-aarch64-linux-gnu.so", b"")
    return folder


@pytest.mark.parametrize(
    ("requested", "status", "message"), [case[1:] for case in JAX_CASES], ids=[c[0] for c in JAX_CASES]
)
def test_jax(wheelproof: Wheelproof, index: Path, tmp_path: Path, requested: str, status: int, message: str) -> None:
    found, words = predict(wheelproof, index, environment(tmp_path / "there", JAX), *requested.split())

    assert found == status, words
    assert message in words


@pytest.mark.parametrize(
    ("requested", "status", "message"), [case[1:] for case in TENSORFLOW_CASES], ids=[c[0] for c in TENSORFLOW_CASES]
)
def test_tensorflow(
    wheelproof: Wheelproof, index: Path, tmp_path: Path, requested: str, status: int, message: str
) -> None:
    found, words = predict(wheelproof, index, environment(tmp_path / "there", TENSORFLOW), *requested.split())

    assert found == status, words
    assert message in words


def test_without_any_framework_nothing_is_proven(wheelproof: Wheelproof, index: Path, tmp_path: Path) -> None:
    place = environment(tmp_path / "there", {("numpy", "2.3.0"): ()})

    status, words = predict(wheelproof, index, place, "jax")

    assert status == UNDECIDED
    assert "no framework is installed there" in words


def test_a_package_that_the_user_names_is_kept_too(wheelproof: Wheelproof, index: Path, tmp_path: Path) -> None:
    place = environment(tmp_path / "there", {("numpy", "2.3.0"): (), (NCCL, "2.27.3"): ()})

    kept, _ = predict(wheelproof, index, place, "--package", "nvidia-*", "old-numpy-user")
    lost, words = predict(wheelproof, index, place, "--package", "NumPy", "old-numpy-user")

    assert (kept, lost) == (PASS, FAIL)
    assert "numpy 2.3.0 would be replaced by 1.24.0" in words


def test_a_glob_that_matches_nothing_is_undecided(wheelproof: Wheelproof, index: Path, tmp_path: Path) -> None:
    place = environment(tmp_path / "there", {("numpy", "2.3.0"): ()})

    status, words = predict(wheelproof, index, place, "--package", "nvidia-*", "old-numpy-user")

    assert status == UNDECIDED
    assert "nothing that matches nvidia-* is installed there" in words
