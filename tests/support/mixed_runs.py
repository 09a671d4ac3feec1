"""Twenty runs of every kind of command, each with its own findings, built offline in a few seconds.

for name, paths in mixed_runs(wheelproof, tmp_path): ...   # the same report in HTML, Markdown and JSON
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import Wheelproof
from tests.support.fleets import with_driver, with_vbios, write_fleet
from tests.support.hosts import cuda_fails, grace, healthy, hgx, with_cpu_torch, with_variables, without_gpu
from tests.support.pairs import library, wheel_for
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.smoke import CALIBRATION, case, document, fake_interpreter, prints, probe, speed
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.host.codec import to_json
from wheel_checks.facts.host.facts import HostFacts

_MACHINES, _PYTHONS = ("x86_64", "aarch64"), ("cp311", "cp312", "cp313")
_VERSIONS = tuple(f"2.{minor}.0" for minor in range(5, 12))
_RELEASE = """\
project = "torch"
pythons = ["3.11", "3.12", "3.13", "3.14"]
resolve = false
"""
_PLATFORM = '[[platform]]\nname = "{0}"\ntags = ["manylinux_2_28_{0}"]\naccelerator = "cuda"\n'
_AXES = 'platform = ["x86_64", "aarch64"]\npython = ["3.11", "3.12", "3.13"]\n'


class Paths(NamedTuple):
    """One report in three formats."""

    html: Path
    markdown: Path
    json: Path


def mixed_runs(wheelproof: Wheelproof, folder: Path) -> Iterator[tuple[str, Paths]]:
    """Run each of the commands; its name, and the paths of its reports."""
    with RangeServer(simple_index(*_index())) as server:
        for name, arguments in _commands(folder, server.url("/simple")).items():
            paths = Paths(*(folder / f"{name}.{ending}" for ending in ("html", "md", "json")))
            also = ("--also", f"markdown={paths.markdown}", "--also", f"json={paths.json}")
            run = wheelproof(*arguments, "--format", "html", "--output", str(paths.html), *also)
            assert run.status in {0, 1, 3}, (name, run.err)
            yield name, paths


def _index() -> list[WheelBuilder]:
    requires = [f"torch=={version}" for version in ("2.10.0", "2.11.0")]
    return [
        *(torch_like("cuda", "2.10.0", "x86_64", python) for python in _PYTHONS),
        *(torch_like("cpu", "2.10.0", "aarch64", python) for python in _PYTHONS),
        *(torch_like("cuda", "2.11.0", machine, python) for machine in _MACHINES for python in _PYTHONS),
        *(WheelBuilder("vllm", f"0.{n}.0").metadata(requires=[need]) for n, need in enumerate(requires)),
    ]


def _commands(folder: Path, index: str) -> dict[str, list[str]]:
    on_index = ["--index-url", index, "--python", "3.12"]
    many = _wheels(folder / "many")
    return {
        "verify-one": ["verify", str(many[0]), "--expect", "cuda"],
        "verify-several": ["verify", *map(str, many[:4]), "--expect", "cuda"],
        "verify-many": ["verify", *map(str, many), "--expect", "cuda>=13"],
        "verify-index": ["verify", "torch==2.10.0", *on_index, "--platform", "all", "--expect", "cuda"],
        "verify-gpu": ["verify", *map(str, _gpu_wheels(folder / "gpu")), "--gpu", "V100,GB200"],
        "verify-limits": ["verify", *map(str, many[:9]), "--max-size", "1kB", "--fail-on", "warning"],
        "stack": ["stack", "vllm==0.0.0", *on_index, "--platform", "aarch64", "--expect", "cuda"],
        "stacks": ["stack", "vllm", *on_index, "--platform", "all", "--expect", "cuda<13"],
        "release-short": ["release", str(folder / "many"), "--expect", str(_release(folder))],
        "matrix": ["matrix", "merge", str(_records(folder)), "--matrix", str(folder / "matrix.toml")],
        "fleet": ["report", "merge", _fleet(folder / "fleet"), "--expect-hosts", "node-[00-79]"],
        "fleet-alike": ["report", "merge", write_fleet(_new(folder / "alike"), {"a": hgx(), "b": hgx()})],
        "doctor-healthy": ["doctor", "--facts", _facts(folder / "healthy.json", healthy())],
        "doctor-no-gpu": ["doctor", "--facts", _facts(folder / "no-gpu.json", without_gpu(grace()))],
        "doctor-cpu-torch": ["doctor", "--facts", _facts(folder / "cpu.json", with_cpu_torch(healthy()))],
        "explain": ["explain", _log(folder / "job.log")],
        "pins": ["pins", "check", _pinned(folder / "tree"), "--installed", "torch==2.11.0+cu130"],
        "diff": ["diff", *map(str, _gpu_wheels(folder / "pair")), "--depth", "gpu"],
        "smoke": ["smoke", "--python", _sick(folder)],
        "smoke-none": ["smoke", "--python", _missing(folder)],
    }


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _wheels(folder: Path) -> list[Path]:
    """42 wheels: a torch is a CPU build for aarch64 up to 2.10, and each is of another CUDA than is wanted."""
    _new(folder)
    built = [
        torch_like("cpu" if machine == "aarch64" and version != "2.11.0" else "cuda", version, machine, python)
        for version in _VERSIONS
        for machine in reversed(_MACHINES)
        for python in _PYTHONS
    ]
    return [Path(wheel.write(folder)) for wheel in built]


def _gpu_wheels(folder: Path) -> list[Path]:
    """Two wheels with other GPUs."""
    a, b = wheel_for("aarch64"), wheel_for("x86_64")
    a.add("demo/lib/libdemo_cuda.so", library(gpu=("sm_80", "sm_90", "sm_110")))
    b.add("demo/lib/libdemo_cuda.so", library("x86_64", gpu=("sm_75", "sm_80", "sm_86", "sm_90")))
    return [Path(wheel.write(_new(folder) if wheel is a else folder)) for wheel in (a, b)]


def _release(folder: Path) -> Path:
    path = folder / "release.toml"
    path.write_text("\n".join([_RELEASE, *(_PLATFORM.format(machine) for machine in _MACHINES)]), encoding="utf-8")
    return path


def _records(folder: Path) -> Path:
    """No cell of 42 reported."""
    torch = ", ".join(f'"{version}"' for version in _VERSIONS)
    (folder / "matrix.toml").write_text(f"[axes]\n{_AXES}torch = [{torch}]\n", encoding="utf-8")
    return _new(folder / "records")


def _fleet(folder: Path) -> str:
    """72 of 80 hosts reported; eleven differ, each in something else or by another cause."""
    usual = with_vbios(hgx(), "96.00.A5.00.01")
    hosts: dict[str, HostFacts] = {f"node-{n:02}": usual for n in range(72)}
    for n in range(5):
        hosts[f"node-{7 * n + 3:02}"] = with_driver(usual, f"570.86.{n}")
        hosts[f"node-{7 * n + 5:02}"] = with_variables(cuda_fails(usual, 100 + n), CUDA_VISIBLE_DEVICES=" " * n)
    return write_fleet(_new(folder), hosts)


def _facts(path: Path, facts: HostFacts) -> str:
    path.write_text(json.dumps(to_json(facts)), encoding="utf-8")
    return str(path)


def _log(path: Path) -> str:
    path.write_text(
        "torch 2.9.1+cu128\nRuntimeError: CUDA error: no kernel image is available for execution on the device\n"
        "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory\n"
        "AssertionError: Torch not compiled with CUDA enabled\n",
        encoding="utf-8",
    )
    return str(path)


def _pinned(folder: Path) -> str:
    """A tree in which three hundred files would replace the torch that is installed."""
    for n in range(300):
        (folder / f"image{n:03}").mkdir(parents=True)
        (folder / f"image{n:03}/Dockerfile").write_text(f"FROM x\nRUN pip install torch==2.{n % 9}.{n}\n")
    return str(folder)


def _sick(folder: Path) -> str:
    """A Python whose kernels are wrong or slow, twenty-five of them."""
    slow = "200.0 us instead of at most 151.3: 1.60 times the floor (125.0 us)"
    wrong = "out: relative error 0.12 instead of at most 0.004"
    names = [f"kernel_{n:02}" for n in range(25)]
    measured = document(
        verdict="fail",
        calibration=CALIBRATION,
        probes=[probe("torch"), probe("c_compiler", "fail", "there is no C compiler")],
        cases=[case(name, "plain", "wrong" if n % 2 else "pass", wrong * (n % 2)) for n, name in enumerate(names)],
        speeds=[speed(name, outcome="slow", message=slow, ratio=1.6) for name in names[::2]],
    )
    return fake_interpreter(folder, prints(measured))


def _missing(folder: Path) -> str:
    return fake_interpreter(_new(folder / "none"), "raise ModuleNotFoundError('torch')")
