"""The system requirements of lanes, and their Debian packages. Imports only the standard library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass

TIMEOUT = 600.0  # seconds for apt-get


@dataclass(frozen=True)
class Need:
    """Programs, of which any name of a group will do, and the packages of Debian and Ubuntu that bring them."""

    programs: tuple[tuple[str, ...], ...]
    packages: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The programs that are not on the search path."""
        return [names[0] for names in self.programs if not any(map(shutil.which, names))]


def _need(programs: str, packages: str) -> Need:
    return Need(tuple(tuple(word.split("|")) for word in programs.split()), tuple(packages.split()))


NEEDS = {
    "compiler": _need("gcc cc git ps", "gcc libc6-dev git procps"),
    "browser": _need("chromium|chromium-browser|google-chrome|google-chrome-stable", "chromium"),
    "shells": _need("bash zsh fish mandoc man", "zsh fish mandoc man-db"),
    "matrix": _need(
        "docker dockerd containerd mmdebstrap qemu-aarch64-static|qemu-x86_64-static update-binfmts",
        "docker.io qemu-user-static binfmt-support mmdebstrap",
    ),
    "slurm": _need("slurmctld slurmd sbatch", "slurm-wlm"),
}
"""By lane of the tests (a marker of pytest, or ``matrix`` for its docker and emulation)."""


def apt_line(lane: str) -> str:
    """The command that installs the packages of a lane."""
    return f"apt-get install {' '.join(NEEDS[lane].packages)}"


def reason(lane: str) -> str:
    """Why a lane cannot run on this host, "" if it has all that the lane needs."""
    missing = NEEDS[lane].missing if lane in NEEDS else []
    return f"{', '.join(missing)} not installed (Debian and Ubuntu: {apt_line(lane)})" if missing else ""


def install(lanes: Iterable[str]) -> None:
    """Install the missing packages of these lanes. A failure is shown; the lane then reports that it did not run."""
    packages = sorted({package for lane in lanes if reason(lane) for package in NEEDS[lane].packages})
    if not packages:
        return
    if os.getuid() or not shutil.which("apt-get"):
        print(f"not installed, which needs root and apt-get: {' '.join(packages)}", file=sys.stderr, flush=True)
        return
    print(f"\n=== apt-get install {' '.join(packages)} ===", file=sys.stderr, flush=True)
    options = ["-qq", "-y", "--no-install-recommends"]
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", *options, *packages]):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        quiet: dict[str, int] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        try:
            done = subprocess.run(command, env=environment, check=False, timeout=TIMEOUT, **quiet)  # type: ignore[call-overload]  # mypy knows no ** here
        except subprocess.TimeoutExpired:
            print(f"`{' '.join(command)}` took more than {TIMEOUT:.0f} s", file=sys.stderr, flush=True)
            return
        if done.returncode:
            print(f"`{' '.join(command)}` failed", file=sys.stderr, flush=True)
            return
