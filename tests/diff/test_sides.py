"""From the command line to the wheels of either side."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheel_checks.errors import NotFoundError, UsageError
from wheelproof.diff.sides import Side, split_sides, wheels_of
from wheelproof.wheels.model import PlannedWheel

TORCH = "torch==2.11.0"


@pytest.mark.parametrize(
    ("texts", "platforms", "pythons", "a", "b"),
    [
        ([TORCH], ["aarch64", "x86_64"], ["3.12"], Side(TORCH, "aarch64", "3.12"), Side(TORCH, "x86_64", "3.12")),
        ([TORCH], ["aarch64"], ["3.12", "3.13"], Side(TORCH, "aarch64", "3.12"), Side(TORCH, "aarch64", "3.13")),
        ([TORCH], ["all"], [], Side(TORCH, "x86_64"), Side(TORCH, "aarch64")),
        (["a.whl", TORCH], [], [], Side("a.whl"), Side(TORCH)),
        (["a", "b"], ["aarch64"], ["3.12"], Side("a", "aarch64", "3.12"), Side("b", "aarch64", "3.12")),
        (["a", "b"], ["aarch64", "x86_64"], [], Side("a", "aarch64"), Side("b", "x86_64")),
    ],
)
def test_one_value_is_for_both_sides_and_two_are_one_for_each(
    texts: list[str], platforms: list[str], pythons: list[str], a: Side, b: Side
) -> None:
    assert split_sides(texts, platforms, pythons) == (a, b)


@pytest.mark.parametrize(
    ("texts", "platforms", "pythons", "message"),
    [
        ([TORCH], [], [], "both sides are identical"),
        ([TORCH, TORCH], ["aarch64"], ["3.12"], "both sides are identical"),
        ([TORCH, "b", "c"], [], [], "3 wheels or sets"),
        ([TORCH], ["aarch64", "x86_64", "aarch64"], [], "--platform has 3 values"),
        ([TORCH], ["all", "aarch64"], [], "--platform has 3 values"),
        ([TORCH], [], ["3.11", "3.12", "3.13"], "--python has 3 values"),
        ([TORCH], ["aarch64", "sparc"], [], "'sparc' is unknown"),
        ([TORCH], ["all"], ["2.7"], "'2.7' is unknown"),
    ],
)
def test_anything_else_is_wrong_usage(texts: list[str], platforms: list[str], pythons: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        split_sides(texts, platforms, pythons)


FOLDER = [
    PlannedWheel(name, Path(name))
    for name in (
        "demo-1.0-cp312-cp312-manylinux_2_28_aarch64.whl",
        "demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl",
        "demo-1.0-cp313-cp313-manylinux_2_28_aarch64.whl",
        "demo-1.0-cp38-abi3-manylinux_2_28_aarch64.whl",
        "demo-1.0-py3-none-any.whl",
        "odd.whl",
    )
]


@pytest.mark.parametrize(
    ("side", "chosen"),
    [
        (Side("dist"), [0, 1, 2, 3, 4, 5]),
        (Side("dist", "aarch64"), [0, 2, 3, 4, 5]),
        (Side("dist", "", "3.12"), [0, 1, 3, 4, 5]),
        (Side("dist", "aarch64", "3.12"), [0, 3, 4, 5]),
        (Side("dist", "manylinux_2_17_aarch64", "3.12"), [4, 5]),
    ],
)
def test_of_a_folder_the_wheels_for_the_platform_and_python_count(side: Side, chosen: list[int]) -> None:
    found = [wheel.file_name for wheel in wheels_of(side, lambda _: FOLDER)]

    assert found == [FOLDER[number].file_name for number in chosen]


def test_a_wheel_for_any_platform_gets_the_target_that_was_requested() -> None:
    (pure,) = wheels_of(Side("demo", "aarch64", "3.12"), lambda _: FOLDER[4:5])
    (exact,) = wheels_of(Side("demo", "aarch64", "3.12"), lambda _: FOLDER[:1])

    assert pure.target is not None
    assert pure.target.label == "cp312 aarch64"
    assert exact.target is None


def test_a_side_without_a_wheel_says_what_was_requested() -> None:
    with pytest.raises(NotFoundError, match=r"dist has no wheel for x86_64 and Python 3\.13"):
        wheels_of(Side("dist", "x86_64", "3.13"), lambda _: FOLDER[:1])
