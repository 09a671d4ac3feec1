"""Measure the cost of a verdict, first and repeated, and of installers for the same.

usage: python benchmarks/stack.py [--stack REQUIREMENT] [--wheel REQUIREMENT] [--platform aarch64] [--python 3.12]
                                  [--gpu GB200] [--repeat 2]
       (default: vllm==0.20.0 and torch==2.11.0)

In one run: `uv pip compile` of the stack with an empty and with a filled cache, `wheelproof stack` with and without a
GPU; `pip download` of the wheel, and `wheelproof verify` of it at each depth and for the GPU. Every row has its own
empty cache the first time; "again" is the same command once more, the best of REPEAT. Prints wall and processor
seconds with all children, bytes read, the peak memory of the largest process, and ratios to the peer. Machines are
noisy and networks more so, so nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command: wall and processor seconds, bytes read (None: not known), peak memory in bytes."""

    wall: float
    processor: float
    read: int | None
    memory: int

    def __str__(self) -> str:
        read = "-" if self.read is None else f"{self.read / MEGABYTE:.1f}"
        return f"{self.wall:8.2f}{self.processor:8.2f}{read:>9}{self.memory / MEGABYTE:7.0f}"


def measured(command: Sequence[str], report: Path | None = None, **environment: str) -> Cost:
    """Run a command. Its ``report`` has the bytes read. Exits if it fails to run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    messages = process.communicate()[1]
    wall = time.perf_counter() - start
    if process.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(command)}\n{messages}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    read = json.loads(report.read_text(encoding="utf-8"))["summary"]["bytes_read"] if report else None
    return Cost(wall, used, read, after.ru_maxrss * 1024)


def wheelproof(arguments: Sequence[str], scratch: Path, repeat: int) -> tuple[Cost, Cost]:
    """The first and the best later run of a command, in a process that has no other children: memory is a maximum."""
    code = "import sys; from benchmarks.stack import one; one(sys.argv[1:])"
    report = scratch / "report.json"
    command = [sys.executable, "-m", "wheelproof", *arguments, "-q", "--format", "json", "--output", str(report)]
    root = str(Path(__file__).parents[1])

    def run() -> Cost:
        made = subprocess.run(
            [sys.executable, "-c", code, str(report), *command],
            capture_output=True,
            text=True,
            check=True,
            env={
                **os.environ,
                "WHEELPROOF_CACHE_DIR": str(scratch / "cache"),
                "UV_CACHE_DIR": str(scratch / "uv"),
                "PYTHONPATH": root,
            },
        )
        return Cost(*json.loads(made.stdout))

    first = run()
    return first, min((run() for _ in range(repeat)), key=lambda cost: cost.wall)


def one(arguments: Sequence[str]) -> None:
    """Print the cost of one command, in its own process; the first argument is the report that it writes."""
    cost = measured(arguments[1:], Path(arguments[0]))
    print(json.dumps([cost.wall, cost.processor, cost.read, cost.memory]))


def compiled(requirement: str, target: argparse.Namespace, scratch: Path, repeat: int) -> tuple[Cost, Cost]:
    """The costs of `uv pip compile`, which prints no number of bytes."""
    (scratch / "requirements.in").write_text(f"{requirement}\n", encoding="utf-8")
    command = [sys.executable, "-m", "uv", "pip", "compile", str(scratch / "requirements.in"), "--quiet"]
    command += ["--python-platform", f"{target.platform}-manylinux_2_39", "--python-version", target.python]
    command += ["--cache-dir", str(scratch / "cache"), "--no-build"]
    first = measured(command)
    return first, min((measured(command) for _ in range(repeat)), key=lambda cost: cost.wall)


def downloaded(requirement: str, target: argparse.Namespace, scratch: Path) -> Cost:
    """The cost of `pip download` of one wheel. pip needs every platform tag by name."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "-q"]
    command += ["--python-version", target.python, "-d", str(scratch), requirement]
    for minor in range(17, 40):
        command += ["--platform", f"manylinux_2_{minor}_{target.platform}"]
    cost = measured([*command, "--platform", f"manylinux2014_{target.platform}"])
    (wheel,) = scratch.glob("*.whl")
    return Cost(cost.wall, cost.processor, wheel.stat().st_size, cost.memory)


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("stack", "vllm==0.20.0"), ("wheel", "torch==2.11.0"), ("platform", "aarch64")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--gpu", default="GB200")
    parser.add_argument("--repeat", type=int, default=2)
    given = parser.parse_args()
    target = ["--platform", given.platform, "--python", given.python]
    print(f"Python {platform.python_version()}, uv {version('uv')}, pip {version('pip')}, {os.cpu_count()} CPUs")
    print(f"{given.stack}, {given.wheel} for {given.platform}, Python {given.python}\n")
    print(f"{'':34}{'wall s':>8}{'CPU s':>8}{'MB':>9}{'mem':>7}   ratio to the peer")
    with tempfile.TemporaryDirectory() as folder:

        def fresh(name: str) -> Path:
            place = Path(folder, name)
            place.mkdir()
            return place

        peers = compiled(given.stack, given, fresh("compile"), given.repeat)
        show("uv pip compile", peers)
        for label, more in (("stack", []), (f"stack --gpu {given.gpu}", ["--gpu", given.gpu])):
            show(label, wheelproof(["stack", given.stack, *target, *more], fresh(label), given.repeat), peers)
        peer = downloaded(given.wheel, given, fresh("download"))
        show("pip download", (peer,))
        rows = [(f"verify --depth {depth}", ["--depth", depth]) for depth in ("quick", "links", "gpu")]
        for label, more in [*rows, (f"verify --gpu {given.gpu}", ["--gpu", given.gpu])]:
            show(label, wheelproof(["verify", given.wheel, *target, *more], fresh(label), given.repeat), (peer, peer))


def show(label: str, costs: Sequence[Cost], peers: Sequence[Cost] = ()) -> None:
    """Print the first cost, and the cost of a repetition."""
    for number, cost in enumerate(costs):
        ratio = f"{cost.wall / peers[number].wall:9.2f}" if peers else ""
        print(f"{label + (', again' if number else ''):34}{cost}{ratio}", flush=True)


if __name__ == "__main__":
    main()
