"""What ``wheelproof stack`` is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheel_checks.sources.uv.resolver import DEFAULT_TIMEOUT
from wheel_checks.targets.target import Target
from wheelproof.stacks.locks import LockRequest
from wheelproof.wheels.asked import Asked

if TYPE_CHECKING:  # few packages have variants, and few runs follow links
    from wheel_checks.targets.variant_machine import Machine


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What is resolved, for which targets and GPUs (product names), and how the resolver is to be run.

    ``machines`` choose among variants, where packages have some. ``timeout`` is in seconds, for each run of the
    resolver. ``lock`` is the lock file whose packages are judged: then nothing is resolved.
    """

    asked: Asked
    targets: tuple[Target, ...]
    gpus: tuple[str, ...] = ()
    pre: bool = False
    offline: bool = False
    timeout: float = DEFAULT_TIMEOUT
    machines: tuple[Machine, ...] = ()
    lock: LockRequest | None = None
