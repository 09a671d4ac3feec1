"""What WHL201 proposes: commands that give the wheel that was demanded."""

from __future__ import annotations

import pytest

from tests.rules.choice_cases import chosen
from tests.support.wheel_facts import facts_of, findings
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.wheel.expectations import parse_expectation
from wheel_checks.model import Fix


def fix_for(wheel: WheelBuilder, demand: str) -> Fix:
    """The fix of the one finding."""
    (finding,) = findings("WHL201", facts_of(wheel), accelerator=parse_expectation(demand))
    assert finding.fix
    return finding.fix


def backend(name: str) -> str:
    """The command that takes torch 2.10.0 from PyTorch's own index."""
    return f"uv pip install torch==2.10.0 --torch-backend={name}"


@pytest.mark.parametrize(
    ("version", "demand", "commands"),
    [
        # the first later build that fits, or PyTorch's own index for the version that was chosen
        ("2.10.0", "cuda", ["pip install torch==2.11.0", backend("cu128")]),
        ("2.10.0+cpu", "cuda", ["pip install torch==2.11.0", backend("cu128")]),
        ("2.10.0", "cuda==13.0", ["pip install torch==2.11.0", backend("cu130")]),
        # never on the index for this host
        ("2.10.0", "cuda==12.8", [backend("cu128")]),
        ("2.6.0", "cuda==99.0", []),
    ],
)
def test_torch(version: str, demand: str, commands: list[str]) -> None:
    assert list(fix_for(torch_like("cpu", version, "aarch64"), demand).lines) == commands


def test_when_nothing_is_known_it_says_so() -> None:
    fix = fix_for(torch_like("cpu", "2.6.0"), "cuda==99.0")

    assert fix.summary == "No torch for cuda==99.0 on aarch64 is known."


def test_for_other_packages_it_shows_how_to_look() -> None:
    fix = fix_for(WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64"), "rocm")

    assert fix.summary == ("Use a release or an index with demo for rocm on aarch64; this lists what the index has:")
    assert fix.lines == ("wheelproof verify 'demo>=0' --platform aarch64 --all-files",)


def fix_of_choice(*file_names: str) -> Fix:
    """The fix of WHL401 for Python 3.12 on aarch64, of an index with these files."""
    (finding,) = findings("WHL401", chosen("demo", *file_names))
    assert finding.fix
    return finding.fix


def test_wheels_for_another_python_are_shown() -> None:
    fix = fix_of_choice(
        "demo-1.0-cp311-cp311-manylinux_2_28_aarch64.whl",
        "demo-2.0-cp311-cp311-manylinux_2_28_aarch64.whl",
        "demo-3.0a1-cp311-cp311-manylinux_2_28_aarch64.whl",
        "demo-4.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    )

    assert fix.summary == "2.0 has wheels for aarch64 (cp311-cp311): use that release, or such a Python:"
    assert fix.lines == ("wheelproof verify demo==2.0 --platform aarch64 --all-files",)


def test_where_no_release_has_a_wheel_it_says_how_to_build_one() -> None:
    fix = fix_of_choice("demo-2.0.tar.gz", "demo-2.0-cp312-cp312-manylinux_2_28_x86_64.whl")

    assert (
        fix.summary
        == "No release has a wheel for aarch64. Build one on such a machine, and pass its folder with --find-links:"
    )
    assert fix.lines == ("pip wheel --no-deps --wheel-dir wheels demo==2.0",)


def test_where_nothing_helps_there_is_no_command() -> None:
    fix = fix_of_choice("demo-2.0-cp312-cp312-manylinux_2_28_x86_64.whl")

    assert fix == Fix("No release has a wheel for aarch64. Exclude it there with a marker, or add another index.")
