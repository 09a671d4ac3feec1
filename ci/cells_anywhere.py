#!/usr/bin/env python3
"""Run 24 cells on four kinds of machines, and compare the merged report with one machine's, except times.

    .venv/bin/python ci/cells_anywhere.py [--output FOLDER]

It needs Slurm (slurm-wlm) and root, a Docker engine with our images of Python 3.11 for both architectures (`wheelproof
matrix image --platform x86_64,aarch64 --python 3.11`), qemu registered for aarch64, and Debian 12, with the same Python
as the images. The packages are a small torch on an index on this host.

1. One machine runs all cells in containers.
2. The files of `wheelproof matrix plan` run them apart: six by the script for a shell, two at a time; six as an array
   of a real Slurm; six as the pods of an indexed Job, whose scripts run by hand with the paths of this host, since
   there is no cluster; and the six for aarch64 in emulated containers. Three of the pods are killed in their last step.
3. Missing cells are named. Another machine, with only a copy of the records, runs the three.
4. The merged report is compared with the one machine's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.matrix import torch_wheel, without_times  # noqa: E402  # after the path
from tests.support.range_server import RangeServer  # noqa: E402  # after the path
from tests.support.simple_index import simple_index  # noqa: E402  # after the path
from tests.support.slurm import Slurm, cluster  # noqa: E402  # after the path

PYTHON = "3.11"
KILLED = tuple(f"x86_64-py3.11-torch2.11.0-k{number}" for number in (4, 5, 6))
SHELL, SLURM, KUBERNETES, CONTAINERS = "*-s?", "*-a?", "*-k?", "aarch64-*"
TIMEOUT = 900.0  # seconds for one part
MATRIX = """\
[cell]
accelerator = "cuda"
import = ["torch.version"]
deadline = 600

[[override]]
select = "*-s2"
command = "echo this cell fails; exit 1"

[[override]]
select = "*-a3"
accelerator = "cpu"

[[override]]
select = "*-k2"
import = ["torch.nothing"]

[[override]]
select = "aarch64-*-c5"
command = "uname -m"

