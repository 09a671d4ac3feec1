"""A package index with a small torch that can be imported, and matrices of it that run on this host.

with RangeServer(simple_index(torch_wheel("cpu"))) as server:
    world = MatrixWorld.create(tmp_path, server)
    world.write("accelerator = 'cpu'")
    report = world.run()
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.pairs import library
from tests.support.range_server import RangeServer
from tests.support.wheels import WheelBuilder

HERE = platform.machine()
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
CELL = f"{HERE}-py{PYTHON}-torch2.11.0"
OTHER = "aarch64" if HERE == "x86_64" else "x86_64"


def torch_wheel(accelerator: str, then: str = "", machine: str = HERE, version: str = "2.11.0") -> WheelBuilder:
    """A torch whose import says that it is built for ``accelerator`` and then runs the statement ``then``."""
    cuda = "13.0" if accelerator == "cuda" else None
    whole = f"{version.partition('+')[0]}+{'cu130' if cuda else 'cpu'}"
    tag = PYTHON.replace(".", "")
    wheel = WheelBuilder("torch", version, f"cp{tag}-cp{tag}-manylinux_2_28_{machine}")
    wheel.add(
        "torch/__init__.py",
        "import os, sys, time, types\nfrom . import version\n__version__ = version.__version__\n"
        f"_C = types.SimpleNamespace(_cuda_getArchFlags=lambda: {'sm_80 sm_90 sm_100' if cuda else ''!r})\n"
        f"cuda = types.SimpleNamespace(is_available=lambda: False)\n{then}\n",
    )
    wheel.add(
        "torch/version.py",
        f"__version__ = '{whole}'\ncuda = {cuda!r}\nhip = None\nxpu = None\n",
    )
    if cuda:
        wheel.add("torch/lib/libtorch_cuda.so", library(machine, gpu=("sm_80", "sm_90", "sm_100")))
    wheel.add("torch/lib/libtorch_cpu.so", library(machine))
    return wheel


@dataclass(frozen=True)
class MatrixWorld:
    """A folder with a matrix file, and the variables with which its cells are resolved from the index of the test."""

    folder: Path
    environ: dict[str, str]

    @classmethod
    def create(cls, folder: Path, server: RangeServer) -> MatrixWorld:
        """A world whose cells are resolved from the index that ``server`` offers."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("UV_", "PIP_", "WHEELPROOF_"))}
        (folder / "tmp").mkdir()
        environ |= {
            "UV_DEFAULT_INDEX": server.url("/simple/"),
            "UV_CACHE_DIR": str(folder / "uv-cache"),
            "WHEELPROOF_CACHE_DIR": str(folder / "cache"),
            "TMPDIR": str(folder / "tmp"),
            # this Python itself comes first: a version manager's wrapper takes a second, each time that uv looks
            "PATH": os.pathsep.join([str(Path(sys.base_prefix, "bin")), os.environ["PATH"]]),
        }
        return cls(folder, environ)

    def write(self, options: str = "", platforms: str = f'"{HERE}"', torch: str = "2.11.0") -> Path:
        """The matrix: ``torch`` on ``platforms``, with the lines ``options`` under [cell]."""
        path = self.folder / "matrix.toml"
        axes = f'[axes]\nplatform = [{platforms}]\npython = ["{PYTHON}"]\ntorch = ["{torch}"]\n'
        path.write_text(f"{axes}\n[cell]\nglibc = '2.28'\n{options}\n", encoding="utf-8")
        return path

    def command(self, *arguments: str) -> list[str]:
        """``wheelproof matrix run`` by the venv executor; only the rules of the matrix judge."""
        run = [sys.executable, "-m", "wheelproof", "matrix", "run", "--executor", "venv", "--format", "json"]
        return [*run, "--select", "MTX", "--matrix", str(self.folder / "matrix.toml"), *arguments]

    def run(self, *arguments: str, status: int = 0) -> Any:
        """The JSON report of a run that ends with this exit code."""
        answer = subprocess.run(
            self.command(*arguments), env=self.environ, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert answer.returncode == status, answer.stderr + answer.stdout
        return json.loads(answer.stdout)


def steps_of(report: Any, cell: str = CELL) -> dict[str, Any]:
    """The steps of a cell, by name."""
    (subject,) = [subject for subject in report["subjects"] if subject["id"] == cell]
    return {step["name"]: step for step in subject["facts"]["steps"]}


def messages(report: Any, cell: str = CELL) -> list[tuple[str, str, str]]:
    """Rule, outcome and message of all that did not pass in a cell."""
    (subject,) = [subject for subject in report["subjects"] if subject["id"] == cell]
    return [(r["rule"], r["outcome"], r["message"]) for r in subject["results"] if r["outcome"] in {"fail", "error"}]


def without_times(report: Any, source: str = "") -> Any:
    """A report without what differs from machine to machine: times, what was kept of earlier runs, paths of logs.

    ``source`` is the path of the matrix that the report names.
    """
    text = json.dumps({key: value for key, value in report.items() if key not in {"started", "seconds"}})
    return _plain(json.loads(text.replace(source, "MATRIX") if source else text))


_TIMES = {"started", "seconds", "ended", "kept", "log", "run", "inputs"}
_SPENT = {"bytes_read", "requests"}  # what a cache holds already is not read again


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and value.get("label") == "log":
        return "the path of a log"
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _TIMES | _SPENT}
    return [_plain(item) for item in value] if isinstance(value, list) else value
