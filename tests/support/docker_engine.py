"""The Docker engine of this host, for tests marked ``docker`` and ``emulation``, and the cells that they run."""

from __future__ import annotations

import functools
import platform

from wheelproof.matrix.executors.docker.emulation import DOCKER_NAMES
from wheelproof.matrix.executors.docker.executor import DockerExecutor
from wheelproof.matrix.model import Cell

HERE = platform.machine()
ELSEWHERE = next(machine for machine in DOCKER_NAMES if machine != HERE)
NATIVE = Cell("native", HERE, "3.11", "2.11.0")
EMULATED = Cell("emulated", ELSEWHERE, "3.11", "2.11.0")


@functools.cache
def runs_natively() -> bool:
    """True when containers of this host's architecture can run, from our image."""
    return DockerExecutor().blocker(NATIVE) is None


@functools.cache
def runs_emulated() -> bool:
    """True when containers of the other architecture can run, from our image."""
    return DockerExecutor().blocker(EMULATED) is None
