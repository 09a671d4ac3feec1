"""Differences between two architectures of one release that are as they should be, and sizes that are not. Pure.

The libraries that only one architecture has are data: ``data/architecture_libraries.toml``.
"""

import re
from functools import cache

from wheel_checks.data import load
from wheel_checks.facts.difference.wheels import Side
from wheel_checks.facts.links.known_libraries import SYSTEM, provider_of
from wheel_checks.facts.wheel.member_roles import role_of

OUTLIER = 2.0
"""The ratio of sizes from which on something is missing or double. Across architectures the libraries of torch 2.11.0
differ by up to 1.7 (libtorch_cpu.so, November 2026)."""

SMALLEST_OUTLIER = 1 << 20
"""Bytes by which sizes must differ to count: on aarch64 alignment to 64 KiB alone adds a quarter of a megabyte."""

_LONGEST = 1_000  # characters of a name that are matched; no file system takes longer names


@cache
def _rows() -> list[tuple[str, re.Pattern[str], str]]:
    rows = load("architecture_libraries")["library"]
    return [(row["machine"], re.compile(row["pattern"]), row["name"]) for row in rows]


def expected_library(path: str, side: Side, other: Side) -> str:
    """Why ``side`` may have this library and ``other`` not: what it is that is made for one architecture alone
    ("Intel oneMKL"); "" when it should be on both. ``path`` may be that of a member, or a soname.
    """
    if side.machine == other.machine:
        return ""
    base = role_of(path[-_LONGEST:]).rpartition("/")[2]
    return next((name for machine, pattern, name in _rows() if machine == side.machine and pattern.fullmatch(base)), "")


def expected_need(soname: str, side: Side, other: Side) -> str:
    """Why a library may be needed on ``side`` alone: what it is; "" when both should need it.

    Libraries of the system say nothing: which of libc, libdl and libpthread has a function depends on the glibc that
    a wheel was built with, and the loader bears the architecture in its name.
    """
    return "system library" if provider_of(soname) == SYSTEM else expected_library(soname, side, other)


def is_outlier(a: int, b: int) -> bool:
    """Whether two sizes in bytes differ so much that something is missing or double."""
    return abs(a - b) >= SMALLEST_OUTLIER and max(a, b) >= OUTLIER * min(a, b)
