"""Kernels of other packages are tested from their wheels, which are unpacked and not installed."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ci.foreign_kernels import FOLDER, ROOT, FolderError, summary, table, unpack
from tests.conftest import kernels_python
from tests.support.smoke import case, mutant, probe

PYTHON = kernels_python()  # read now, since a test sees no such variable
KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def _copy_kernel(x, out, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places, mask=places < count), mask=places < count)

def copied(x):
    out = torch.empty_like(x)
    _copy_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
DESCRIPTION = """
import torch
from kernels_smoke.suite.model import Function, here
from their_package import copied

KERNELS = [
    Function(copied, lambda draw, size: {"x": draw.normal(size, dtype=torch.float32)}, CLONE, [here("a", size=37)])
]
""".replace("CLONE", "lambda x: x.clone()")


def wheel(folder: Path, name: str = "their_package-1.0-py3-none-any.whl") -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("their_package.py", KERNEL)
    return folder


@pytest.mark.kernels
def test_an_unpacked_package_is_run_compiled_and_mutated(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(DESCRIPTION)
    program = [sys.executable, str(ROOT / "ci/foreign_kernels.py"), "--wheels", str(wheel(tmp_path / "wheels"))]
    options = ["--device", "interpret", "--python", str(PYTHON), "--target", "sm_90", "--output", "found.json"]
    files = ["--files", str(tmp_path / "theirs.py")]
    done = subprocess.run([*program, *options, *files], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "their_package 1.0" in done.stdout.splitlines()[0]
    assert "theirs.py, 8 lines" in done.stdout
    (row,) = json.loads((tmp_path / "found.json").read_text())["summary"]
    assert row["kernels"]["copied"]["run"] == {"pass": 1}
    assert row["kernels"]["copied"]["compile-only"] == {"pass": 1}
    assert row["kernels"]["copied"]["mutants"]["caught"] >= 3


def test_only_pure_wheels_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FolderError, match="has no wheel"):
        unpack(tmp_path / "empty", tmp_path)
    native = wheel(tmp_path / "native", "theirs-1.0-cp312-cp312-linux_x86_64.whl")
    with pytest.raises(
        FolderError, match=r"theirs-1\.0-cp312-cp312-linux_x86_64\.whl is not a wheel for every platform"
    ):
        unpack(native, tmp_path)
    assert unpack(wheel(tmp_path / "wheels"), tmp_path / "place") == ["their_package 1.0"]
    assert (tmp_path / "place/their_package.py").read_text() == KERNEL


def test_the_summary_names_every_kernel_with_its_score(tmp_path: Path) -> None:
    file, broken = tmp_path / "theirs.py", tmp_path / "broken.py"
    file.write_text("one\ntwo\n")
    broken.write_text("one\n")
    empty: dict[str, Any] = {"cases": [], "speeds": [], "compiled": [], "mutants": [], "probes": []}
    family = {"source": str(file), "kernels": [{"name": "copied"}]}
    found = probe(f"kernels {broken}", "error", "broken.py cannot be imported: NameError")
    documents = {
        "run": empty | {"families": [family], "cases": [case("copied"), case("other")], "probes": [found]},
        "mutants": empty | {"families": [family], "mutants": [mutant("copied", "a"), mutant("copied", "b", "missed")]},
    }
    assert [" ".join(line.split()) for line in table(summary([file, broken], documents))] == [
        "theirs.py, 2 lines",
        "copied run 1 pass",
        "copied mutants 1 caught, 1 missed (score 50%)",
        "broken.py, 1 lines: broken.py cannot be imported: NameError",
    ]


def test_each_description_is_short_and_each_package_is_pinned() -> None:
    files = sorted(FOLDER.glob("*.py"))
    pins = [line for line in (FOLDER / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(files) == 5
    assert all(len(file.read_text().splitlines()) <= 40 for file in files)
    assert all("==" in pin for pin in pins)
