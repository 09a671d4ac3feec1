"""A target: one Python on one Linux platform, described without being there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """``python`` is (major, minor), ``free_threaded`` the "t" builds; ``machine`` is "x86_64" or "aarch64";
    ``glibc`` the newest glibc (major, minor) whose manylinux wheels the target accepts.
    """

    python: tuple[int, int]
    machine: str
    glibc: tuple[int, int]
    free_threaded: bool = False
