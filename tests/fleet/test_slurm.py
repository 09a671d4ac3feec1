"""``ci/slurm/doctor.sbatch`` on a real Slurm of four simulated nodes."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleets import with_driver
from tests.support.hosts import hgx
from tests.support.slurm import Slurm, cluster
from wheel_checks.facts.host.codec import to_json

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
SBATCH = str(ROOT / "ci/slurm/doctor.sbatch")
NODES = [f"node{number}" for number in range(1, 5)]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, cluster(Path(folder), len(NODES)) as running:
        yield running


def command_on_nodes(folder: Path, *, dead: str = "") -> str:
    """A wheelproof that reads the facts of a node from FOLDER/NODE.json; the node ``dead`` takes it down."""
    wheelproof = f"{shlex.quote(sys.executable)} -m wheelproof"
    script = folder / "wheelproof-of-the-node"
    script.write_text(
        "#!/bin/bash\n"
        f'if [ "$1" = doctor ] && [ "$SLURMD_NODENAME" = "{dead}" ]; then kill -KILL $$; fi\n'
        f'if [ "$1" = doctor ]; then exec {wheelproof} "$@" --facts "{folder}/$SLURMD_NODENAME.json"; fi\n'
        f'exec {wheelproof} "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


def submit(slurm: Slurm, folder: Path, **variables: str) -> tuple[int, str]:
    """Run the job on all nodes, in ``folder``; its exit code and output."""
    log = folder / "job.log"
    submitted = slurm.run(
        *("sbatch", "--parsable", "--nodes=4", f"--output={log}", SBATCH),
        cwd=folder,
        PYTHONPATH=os.pathsep.join([str(ROOT / "tools"), str(ROOT)]),
        **variables,
    )
    assert submitted.returncode == 0, submitted.stderr
    return slurm.wait(submitted.stdout.strip()), log.read_text()


def test_the_node_that_differs_is_named_first(slurm: Slurm, tmp_path: Path) -> None:
    for node in NODES:
        facts = with_driver(hgx(), "570.86.15") if node == "node3" else hgx()
        (tmp_path / f"{node}.json").write_text(json.dumps(to_json(facts)))

    status, log = submit(
        slurm, tmp_path, DOCTOR_COMMAND=command_on_nodes(tmp_path), DOCTOR_REPORTS=str(tmp_path / "reports")
    )

    lines = log.splitlines()
    merged = next(number for number, line in enumerate(lines) if "4 hosts: " in line and "(" in line)
    assert "4 hosts: node3 differs in driver" in lines[merged]
    assert any("driver:  node3: 570.86.15; 3 hosts 580.159.04" in line for line in lines)
    assert status == 1, log
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == [
        "fleet.html",
        *(f"{node}.json" for node in NODES),
    ]


def test_a_doctor_that_dies_is_named_and_the_others_report(slurm: Slurm, tmp_path: Path) -> None:
    for node in NODES:
        (tmp_path / f"{node}.json").write_text(json.dumps(to_json(hgx())))

    status, log = submit(slurm, tmp_path, DOCTOR_COMMAND=command_on_nodes(tmp_path, dead="node2"))

    assert "UNDECIDED  3 hosts: no report from node2" in log
    assert "node2: the doctor exited with status 137" in log
    assert status == 3, log


def test_a_node_that_is_lost_is_named_and_the_others_report(tmp_path: Path) -> None:
    """node2 loses power in the middle: its step ends, now or when Slurm misses it, and the job continues."""
    for node in NODES:
        (tmp_path / f"{node}.json").write_text(json.dumps(to_json(hgx())))
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        cluster(Path(folder), len(NODES), missed_after=10) as slurm,
    ):
        power_off = tmp_path / "power-off"
        power_off.write_text(
            "#!/bin/bash\n"
            "parent() { awk '{print $4}' /proc/$1/stat; }\n"  # this script < timeout < the step's bash < slurmstepd
            f'kill -KILL $(cat "{folder}/slurmd-node2.pid") $(parent $(parent $(parent $PPID))) 0\n'
        )
        power_off.chmod(0o755)
        command = Path(command_on_nodes(tmp_path))
        command.write_text(
            command.read_text().replace(
                "#!/bin/bash\n",
                f'#!/bin/bash\nif [ "$1 $SLURMD_NODENAME" = "doctor node2" ]; then "{power_off}"; fi\n',
            )
        )

        status, log = submit(slurm, tmp_path, DOCTOR_COMMAND=str(command))

    assert "UNDECIDED  3 hosts: no report from node2" in log, log
    assert status == 3


def test_real_doctors_agree_about_one_machine(slurm: Slurm, tmp_path: Path) -> None:
    status, log = submit(slurm, tmp_path, DOCTOR_COMMAND=f"{sys.executable} -m wheelproof")

    assert "4 hosts: 4 hosts fail" in log, log  # the Python of this host has no torch
    assert status == 1
    (reports,) = tmp_path.glob("wheelproof-doctor-*")
    assert sorted(path.name for path in reports.iterdir()) == ["fleet.html", *(f"{node}.json" for node in NODES)]


def test_the_names_of_all_nodes_as_the_manual_asks_for_them(slurm: Slurm) -> None:
    listed = slurm.run("bash", "-c", "sinfo --noheader --Node --format=%N | sort -u | paste -sd,")
    assert listed.stdout == "node1,node2,node3,node4\n"
