"""A Docker engine for the tests: a running one, else a new one, which is stopped at the end.

    with docker_engine() as obstacle:      # "" when an engine answers, else why none does
        ...

Only root can start one, and nothing is installed here. The engine gets no network (no bridge, no rules of iptables),
since our containers have none; so it also starts if those are forbidden. Only the standard library is imported here.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

TIMEOUT = 120.0  # seconds for an engine to answer, and to stop; the machine may be busy
BINFMT = Path("/proc/sys/fs/binfmt_misc")
LAST_LINES = 3


@contextlib.contextmanager
def docker_engine(options: Sequence[str] = ()) -> Iterator[str]:
    """An engine for as long as this lasts; yields why there isn't one, "" when there is. ``options`` are dockerd's."""
    if answers():
        yield ""
        return
    missing = [name for name in ("docker", "dockerd", "containerd") if not shutil.which(name)]
    if missing:
        yield f"{', '.join(missing)} not installed (on Debian and Ubuntu: apt-get install docker.io)"
    elif os.getuid():
        yield "no Docker engine answers, and only root can start one"
    else:
        command = ["dockerd", "--bridge=none", "--iptables=false", *options]
        with tempfile.TemporaryFile() as log, _started(command, log) as engine:
            yield _awaited(engine, log)


def answers() -> bool:
    """True when an engine answers where DOCKER_HOST says, or at the usual place."""
    ask = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        return subprocess.run(ask, capture_output=True, check=False, timeout=TIMEOUT).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@contextlib.contextmanager
def _started(command: Sequence[str], log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The engine, in its own session, so that a Ctrl-C reaches it last."""
    engine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        yield engine
    finally:
        engine.terminate()  # it ends its containers, and containerd
        try:
            engine.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            engine.kill()
            engine.wait()


def _awaited(engine: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Wait until the engine answers; why it does not, "" when it does."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if answers():
            return ""
        if engine.poll() is not None:
            break
        time.sleep(0.2)
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()[-LAST_LINES:]
    return f"dockerd does not start: {' '.join(lines)}"


def register_emulation() -> str:
    """Let the kernel run programs of the other architecture by qemu; why that is not possible, "" when it is."""
    name = {"x86_64": "qemu-aarch64", "aarch64": "qemu-x86_64"}[platform.machine()]
    if not shutil.which("update-binfmts"):
        return "no emulator (on Debian and Ubuntu: apt-get install qemu-user-static binfmt-support)"
    commands = [["update-binfmts", "--enable", name]]
    if not (BINFMT / "status").exists():
        commands.insert(0, ["mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)])
    for command in commands:
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode and not (BINFMT / name).exists():
            return f"`{' '.join(command)}` failed: {done.stderr.decode(errors='replace').strip()}"
    return "" if (BINFMT / name).exists() else f"the kernel does not list {name}"
