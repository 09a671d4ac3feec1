"""WHL401 and WHL402: the file that an installer would take."""

from __future__ import annotations

from packaging.requirements import Requirement

from tests.rules.case import WARNING, Case
from tests.support.wheel_facts import AARCH64, listed
from wheel_checks.targets.selection import Choice, choose

X86_ONLY = "demo-2.0-cp312-cp312-manylinux_2_28_x86_64.whl"
OTHER_PYTHON = "demo-2.0-cp311-cp311-manylinux_2_28_aarch64.whl"
BOTH = "demo-1.0-py3-none-any.whl"


def chosen(requirement: str, *file_names: str) -> Choice:
    """An installer's choice of these files for Python 3.12 on aarch64."""
    return choose(Requirement(requirement), [listed(name) for name in file_names], AARCH64)


CASES = [
    Case(
        "WHL401",
        "wheels for another machine only",
        lambda: chosen("demo", X86_ONLY),
        ("demo 2.0 has no file for cp312 aarch64; its wheels are for manylinux_2_28_x86_64",),
        evidence=(f"{X86_ONLY} is not built for cp312 aarch64 with glibc 2.39",),
    ),
    Case(
        "WHL401",
        "a source archive",
        lambda: chosen("demo", "demo-2.0.tar.gz"),
        ("demo 2.0 has no wheel for cp312 aarch64, only a source archive",),
    ),
    Case(
        "WHL401",
        "wheels for another Python only",
        lambda: chosen("demo", OTHER_PYTHON),
        ("demo 2.0 has no file for cp312 aarch64; its wheels for aarch64 are for cp311",),
    ),
    Case("WHL401", "a wheel for any machine", lambda: chosen("demo", X86_ONLY, BOTH)),
    Case("WHL401", "a requirement of another system", lambda: chosen('demo; sys_platform == "win32"', X86_ONLY)),
    Case(
        "WHL402",
        "a newer release for another machine",
        lambda: chosen("demo", X86_ONLY, BOTH),
        ("cp312 aarch64 gets 1.0, although 2.0 exists",),
        WARNING,
        evidence=("demo 2.0 is newer, but has no file for cp312 aarch64",),
    ),
    Case("WHL402", "a newer release that the requirement excludes", lambda: chosen("demo<2", X86_ONLY, BOTH)),
]
