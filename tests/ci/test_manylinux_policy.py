"""The table of manylinux policies, and the script that makes it."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

from wheel_checks.data import load

SCRIPT = Path(__file__).parents[2] / "ci" / "update_manylinux_policy.py"
ROWS = load("manylinux")["policy"]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_manylinux_policy", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_newer_policy_never_promises_less(machine: str) -> None:
    rows = [row for row in ROWS if row["machine"] == machine]

    assert len(rows) >= 10
    for older, newer in pairwise(rows):
        assert older["glibc_minor"] < newer["glibc_minor"]
        assert all(Version(older[name]) <= Version(newer[name]) for name in ("GLIBC", "GLIBCXX", "CXXABI"))


def test_no_policy_promises_more_of_glibc_than_its_name_but_the_first_of_aarch64() -> None:
    beyond = [
        (row["machine"], row["GLIBC"]) for row in ROWS if Version(row["GLIBC"]) > Version(f"2.{row['glibc_minor']}")
    ]

    assert beyond == [("aarch64", "2.18")]  # auditwheel's word for manylinux_2_17


def test_the_newest_version_is_the_highest_number() -> None:
    assert script().newest(["3.4.9", "3.4.25", "3.4", "TM_1", "ABI_DT_RELR"]) == "3.4.25"
    assert script().newest([]) == ""
