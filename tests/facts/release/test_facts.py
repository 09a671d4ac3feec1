"""A release over its matrix: which cells a file fills, in what order, and which version the release is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.releases import of_size, release, wheel
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.release.facts import Cell, FileInRelease, ReleaseFile, release_version
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Outcome
from wheel_checks.runner import run_rules

PYTHONS = ["3.12", "3.13", "3.13t"]
PLATFORMS = {"Linux": {"tags": ["manylinux_2_28_*"]}, "macOS": {"tags": ["macosx_*_arm64"]}}


def cells(file_name: str) -> list[str]:
    """The cells that a file fills, as "platform python"."""
    (file,) = release(ReleaseFile(file_name), platforms=PLATFORMS, pythons=PYTHONS).files
    return [f"{cell.platform} {cell.python}" for cell in file.cells]


@pytest.mark.parametrize(
    ("tags", "filled"),
    [
        ("cp312-cp312-manylinux_2_28_x86_64", ["Linux 3.12"]),
        ("cp313-cp313t-manylinux_2_28_aarch64", ["Linux 3.13t"]),
        ("cp312-none-macosx_11_0_arm64", ["macOS 3.12"]),
        ("cp38-abi3-macosx_14_0_arm64", ["macOS 3.12", "macOS 3.13"]),
        ("py3-none-manylinux_2_28_x86_64", ["Linux 3.12", "Linux 3.13", "Linux 3.13t"]),
        ("cp312-cp312-manylinux_2_17_x86_64.manylinux_2_28_x86_64", ["Linux 3.12"]),
        ("cp312-cp312-manylinux_2_28_x86_64.macosx_11_0_arm64", ["Linux 3.12", "macOS 3.12"]),
        ("cp312-cp312-linux_x86_64", []),
        ("cp311-cp311-manylinux_2_28_x86_64", []),
    ],
)
def test_the_cells_that_a_wheel_fills(tags: str, filled: list[str]) -> None:
    assert cells(f"demo-1.0-{tags}.whl") == filled


def test_another_version_or_project_fills_none() -> None:
    assert cells("demo-2.0-cp312-cp312-manylinux_2_28_x86_64.whl") == []
    assert cells("other-1.0-cp312-cp312-manylinux_2_28_x86_64.whl") == []


def test_the_highest_build_tag_comes_first() -> None:
    facts = release(wheel(), wheel(build="3"), wheel(build="10"))

    found = [file.name.build for file in facts.filled[Cell("x86_64", "3.12")] if file.name]
    assert found == ["10", "3", ""]
    assert facts.filled[Cell("aarch64", "3.12")] == ()


def test_a_median_needs_three_files() -> None:
    three = [of_size(size, python) for size, python in ((10, "cp312"), (20, "cp313"), (40, "cp314"))]
    two = [of_size(size, python, "aarch64") for size, python in ((10, "cp312"), (20, "cp313"))]

    assert release(*three, *two, pythons=["3.12", "3.13", "3.14"]).median_sizes == {"x86_64": 20}


@pytest.mark.parametrize(
    ("names", "version"),
    [
        (["demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz", "demo-2.0.tar.gz"], "1.0"),
        (["demo-1.0.tar.gz", "demo-2.0.tar.gz"], "2.0"),
        (["demo-1.0-x.whl", "demo-odd-py3-none-any.whl"], "1.0"),
        (["other-1.0.tar.gz", "demo.txt"], None),
    ],
)
def test_the_version_is_that_of_most_files(names: list[str], version: str | None) -> None:
    found = release_version(names, "demo")

    assert (str(found) if found else None) == version


parts = st.sampled_from(["demo", "Demo", "1.0", "1", "1.0+cpu", "x", "3", "cp312", "cp313t", "py3.py2", "none", "abi3"])
platforms = st.sampled_from(["manylinux_2_28_x86_64", "linux_aarch64", "macosx_11_0_arm64.any", "", "\u2028", "any"])
names = st.builds(lambda head, tail, end: "-".join([*head, tail]) + end, st.lists(parts, max_size=6), platforms,
                  st.sampled_from([".whl", ".tar.gz", ""]))  # fmt: skip


@settings(max_examples=100)
@given(st.lists(st.one_of(names, st.text(max_size=40)), max_size=6, unique=True))
def test_files_of_any_name_are_judged(file_names: list[str]) -> None:
    more = '[[parity]]\nplatforms = ["Linux", "macOS"]\nsize-ratio = 1.5'
    facts = release(*map(ReleaseFile, file_names), platforms=PLATFORMS, pythons=PYTHONS, size_outlier=1.1, more=more)

    results = [*run_rules(select_rules("release-set"), facts, Expectations())]
    for file in facts.files:
        results += run_rules(select_rules("release-file"), FileInRelease(file, facts), Expectations())

    assert [result for result in results if result.outcome is Outcome.ERROR] == []
    assert all(cell in facts.filled for file in facts.files for cell in file.cells)
