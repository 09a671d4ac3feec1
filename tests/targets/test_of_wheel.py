"""The target, the Pythons and the marker variables that a wheel's own tags name."""

from __future__ import annotations

import pytest
from packaging.tags import Tag, parse_tag

from wheel_checks.targets.of_wheel import exact_pythons, markers_of_tags, target_of_tags
from wheel_checks.targets.target import this_machine

HERE = this_machine().target


def tags(*texts: str) -> set[Tag]:
    return {tag for text in texts for tag in parse_tag(text)}


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cp312-cp312-manylinux_2_28_aarch64", "cp312-manylinux_2_28_aarch64"),
        ("cp313-cp313t-manylinux_2_28_x86_64", "cp313t-manylinux_2_28_x86_64"),
        ("cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64", "cp312-manylinux_2_17_x86_64"),
        ("cp311-cp311-manylinux_2_28_x86_64.manylinux_2_27_x86_64", "cp311-manylinux_2_27_x86_64"),
        ("cp310-cp310-manylinux1_x86_64", "cp310-manylinux_2_5_x86_64"),
        ("cp38-abi3-manylinux_2_28_aarch64", f"{HERE.interpreter}-manylinux_2_28_aarch64"),
        ("py3-none-manylinux_2_28_aarch64", f"{HERE.interpreter}-manylinux_2_28_aarch64"),
        ("cp312-cp312-linux_aarch64", f"cp312-manylinux_{HERE.glibc[0]}_{HERE.glibc[1]}_aarch64"),
    ],
)
def test_the_target_that_the_tags_name(text: str, target: str) -> None:
    named = target_of_tags(tags(text))

    assert named
    assert named.id == target


@pytest.mark.parametrize(
    "text",
    [
        "py3-none-any",
        "cp312-cp312-win_amd64",
        "cp312-cp312-macosx_11_0_arm64",
        "cp312-cp312-musllinux_1_2_x86_64",
        "cp312-cp312-manylinux_2_28_s390x",
        "py3-none-manylinux_2_28_x86_64.manylinux_2_28_aarch64",
    ],
)
def test_tags_that_name_no_target(text: str) -> None:
    assert target_of_tags(tags(text)) is None


@pytest.mark.parametrize(
    ("text", "pythons"),
    [
        ("cp312-cp312-win_amd64", [(3, 12)]),
        ("cp313.cp39-none-any", [(3, 9), (3, 13)]),
        ("cp38-abi3-win_amd64", []),
        ("py2.py3-none-any", []),
        ("pp310-pypy310_pp73-win_amd64", []),
        ("cp9999999999-none-any", []),
    ],
)
def test_the_pythons_that_the_tags_name(text: str, pythons: list[tuple[int, int]]) -> None:
    assert exact_pythons(tags(text)) == pythons


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("cp312-cp312-manylinux_2_28_aarch64", ("posix", "Linux", "linux", "aarch64")),
        ("cp312-cp312-musllinux_1_2_aarch64", ("posix", "Linux", "linux", "aarch64")),
        ("cp312-cp312-win_amd64", ("nt", "Windows", "win32", "AMD64")),
        ("cp312-cp312-win_arm64", ("nt", "Windows", "win32", "ARM64")),
        ("cp312-cp312-win32", ("nt", "Windows", "win32", "x86")),
        ("cp312-cp312-macosx_11_0_arm64", ("posix", "Darwin", "darwin", "arm64")),
        ("cp312-cp312-macosx_10_9_universal2", ("posix", "Darwin", "darwin", "arm64")),
        ("cp312-cp312-macosx_10_9_x86_64.macosx_11_0_x86_64", ("posix", "Darwin", "darwin", "x86_64")),
        ("py3-none-any", ("posix", "Linux", "linux", HERE.machine)),
        ("py3-none-win_amd64.macosx_11_0_arm64", ("posix", "Linux", "linux", HERE.machine)),
    ],
)
def test_the_markers_of_the_platform_that_the_tags_name(text: str, values: tuple[str, ...]) -> None:
    markers = markers_of_tags(tags(text))

    assert tuple(markers[key] for key in ("os_name", "platform_system", "sys_platform", "platform_machine")) == values
