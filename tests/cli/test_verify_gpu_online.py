"""GPU code of real wheels on the index, small ones in full, and torch as declared."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof

pytestmark = pytest.mark.online

GRACE_AND_KIN = "GH200,GB200,GB300,GB10,Thor"
RULES = ("--python", "3.12", "--select", "WHL6", "--format", "json")


def subject_of(out: str) -> dict[str, Any]:
    (subject,) = json.loads(out)["subjects"]
    found: dict[str, Any] = subject
    return found


def test_torch_2_11_for_aarch64_runs_on_grace_and_its_kin_by_samples_of_its_code(wheelproof: Wheelproof) -> None:
    run = wheelproof("verify", "torch==2.11.0", "--platform", "aarch64", "--gpu", GRACE_AND_KIN, *RULES)

    facts = subject_of(run.out)["facts"]
    assert run.status == 0
    assert facts["gpu_code"]["certainty"] == "sampled"
    assert facts["gpu_code"]["sass"] == ["sm_80", "sm_90", "sm_100", "sm_110", "sm_120"]
    assert {p["name"]: p["code"] for p in facts["gpu_code"]["products"]} == {
        "GH200": "sm_90",
        "GB200": "sm_100",
        "GB300": "sm_100",
        "GB10": "sm_120",
        "Thor": "sm_110",
    }
    assert facts["bytes_read"] < 10_000_000


def test_torch_2_11_for_aarch64_does_not_run_on_t4_and_says_why(wheelproof: Wheelproof) -> None:
    run = wheelproof("verify", "torch==2.11.0", "--platform", "aarch64", "--gpu", "T4", *RULES)

    failed = {r["rule"]: r["message"] for r in subject_of(run.out)["results"] if r["outcome"] == "fail"}
    assert run.status == 1
    assert failed["WHL601"].startswith("no code for T4 (7.5)")
    assert failed["WHL604"] == "T4 (7.5) exists in x86_64 machines, but the wheel is for aarch64"


def test_torch_2_10_for_aarch64_is_cpu_only(wheelproof: Wheelproof) -> None:
    run = wheelproof("verify", "torch==2.10.0", "--platform", "aarch64", "--gpu", "GB200", *RULES)

    assert run.status == 1
    assert "the wheel is CPU only: it has no code for GB200 (10.0)" in run.out


def pip_download(folder: Path, *arguments: str) -> Path:
    """The wheel that pip fetches into ``folder``, for any platform."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.skipif(platform.system() != "Linux", reason="the cuobjdump on the index that we use is for Linux")
def test_a_real_wheel_has_what_cuobjdump_lists(wheelproof: Wheelproof, tmp_path: Path) -> None:
    tool = zipfile.ZipFile(pip_download(tmp_path / "tool", "nvidia-cuda-cuobjdump==13.5.37"))
    cuobjdump = tmp_path / "cuobjdump"
    cuobjdump.write_bytes(tool.read("nvidia/cu13/bin/cuobjdump"))
    cuobjdump.chmod(0o755)
    path = pip_download(
        tmp_path / "wheel", "torchvision==0.26.0", "--python-version", "3.12", "--platform", "manylinux_2_28_aarch64",
        "--only-binary", ":all:",
    )  # fmt: skip
    wheel = zipfile.ZipFile(path)

    run = wheelproof("verify", str(path), "--depth", "gpu", "--gpu", "GB200", "--select", "WHL6", "--format", "json")

    libraries = subject_of(run.out)["facts"]["gpu_code"]["libraries"]
    assert "torchvision/_C.so" in {library["member"] for library in libraries}
    for library in libraries:
        extracted = Path(wheel.extract(library["member"], tmp_path))
        listed = subprocess.run([cuobjdump, "--list-elf", extracted], capture_output=True, text=True, check=True).stdout
        labels = re.findall(r"\.(sm_\w+)\.cubin$", listed, re.MULTILINE)
        ours: Counter[str] = Counter()
        for label, count in library["entries"].items():
            if label.startswith("sm_"):
                ours[label.rstrip("f")] += count  # cuobjdump does not print the f
        assert ours == Counter(labels)
