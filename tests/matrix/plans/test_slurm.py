"""The plan for Slurm on a real Slurm of two simulated nodes: cells as tasks of an array, then the merge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.matrix import HERE, PYTHON, MatrixWorld, torch_wheel, without_times
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.slurm import Slurm, cluster

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).parents[3]
MATRIX = '[cell]\naccelerator = "cpu"\n[[override]]\nselect = "*-b"\ncommand = "exit 1"\n' + "".join(
    f'[[include]]\nplatform = "{HERE}"\npython = "{PYTHON}"\ntorch = "2.11.0"\nname = "{name}"\n' for name in "abc"
)


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, cluster(Path(folder), 2) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path) -> Iterator[MatrixWorld]:
    with RangeServer(dict(simple_index(torch_wheel("cpu")))) as server:
        world = MatrixWorld.create(tmp_path, server)
        (tmp_path / "matrix.toml").write_text(MATRIX)
        path = os.pathsep.join([str(Path(sys.executable).parent), world.environ["PATH"]])
        yield MatrixWorld(tmp_path, world.environ | {"PATH": path})


def run(world: MatrixWorld, slurm: Slurm, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {**world.environ, "SLURM_CONF": str(slurm.folder / "slurm.conf")}
    done = subprocess.run(command, cwd=world.folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_an_array_runs_the_cells_and_a_job_behind_it_merges(slurm: Slurm, world: MatrixWorld) -> None:
    plan = ("wheelproof", "matrix", "plan", "--to", "slurm", "--matrix", "matrix.toml", "--output", "cells.sbatch")
    run(world, slurm, *plan)
    tested = run(world, slurm, "sbatch", "--test-only", "cells.sbatch")
    assert "to start at" in tested.stderr

    submitted = run(world, slurm, "sh", "cells.sbatch")
    merge = submitted.stdout.split()[-1]
    assert slurm.wait(merge) == 1
    (log,) = world.folder.glob("wheelproof-merge-*.log")
    assert "2 of 3 cells pass" in log.read_text()

    records = world.folder / "wheelproof-records"
    assert len([*records.glob("*.json")]) == 3
    # A record has the results of `verify` for all rules; the run alone selects those of the matrix
    whole = world.run("--work", "alone", status=1)
    options = ("--matrix", str(world.folder / "matrix.toml"), "--select", "MTX", "--format", "json")
    merged = subprocess.run(
        ["wheelproof", "matrix", "merge", "wheelproof-records", *options],
        cwd=world.folder,
        env=world.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    alone, apart = (without_times(report) for report in (whole, json.loads(merged.stdout)))
    for report in (alone, apart):
        for subject in report["subjects"]:
            del subject["record"]
    assert apart == alone


def test_the_ready_file_is_one_that_slurm_takes(slurm: Slurm, world: MatrixWorld) -> None:
    tested = run(world, slurm, "sbatch", "--test-only", str(ROOT / "docs/adopting/slurm.sh"))
    assert "to start at" in tested.stderr
