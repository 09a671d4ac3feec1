"""The request of ``wheelproof stack``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheel_checks.formats.lock.model import PIXI, UV
from wheel_checks.sources.uv.resolver import DEFAULT_TIMEOUT
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheel_checks.targets.target import Target, parse_targets
from wheelproof.stacks.hashed import requires_hashes
from wheelproof.stacks.inputs import read_inputs
from wheelproof.stacks.locks import LockRequest, targets_of
from wheelproof.wheels.asked import Requested

if TYPE_CHECKING:  # few packages have variants, and few runs follow links
    from wheel_checks.targets.variant_machine import Machine


@dataclass(frozen=True, slots=True)
class StackRequest:
    """A request: requirements, targets, GPUs (product names), and options of the resolver.

    ``machines`` choose among variants, where packages have some. ``timeout`` is in seconds, for each run of the
    resolver. ``lock`` is the lock file whose packages are judged: then nothing is resolved.
    """

    requested: Requested
    targets: tuple[Target, ...]
    gpus: tuple[str, ...] = ()
    pre: bool = False
    offline: bool = False
    timeout: float = DEFAULT_TIMEOUT
    machines: tuple[Machine, ...] = ()
    lock: LockRequest | None = None

    @property
    def installer(self) -> str:
        """The installer that is meant, "pip" or "uv"; "" if it is not known."""
        if self.lock is not None:
            return UV if self.lock.lock.format in (UV, PIXI) else ""
        is_for_pip = requires_hashes(self.requested) and not self.requested.declared.compiled_by_uv
        return "pip" if is_for_pip else ""


def read_request(
    texts: Sequence[str],
    requirement_files: Sequence[str],
    chosen: ExtrasAndGroups,
    platforms: Sequence[str],
    pythons: Sequence[str],
    *,
    gpus: tuple[str, ...],
    machines: tuple[Machine, ...],
    offline: bool,
    timeout: float | None,
    pre: bool = False,
) -> StackRequest:
    """The request of a user. Without a target: this machine, or the targets of a lock.

    Raises UsageError and FormatError, each with one sentence.
    """
    requested, lock = read_inputs(texts, requirement_files, chosen)
    targets = targets_of(lock, platforms, pythons) if lock else parse_targets(platforms, pythons)
    return StackRequest(requested, targets, gpus, pre, offline, timeout or DEFAULT_TIMEOUT, machines, lock)
