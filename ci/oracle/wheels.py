"""Which wheel an installer takes on a machine: pip itself is asked, and downloads it whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MACHINES = ("x86_64", "aarch64")
_GLIBC_MINORS = range(39, 4, -1)  # Ubuntu 24.04 and older
_OLD_POLICIES = ("manylinux2014", "manylinux2010", "manylinux1", "linux")
_SECONDS = 1200


@dataclass(frozen=True)
class Downloaded:
    """The wheel that pip downloaded; ``path`` is None, and ``reason`` says why, if there isn't one."""

    path: Path | None
    reason: str = ""


def download(package: str, machine: str, folder: Path) -> Downloaded:
    """Have pip download the newest wheel of a package for CPython 3.12 on Linux of this machine."""
    run = _pip(
        "download",
        "--no-deps",
        "--only-binary",
        ":all:",
        *_target(machine),
        "--no-cache-dir",
        "--progress-bar",
        "off",
        "-d",
        str(folder),
        package,
    )
    wheels = sorted(folder.glob("*.whl"))
    if run.returncode or not wheels:
        errors = [line for line in run.stderr.splitlines() if line.startswith("ERROR")]
        return Downloaded(None, errors[0] if errors else run.stderr.strip()[-300:])
    return Downloaded(wheels[0])


def newest_source(package: str) -> str:
    """The newest release with a source archive; empty if there isn't one."""
    run = _pip("index", "versions", "--json", "--no-binary", ":all:", package)
    return str(json.loads(run.stdout).get("versions", [""])[0]) if run.returncode == 0 else ""


def _target(machine: str) -> list[str]:
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS]
    platforms += [f"{policy}_{machine}" for policy in _OLD_POLICIES]
    options = ["--python-version", "3.12", "--implementation", "cp", "--abi", "cp312", "--abi", "abi3", "--abi", "none"]
    return options + [word for platform in platforms for word in ("--platform", platform)]


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments, "--no-input"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS, env=dict(os.environ))
