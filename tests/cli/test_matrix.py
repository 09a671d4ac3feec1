"""``wheelproof matrix``: the list, the output for GitHub, and refusals."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import Wheelproof

ROOT = Path(__file__).resolve().parents[2]

MATRIX = """\
[axes]
platform = ["x86_64", "aarch64"]
python = ["3.12"]
torch = ["2.10.0"]

[cell]
gpu = ["GB200"]
smoke = ["compile"]
deadline = 90

[[override]]
select = "aarch64-*"
expect = { accelerator = "cpu", reason = "no other" }

[[include]]
platform = "x86_64"
python = "3.12"
torch = "2.11.0"
name = "gpu"
smoke = ["cuda"]

[runners]
x86_64 = ["ubuntu-24.04"]
aarch64 = ["ubuntu-24.04-arm"]
gpu = ["self-hosted", "gpu"]
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "m.toml"
    path.write_text(MATRIX, encoding="utf-8")
    return path


def test_the_list_shows_every_cell_and_what_is_known(wheelproof: Wheelproof, matrix: Path) -> None:
    answer = wheelproof("matrix", "list", "--matrix", str(matrix))

    assert answer.status == 0
    assert (
        answer.out
        == """\
cell                           torch must be      smoke    GPUs   runner
x86_64-py3.12-torch2.10.0      cuda               compile  GB200  ubuntu-24.04
aarch64-py3.12-torch2.10.0     cuda (known: cpu)  compile  GB200  ubuntu-24.04-arm
x86_64-py3.12-torch2.11.0-gpu  cuda               cuda     GB200  self-hosted, gpu

aarch64-py3.12-torch2.10.0 is known to be cpu: no other
3 cells
"""
    )
    assert wheelproof("matrix", "--matrix", str(matrix)) == answer


def test_the_list_as_json_holds_everything(wheelproof: Wheelproof, matrix: Path) -> None:
    answer = wheelproof("matrix", "list", "--matrix", str(matrix), "--only", "aarch64-*", "--format", "json")
    document = json.loads(answer.out)

    assert document == {
        "schema": "wheelproof.matrix/1",
        "cells": [
            {
                "id": "aarch64-py3.12-torch2.10.0",
                "platform": "aarch64",
                "python": "3.12",
                "torch": "2.10.0",
                "accelerator": "cuda",
                "expect": {"accelerator": "cpu", "reason": "no other"},
                "gpu": ["GB200"],
                "smoke": ["compile"],
                "level": "quick",
                "kernels": [],
                "packages": [],
                "wheel": "",
                "import": [],
                "command": "",
                "junit": "",
                "index": [],
                "torch-index": "",
                "find-links": [],
                "pre": False,
                "constraints": [],
                "env": {},
                "system-packages": [],
                "glibc": "2.28",
                "image": "",
                "runner": ["ubuntu-24.04-arm"],
                "deadline": 90,
                "timeout": None,
                "retries": 0,
            }
        ],
    }


def test_github_gets_one_line_with_the_same_keys_for_every_cell(wheelproof: Wheelproof, matrix: Path) -> None:
    answer = wheelproof("matrix", "github", "--matrix", str(matrix))
    entries = json.loads(answer.out)["include"]

    assert answer.out.count("\n") == 1
    assert [(entry["id"], entry["runner"], entry["gpu"], entry["minutes"]) for entry in entries] == [
        ("x86_64-py3.12-torch2.10.0", ["ubuntu-24.04"], False, 2),
        ("aarch64-py3.12-torch2.10.0", ["ubuntu-24.04-arm"], False, 2),
        ("x86_64-py3.12-torch2.11.0-gpu", ["self-hosted", "gpu"], True, 2),
    ]
    assert {tuple(entry) for entry in entries} == {tuple(entries[0])}
    assert entries[1]["expect"] == "cpu"


def test_a_cell_without_a_runner_is_refused_for_github(wheelproof: Wheelproof, matrix: Path) -> None:
    matrix.write_text(MATRIX.replace('gpu = ["self-hosted", "gpu"]\n', ""), "utf-8")
    answer = wheelproof("matrix", "github", "--matrix", str(matrix))

    assert (answer.status, answer.out) == (2, "")
    assert "no runner is configured for x86_64-py3.12-torch2.11.0-gpu" in answer.err
    assert 'expected: gpu = ["LABEL", ...] in [runners]' in answer.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list", "--only", "arm64*"], "no cell of {} matches 'arm64*'"),
        (["image", "--platform", "aarch64"], "--platform and --python must be given together"),
        (["image", "--platform", "arm64", "--python", "3.11"], "no image can be built for --platform arm64"),
        (["image", "--platform", "aarch64", "--python", "3.12"], "no image can be built for --python 3.12"),
        (["image"], "no cell needs an image that can be built from Debian packages"),
        (["run", "--jobs", "0"], "--jobs 0 does nothing"),
        (["run", "--deadline", "0"], "--deadline 0 is not a valid timeout"),
        (["run", "--executor", "podman"], "invalid choice: 'podman'"),
        (["run", "--executor", "venv", "--select", "MTX9"], "no rule starts with 'MTX9'"),
    ],
)
def test_wrong_usage(wheelproof: Wheelproof, matrix: Path, arguments: list[str], says: str) -> None:
    answer = wheelproof("matrix", arguments[0], "--matrix", str(matrix), *arguments[1:])

    assert (answer.status, answer.out) == (2, "")
    assert says.format(matrix) in answer.err


def test_a_folder_without_a_matrix_gets_a_hint(wheelproof: Wheelproof) -> None:
    answer = wheelproof("matrix", "list")

    assert answer.status == 2
    assert "the matrix ci/matrix.toml cannot be read: No such file or directory" in answer.err
    assert "docs/matrix.md shows one; --matrix names another" in answer.err


def without_docker(folder: Path) -> Path:
    """A folder with everything that this Python has installed but the package docker."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("docker", "wheelproof")):
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.parametrize("checkout", [True, False])
def test_without_the_package_docker_a_run_says_how_to_install_it(tmp_path: Path, checkout: bool) -> None:
    """In a checkout the folder docker/ is on the path of imports, and is not a package of that name."""
    installed = without_docker(tmp_path / "installed")
    for name, source in (("wheelproof", "tools"), ("wheel_checks", ""), ("kernels_smoke", "")):
        if not checkout:
            (installed / name).symlink_to(ROOT / source / name)
    matrix = tmp_path / "m.toml"
    axes = f'platform = ["{platform.machine()}"]\npython = ["3.11"]\ntorch = ["2.11.0"]'
    matrix.write_text(f"[axes]\n{axes}\n", encoding="utf-8")
    places = [installed, ROOT / "tools", ROOT] if checkout else [installed]
    answer = subprocess.run(
        [sys.executable, "-S", "-P", "-m", "wheelproof", "matrix", "run", "--matrix", str(matrix), "--quiet"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, places)),
            "WHEELPROOF_CACHE_DIR": str(tmp_path / "cache"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (answer.returncode, answer.stdout) == (3, "")
    assert "no cell can run here: the Docker SDK for Python is not installed" in answer.stderr
    assert f"{sys.executable} -m pip install 'docker>=7'" in answer.stderr
