"""Pairs of built wheels of one release, read and compared.

difference(wheel_for("aarch64").add(...), wheel_for("x86_64"))
wheel_for("aarch64").add("demo/lib.so", library("aarch64", needed=("libc.so.6",), gpu=("sm_90",)))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.elf import AARCH64, X86_64, Elf
from tests.support.fatbin import fat_binary, section
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.difference.wheels import Difference, compare_wheels
from wheel_checks.facts.wheel.depth import Depth

MACHINES = {"aarch64": AARCH64, "x86_64": X86_64}


def wheel_for(machine: str = "aarch64", version: str = "1.0", python: str = "cp312", build: str = "") -> WheelBuilder:
    """A wheel of the project demo for one machine, with one module."""
    wheel = WheelBuilder("demo", version, f"{python}-{python}-manylinux_2_28_{machine}", build)
    return wheel.add("demo/__init__.py")


def library(machine: str = "aarch64", *, gpu: Sequence[str] = (), **elf: Any) -> bytes:
    """A shared library for ``machine`` with GPU code for these targets; ``elf`` are fields of :class:`Elf`."""
    contents = {".nv_fatbin": section(fat_binary(*gpu))} if gpu else {}
    return Elf(machine=MACHINES[machine], contents=contents, **elf).build().data


def difference(a: WheelBuilder, b: WheelBuilder, depth: Depth = Depth.GPU, **request: Any) -> Difference:
    """What differs between two wheels, read to ``depth``."""
    return compare_wheels(facts_of(a, depth=depth, **request), facts_of(b, depth=depth, **request))