[[override]]
select = "*-k[456]"
command = "test ! -e {project}/.hang || sleep 600"
""" + "".join(
    f'\n[[include]]\nplatform = "{platform}"\npython = "{PYTHON}"\ntorch = "2.11.0"\nname = "{kind}{number}"\n'
    for platform, kind in (("x86_64", "s"), ("x86_64", "a"), ("x86_64", "k"), ("aarch64", "c"))
    for number in range(1, 7)
)


@dataclass(frozen=True)
class Machine:
    """A machine: a folder with the project, and its own caches."""

    folder: Path
    index: str

    @classmethod
    def create(cls, folder: Path, index: str) -> Machine:
        """A machine that has the matrix, and wheelproof on PATH."""
        (folder / "ci").mkdir(parents=True)
        (folder / ".bin").mkdir()
        (folder / ".tmp").mkdir()
        (folder / "ci" / "matrix.toml").write_text(MATRIX)
        (folder / ".bin" / "wheelproof").symlink_to(Path(sys.executable).with_name("wheelproof"))
        return cls(folder, index)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of its processes; Debian's Python comes first."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "WHEELPROOF_"))
        }
        return kept | {
            "UV_DEFAULT_INDEX": self.index,
            "UV_CACHE_DIR": str(self.folder / ".uv-cache"),
            "WHEELPROOF_CACHE_DIR": str(self.folder / ".cache"),
            "TMPDIR": str(self.folder / ".tmp"),
            "PATH": os.pathsep.join([str(self.folder / ".bin"), "/usr/bin", os.environ["PATH"]]),
        }

    def run(self, *command: str, expected: Sequence[int] = (0,), more: Mapping[str, str] | None = None) -> str:
        """The standard output of a command that ends with one of these statuses."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ | {**(more or {})}, capture_output=True, text=True, check=False
        )
        if done.returncode not in expected:
            raise SystemExit(
                f"{command} exited with status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            )
        return done.stdout

    def matrix(self, command: str, *arguments: str, expected: Sequence[int] = (0,)) -> Any:
        """The report of a command of `wheelproof matrix`."""
        options = ("--matrix", "ci/matrix.toml", "--format", "json", *arguments)
        return json.loads(self.run("wheelproof", "matrix", command, *options, expected=expected))

    def plan(self, engine: str, only: str, *arguments: str) -> str:
        """The file for an engine, with these cells."""
        options = ("--matrix", "ci/matrix.toml", "--executor", "venv", "--only", only, *arguments)
        return self.run("wheelproof", "matrix", "plan", "--to", engine, *options)

    @property
    def records(self) -> set[str]:
        """The cells that have a record."""
        return {path.stem for path in (self.folder / "wheelproof-records").glob("*.json")}


def by_shell(machine: Machine) -> None:
    """The script for a shell, two cells at a time."""
    (machine.folder / ".bin" / "cells.sh").write_text(machine.plan("shell", SHELL))
    machine.run("sh", ".bin/cells.sh", "2", expected=(1,))  # one of them fails


def by_slurm(machine: Machine, slurm: Slurm) -> None:
    """The array, on the nodes of a cluster, then the merge that depends on it."""
    (machine.folder / ".bin" / "cells.sbatch").write_text(machine.plan("slurm", SLURM))
    environ = {"SLURM_CONF": str(slurm.folder / "slurm.conf")}
    tested = subprocess.run(
        ["sbatch", "--test-only", ".bin/cells.sbatch"],
        cwd=machine.folder,
        env=machine.environ | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    print("  ", tested.stderr.strip())
    output = machine.run("sh", ".bin/cells.sbatch", more=environ)
    slurm.wait(output.split()[-1])  # the merge, which begins after the last cell
    (log,) = machine.folder.glob("wheelproof-merge-*.log")
    print("   the merge said:", next(line for line in log.read_text().splitlines() if "cells pass" in line).strip())


def by_kubernetes(machine: Machine) -> None:
    """The pods of the Job, by hand: their own scripts with the paths of this host. Three are killed at the end."""
    documents = [*yaml.safe_load_all(machine.plan("kubernetes", KUBERNETES))]
    (held,) = [each["data"]["matrix.json"] for each in documents if each["kind"] == "ConfigMap"]
    (machine.folder / ".bin" / "cells.json").write_text(held)
    jobs = [each["spec"] for each in documents if each["kind"] == "Job" and "completions" in each["spec"]]
    (machine.folder / ".hang").touch()
    for job in jobs:
        (container,) = job["template"]["spec"]["containers"]
        script = here(container["args"][0], machine)
        pods = [start([*container["command"], script], machine, str(index)) for index in range(job["completions"])]
        wait_for_commands(machine)
        for index, pod in enumerate(pods):
            if index >= len(pods) - len(KILLED):
                os.killpg(pod.pid, signal.SIGKILL)
            print(f"   pod {index} exited with status {pod.wait(TIMEOUT)}")
    (machine.folder / ".hang").unlink()


def here(script: str, machine: Machine) -> str:
    """The script of a pod on this host: wheelproof is installed, and volumes are folders."""
    lines = [line for line in script.splitlines() if "-m venv" not in line and "bin/pip" not in line]
    paths = {
        "/tmp/wheelproof/bin/wheelproof": "wheelproof",  # noqa: S108  # of the container
        "/cells/matrix.json": ".bin/cells.json",
        "/records": str(machine.folder / "wheelproof-records"),
    }
    text = "\n".join(lines)
    for inside, outside in paths.items():
        text = text.replace(inside, outside)
    return text


def start(command: Sequence[str], machine: Machine, index: str) -> subprocess.Popen[bytes]:
    """The pod with this index, as a group of processes."""
    return subprocess.Popen(
        command,
        cwd=machine.folder,
        env=machine.environ | {"JOB_COMPLETION_INDEX": index},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for_commands(machine: Machine) -> None:
    """Wait until the cells that are to be killed are in their last step."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        at = {path.parent.name for path in (machine.folder / ".cache").glob("matrix/work/*/*/command.out")}
        if at >= set(KILLED):
            return
        time.sleep(1)
    raise SystemExit(f"only {sorted(at)} came to their command")


def in_containers(machine: Machine) -> None:
    """The cells of the other architecture, emulated."""
    options = ("--only", CONTAINERS, "--records", "wheelproof-records", "--jobs", "2")
    machine.matrix("run", *options, expected=(1,))  # their wheel is made for pages of 4 KiB


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Print a step and its duration."""
    started = time.monotonic()
    print(what, flush=True)
    yield
    print(f"   {time.monotonic() - started:.0f} s", flush=True)


def undecided(report: Any) -> set[str]:
    """The cells that are undecided."""
    return {subject["id"] for subject in report["subjects"] if subject["verdict"] == "undecided"}


def kept(report: Any) -> set[str]:
    """The cells that were not run again."""
    return {s["id"] for s in report["subjects"] if all(step["kept"] for step in s["facts"]["steps"])}


def comparable(report: Any) -> Any:
    """The report without times and paths of logs; in a traceback our script has another path than in a container."""
    outside = json.dumps(str(ROOT / "tools" / "wheelproof" / "matrix" / "inside"))[1:-1]
    return without_times(json.loads(json.dumps(report).replace(outside, "/wheelproof/inside")))


def compare(folder: Path, index: str, slurm: Slurm) -> bool:
    """Run all of it; whether the reports are equal."""
    alone, apart = (Machine.create(folder / name, index) for name in ("alone", "apart"))
    with timed("one machine, 24 cells in containers"):
        whole = alone.matrix("run", "--jobs", "2", expected=(1,))
    (folder / "whole.json").write_text(json.dumps(whole))
    verdicts = [subject["verdict"] for subject in whole["subjects"]]
    print("  ", {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))})
    with timed("six by the script for a shell"):
        by_shell(apart)
    with timed("six by an array of Slurm"):
        by_slurm(apart, slurm)
    with timed("six as pods, three of them killed"):
        by_kubernetes(apart)
    with timed("six in emulated containers"):
        in_containers(apart)
    missing = undecided(apart.matrix("merge", "wheelproof-records", expected=(1,)))
    print(f"   {len(apart.records)} records; the merge misses {', '.join(sorted(missing))}")
    elsewhere = Machine.create(folder / "elsewhere", index)
    shutil.copytree(apart.folder / "wheelproof-records", elsewhere.folder / "wheelproof-records")
    with timed("resumed elsewhere"):
        resumed = elsewhere.matrix("run", "--records", "wheelproof-records", expected=(1,))
    again = {subject["id"] for subject in resumed["subjects"]} - kept(resumed)
    merged = elsewhere.matrix("merge", "wheelproof-records", expected=(1,))
    same = comparable(merged) == comparable(whole)
    print(f"   run again: {', '.join(sorted(again))}")
    print(f"the merged report of {len(merged['subjects'])} cells is {'equal' if same else 'NOT equal'}, but for times")
    (folder / "merged.json").write_text(json.dumps(merged))
    return same and missing == set(KILLED) and again == set(KILLED)


def main() -> int:
    """The exit code: 0 if the merged report equals that of one machine."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, help="a new folder that is kept (default: a temporary one)")
    folder = parser.parse_args().output
    wheels = [torch_wheel("cuda", machine=machine) for machine in ("x86_64", "aarch64")]
    with contextlib.ExitStack() as leaving:
        work = folder or Path(leaving.enter_context(tempfile.TemporaryDirectory(prefix="cells-")))
        work.mkdir(parents=True, exist_ok=True)
        server = leaving.enter_context(RangeServer(dict(simple_index(*wheels))))
        spool = Path(leaving.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        slurm = leaving.enter_context(cluster(spool, 2))
        return 0 if compare(work.resolve(), server.url("/simple/"), slurm) else 1


if __name__ == "__main__":
    sys.exit(main())
