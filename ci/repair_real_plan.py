"""Plan ``wheelproof doctor --fix`` on the configured index, for vllm with a CPU torch build.

    python ci/repair_real_plan.py                          # the latest vllm; installs nothing, downloads some megabytes
    python ci/repair_real_plan.py 'vllm==0.20.0' 2.13.0    # this requirement, and a CPU build of this torch release

The environment has the metadata of the requirement's whole resolution, from the index, and no files; its torch and
companions are CPU builds. The host is an H200 with driver 580 (CUDA 13.0).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from uv import find_uv_bin

from tests.support.hosts import healthy
from wheel_checks.facts.host.software import Installed, Interpreter
from wheel_checks.fixes.goal import Goal
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheelproof.doctor.probes.installation.installed import read_installed_facts
from wheelproof.doctor.probes.python import read_interpreter
from wheelproof.doctor.repair.graph import Graph
from wheelproof.doctor.repair.installed import read_contents
from wheelproof.doctor.repair.offers import Offers
from wheelproof.doctor.repair.planner import Planner
from wheelproof.doctor.repair.solving import NoPlanError

CUDA = ("nvidia-", "cuda-", "triton")
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)", re.MULTILINE)


def describe(site: Path, name: str, version: str, requires: list[str], *, cpu: bool) -> None:
    """The metadata of a distribution, and a version.py that says how it is built."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n{folder.name}/RECORD,,\n")
    (folder / "INSTALLER").write_text("uv\n")
    if cpu:
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("")
        (site / name / "version.py").write_text(f"__version__ = {version!r}\ncuda = None\nhip = None\nxpu = None\n")


def main(requirement: str = "vllm", release: str = "") -> int:
    """Make the environment, plan, and print the plan and its duration."""
    with tempfile.TemporaryDirectory() as folder, HttpClient() as client:
        subprocess.run([find_uv_bin(), "venv", "-q", "--python", sys.executable, f"{folder}/env"], check=True)
        interpreter = read_interpreter(python=f"{folder}/env", environ=os.environ)
        if not isinstance(interpreter, Interpreter):
            raise SystemExit(interpreter.reason)
        offers = Offers(client, configured_indexes(os.environ, Path(folder)), interpreter)
        compiled = subprocess.run(
            [find_uv_bin(), "pip", "compile", "-q", "-", "--no-header", "--no-annotate", "--only-binary", ":all:"],
            input=requirement, text=True, capture_output=True, check=True, cwd=folder,
        )  # fmt: skip
        pins = dict(PIN.findall(compiled.stdout))
        print(f"{requirement}: {len(pins)} distributions, vllm {pins.get('vllm')}, torch {pins['torch']}")
        torch = next(one for one in offers.versions("torch") if str(one) == pins["torch"])
        of_cuda = {one.name for one in offers.read("torch", torch).requirements if one.name.startswith(CUDA)}
        for name, version in pins.items():
            if name in of_cuda:
                continue  # a CPU build requires none of them
            found = next(one for one in offers.versions(name) if str(one) == version)
            requires = [str(one) for one in offers.read(name, found).requirements]
            cpu = name in ("torch", "torchvision", "torchaudio")
            if name == "torch":
                requires = [one for one in requires if not one.startswith(CUDA)]
            local = f"{release or version}+cpu" if name == "torch" else f"{version}+cpu" if cpu else version
            describe(Path(interpreter.purelib), name, local, requires, cpu=cpu)
        facts = replace(healthy(), interpreter=interpreter, indexes=())
        installed = read_installed_facts(interpreter)
        if not isinstance(installed, Installed):
            raise SystemExit("nothing is installed")
        contents = read_contents(interpreter)
        started = time.perf_counter()
        graph = Graph(contents.own, offers.target.markers())
        planner = Planner(replace(facts, installed=installed), contents, graph, offers, os.environ)
        try:
            plan = planner.plan(Goal(fitting_torch=True))
        except NoPlanError as error:
            print(f"no plan: {error}", *(f"    {reason}" for reason in error.reasons), sep="\n")
            return 1
        print(*plan.lines(), f"planned in {time.perf_counter() - started:.1f} s", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
