"""The promises of the manylinux policies: of the tags of a wheel, and of its target."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import need

_MANYLINUX = re.compile(r"manylinux_2_(\d+)_(\w+)|(manylinux1|manylinux2010|manylinux2014)_(\w+)")
_LEGACY = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}  # PEP 600


def oldest_policy(wheel: WheelFacts) -> dict[str, str] | None:
    """The row of the oldest manylinux policy among the wheel's tags."""
    tagged = []
    for tag in need(wheel.name).tags:
        if match := _MANYLINUX.fullmatch(tag.platform):
            minor = int(match[1]) if match[1] else _LEGACY[match[3]]
            tagged.append((minor, match[2] or match[4]))
    if not tagged:
        return None
    return _policy(*min(tagged))


def fitting_policy(wheel: WheelFacts, needs: Iterable[tuple[str, Version]]) -> dict[str, str] | None:
    """The oldest row of the tag's machine that has all of ``needs`` ("GLIBCXX" and a version), or None."""
    own = oldest_policy(wheel)
    rows = sorted(load("manylinux")["policy"], key=lambda row: row["glibc_minor"])
    needs = list(needs)
    return next(
        (
            row
            for row in rows
            if own is not None
            and row["machine"] == own["machine"]
            and row["glibc_minor"] >= own["glibc_minor"]
            and all(version <= Version(row[prefix]) for prefix, version in needs)
        ),
        None,
    )


def policy_of_target(wheel: WheelFacts) -> dict[str, str] | None:
    """The libraries of a system with the glibc of the target; None without a target.

    The target of a file that is judged by its own tags has the oldest glibc that they name.
    """
    return None if wheel.target is None else _policy(wheel.target.glibc[1], wheel.target.machine)


def _policy(minor: int, name: str) -> dict[str, str] | None:
    """The newest row of a machine for a glibc of 2.``minor``."""
    rows = [row for row in load("manylinux")["policy"] if row["machine"] == name and row["glibc_minor"] <= minor]
    newest: dict[str, str] | None = max(rows, key=lambda row: row["glibc_minor"], default=None)
    return newest
