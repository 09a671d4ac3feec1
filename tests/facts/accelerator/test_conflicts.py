"""Signals that contradict each other, in the accelerator or in its version."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from tests.support.wheel_facts import AARCH64, X86_64
from wheel_checks.facts.accelerator.verdict import judge
from wheel_checks.formats.wheel.version_file import VersionFile

MEMBERS = {"cuda": "demo/libcudart.so.13", "rocm": "demo/libamdhip64.so"}
TEXTS: dict[str, dict[str, str | int | float | bool | None]] = {
    "cuda": {"cuda": "13.0"},
    "rocm": {"cuda": None, "hip": "7.1"},
    "cpu": {"cuda": None},
}
REQUIREMENTS = {"cuda": "cuda-toolkit==13.0.2", "rocm": "rocm"}


@pytest.mark.parametrize(
    ("members", "version_py", "requirements", "conflicts"),
    [
        ("cuda", "cuda", "cuda", ()),
        ("cuda", "cpu", "", ("members say CUDA (", "version.py says CPU only (")),
        ("cuda", "", "rocm", ("members say CUDA (", "requirements say ROCm (")),
        ("", "cuda", "rocm", ("version.py says CUDA (", "requirements say ROCm (")),
        ("", "rocm", "cuda", ("version.py says ROCm (", "requirements say CUDA (")),
        ("rocm", "rocm", "rocm", ()),
        ("cuda", "", "", ()),
        ("", "", "", ()),
    ],
)
def test_each_pair_of_signals_can_disagree(
    members: str, version_py: str, requirements: str, conflicts: tuple[str, ...]
) -> None:
    facts = judge(
        [MEMBERS[members]] if members else [],
        [VersionFile("demo/version.py", TEXTS[version_py])] if version_py else [],
        [Requirement(REQUIREMENTS[requirements])] if requirements else [],
        X86_64.markers(),
        [AARCH64.markers()],
    )

    assert len(facts.conflicts) == bool(conflicts)
    assert all(part in facts.conflicts[0] for part in conflicts)


def test_all_three_signals_can_disagree() -> None:
    facts = judge(
        ["demo/libcudart.so.13"],
        [VersionFile("demo/version.py", {"__version__": "1.0+rocm7.1"})],
        [Requirement("intel-sycl-rt")],
        X86_64.markers(),
        [],
    )

    assert [conflict.partition("), ")[2].split(" (")[0] for conflict in facts.conflicts] == [
        "version.py says ROCm",
        "requirements say XPU",
    ]


@pytest.mark.parametrize(
    ("members", "version_py", "pin", "version", "conflicts"),
    [
        ("13", "13.0", "13.0.2", "13.0", []),
        ("13", "13.0", "13.*", "13.0", []),
        (
            "12",
            "12.8",
            "13.0.2",
            "12.8",
            ["members say CUDA 12, requirements say 13.0", "version.py says CUDA 12.8, requirements say 13.0"],
        ),
        (
            "12",
            "13.0",
            "13.0.2",
            "13.0",
            ["members say CUDA 12, version.py says 13.0", "members say CUDA 12, requirements say 13.0"],
        ),
        ("12", "12.8", "12.9.79", "12.8", ["version.py says CUDA 12.8, requirements say 12.9"]),
    ],
)
def test_versions_agree_as_far_as_each_signal_tells_them(
    members: str, version_py: str, pin: str, version: str, conflicts: list[str]
) -> None:
    facts = judge(
        [f"demo/libcudart.so.{members}"],
        [VersionFile("demo/version.py", {"cuda": version_py})],
        [
            Requirement("nvidia-cudnn-cu13" if pin.startswith("13") else "nvidia-cudnn-cu12"),
            Requirement(f"cuda-toolkit=={pin}"),
        ],
        X86_64.markers(),
        [],
    )

    assert (facts.version, list(facts.conflicts)) == (version, conflicts)
