"""A real Slurm on this host: one controller, and a slurmd for each simulated node.

with cluster(tmp_path, nodes=4) as slurm:
    job = slurm.run("sbatch", "--parsable", "--nodes=4", "job.sbatch").stdout.strip()
    assert slurm.wait(job) == 0
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.patience import PATIENCE

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo")

ENDED = ("COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT", "CANCELLED", "BOOT_FAIL", "OUT_OF_MEMORY")

# One process per node replaces a machine: no accounting, no cgroups, no munge, all for one user.
CONFIGURATION = """\
ClusterName=wheelproof
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout={missed_after}
KillWait=5
"""


def is_there() -> bool:
    """Whether Slurm is installed, and this user may start its daemons."""
    return all(map(shutil.which, PROGRAMS)) and os.geteuid() == 0


@dataclass
class Slurm:
    """A running cluster, configured in ``folder``."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm's as a user would, with these variables, too."""
        return subprocess.run(
            command,
            cwd=cwd or self.folder,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def wait(self, job: str) -> int:
        """The exit code of a job, soon after its end; ``sbatch --wait`` looks after 2, 10, 42, 74 ... seconds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            shown = dict(re.findall(r"(\w+)=(\S+)", self.run("scontrol", "--oneliner", "show", "job", job).stdout))
            if shown.get("JobState") in ENDED:
                return int(shown["ExitCode"].partition(":")[0])
            time.sleep(0.3)
        raise AssertionError(f"the job did not end: {shown}")

    def start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("wb") as log:
            self.daemons[name] = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def wait_until_idle(self, nodes: int) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            states = self.run("sinfo", "--noheader", "--Node", "--format=%T").stdout.split()
            if states == ["idle"] * nodes:
                return
            if any(daemon.poll() is not None for daemon in self.daemons.values()):
                break
            time.sleep(0.3)
        logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.log")))
        raise AssertionError(f"Slurm is not ready: {states}\n{logs}")


@contextlib.contextmanager
def cluster(folder: Path, nodes: int, missed_after: int = 30) -> Iterator[Slurm]:
    """A cluster of node1, node2, ... in the partition ``test``; everything is ended and waited for at the end.

    A node that does not answer for ``missed_after`` seconds counts as lost.
    """
    slurm = Slurm(folder)
    (folder / "state").mkdir()
    ports = _free_ports(nodes + 1)
    host = socket.gethostname().partition(".")[0]
    lines = [CONFIGURATION.format(host=host, ports=ports, folder=folder, missed_after=missed_after)]
    for number in range(1, nodes + 1):
        (folder / f"spool-node{number}").mkdir()
        lines.append(f"NodeName=node{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[number]} CPUs=2\n")
    lines.append("PartitionName=test Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4\n")
    (folder / "slurm.conf").write_text("".join(lines))
    (folder / "cgroup.conf").write_text("CgroupPlugin=autodetect\n")
    try:
        slurm.start("slurmctld", "slurmctld", "-D")
        for number in range(1, nodes + 1):
            slurm.start(f"node{number}", "slurmd", "-D", "-N", f"node{number}")
        slurm.wait_until_idle(nodes)
        yield slurm
    finally:
        for daemon in slurm.daemons.values():
            daemon.terminate()
        for daemon in slurm.daemons.values():
            try:
                daemon.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
