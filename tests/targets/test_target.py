"""Targets: what --platform and --python name, and the tags and markers of a machine that is not here."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.markers import Marker, default_environment
from packaging.tags import Tag, mac_platforms, sys_tags
from uv import find_uv_bin

from tests.support.wheels import WheelBuilder
from wheel_checks.errors import UsageError
from wheel_checks.targets.target import DEFAULT_GLIBC, Target, parse_targets, this_machine

GRACE = Target((3, 12), "aarch64", (2, 28))


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("x86_64", [("x86_64", DEFAULT_GLIBC)]),
        ("amd64", [("x86_64", DEFAULT_GLIBC)]),
        ("arm64", [("aarch64", DEFAULT_GLIBC)]),
        ("linux_aarch64", [("aarch64", DEFAULT_GLIBC)]),
        ("manylinux_2_28_aarch64", [("aarch64", (2, 28))]),
        ("manylinux2014_x86_64", [("x86_64", (2, 17))]),
        ("manylinux1_x86_64", [("x86_64", (2, 5))]),
        ("all", [("x86_64", DEFAULT_GLIBC), ("aarch64", DEFAULT_GLIBC)]),
    ],
)
def test_a_platform_names_machines_and_a_glibc(platform: str, expected: list[tuple[str, tuple[int, int]]]) -> None:
    assert parse_targets([platform], ["3.12"]) == tuple(Target((3, 12), *pair) for pair in expected)


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ("3.12", Target((3, 12), "aarch64", DEFAULT_GLIBC)),
        ("cp312", Target((3, 12), "aarch64", DEFAULT_GLIBC)),
        ("312", Target((3, 12), "aarch64", DEFAULT_GLIBC)),
        ("39", Target((3, 9), "aarch64", DEFAULT_GLIBC)),
        ("3.12.4", Target((3, 12), "aarch64", DEFAULT_GLIBC, patch=4)),
        ("3.13t", Target((3, 13), "aarch64", DEFAULT_GLIBC, free_threaded=True)),
        ("cp314t", Target((3, 14), "aarch64", DEFAULT_GLIBC, free_threaded=True)),
    ],
)
def test_a_python_is_written_in_many_ways(python: str, expected: Target) -> None:
    assert parse_targets(["aarch64"], [python]) == (expected,)


@pytest.mark.parametrize(
    "platform",
    ["", "sparc", "win_amd64", "manylinux_2_28", "musllinux_2_0_x86_64", "x86_64 x", "manylinux_2_2\u0668_x86_64"],
)
def test_an_unknown_platform_is_refused_with_the_known_ones(platform: str) -> None:
    with pytest.raises(UsageError, match=r"is unknown; expected one of x86_64 .*aarch64"):
        parse_targets([platform], ["3.12"])


@pytest.mark.parametrize("platform", ["manylinux_2_12_aarch64", "manylinux1_aarch64", "manylinux2525_x86_64"])
def test_a_policy_that_never_was_is_refused(platform: str) -> None:
    with pytest.raises(UsageError, match=r"there are no manylinux\w* wheels for"):
        parse_targets([platform], ["3.12"])


@pytest.mark.parametrize("python", ["", "2.7", "3.7", "3.12t", "python", "4.0", "3", "3.12.x", "pp310", "3.1\u0662"])
def test_an_unknown_python_is_refused_with_the_known_ones(python: str) -> None:
    with pytest.raises(UsageError, match=r"is unknown; expected CPython 3\.8 or newer"):
        parse_targets(["aarch64"], [python])


def test_several_platforms_and_pythons_give_every_combination_once() -> None:
    targets = parse_targets(["all", "arm64"], ["3.12", "cp312", "3.13"])
    assert [target.label for target in targets] == ["cp312 x86_64", "cp313 x86_64", "cp312 aarch64", "cp313 aarch64"]


def test_names_for_people_and_for_machines() -> None:
    target = Target((3, 13), "aarch64", (2, 28), free_threaded=True)
    assert (target.label, target.id) == ("cp313t aarch64", "cp313t-manylinux_2_28_aarch64")


def test_a_target_accepts_its_glibc_and_older_ones_newest_first() -> None:
    ranks = GRACE.supported_tags()
    assert Tag("cp312", "cp312", "manylinux_2_29_aarch64") not in ranks
    assert Tag("cp312", "cp312", "manylinux_2_28_x86_64") not in ranks
    newest, oldest, legacy = (
        ranks[Tag("cp312", "cp312", f"{policy}_aarch64")]
        for policy in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
    )
    assert newest < oldest < legacy
    assert Tag("cp312", "cp312", "manylinux2010_aarch64") not in ranks
    assert ranks[Tag("cp39", "abi3", "manylinux_2_28_aarch64")] > ranks[Tag("cp312", "abi3", "manylinux2014_aarch64")]
    assert max(ranks, key=ranks.__getitem__) == Tag("py30", "none", "any")


def test_free_threaded_builds_take_no_stable_abi() -> None:
    ranks = Target((3, 13), "x86_64", (2, 28), free_threaded=True).supported_tags()
    assert Tag("cp313", "cp313t", "manylinux_2_28_x86_64") in ranks
    assert Tag("cp313", "cp313", "manylinux_2_28_x86_64") not in ranks
    assert Tag("cp313", "abi3", "manylinux_2_28_x86_64") not in ranks
    assert Tag("cp313", "none", "any") in ranks


on_linux = pytest.mark.skipif(this_machine().note != "", reason="compares with this host, which is not a target")


def test_musl_is_a_platform_as_manylinux_is() -> None:
    (target,) = parse_targets(["musllinux_1_2_arm64"], ["3.12"])
    assert (target.platform, target.label) == ("musllinux_1_2_aarch64", "cp312 musl aarch64")
    platforms = {tag.platform for tag in target.supported_tags()}
    assert platforms == {
        "musllinux_1_2_aarch64",
        "musllinux_1_1_aarch64",
        "musllinux_1_0_aarch64",
        "linux_aarch64",
        "any",
    }
    for unknown in ("musllinux_1_2_riscv64", "musllinux_2_0_x86_64"):
        with pytest.raises(UsageError, match="musllinux_1_<minor>_<machine>"):
            parse_targets([unknown])


@on_linux
def test_the_tags_of_this_machine_are_those_of_packaging_in_the_same_order() -> None:
    """But for linux_x86_64, which packaging ranks first since 26.3, and uv last."""
    here = this_machine().target
    real = [tag for tag in sys_tags() if "musllinux" not in tag.platform]
    assert set(here.supported_tags()) == set(real)
    assert [tag for tag in here.supported_tags() if not is_bare(tag)] == [tag for tag in real if not is_bare(tag)]


def is_bare(tag: Tag) -> bool:
    return tag.platform.startswith("linux_")


def test_a_python_without_a_patch_release_is_the_newest_that_uv_can_install() -> None:
    """If it fails, uv knows newer releases: write them into ``data/python_releases.toml``."""
    listed = subprocess.run(
        [find_uv_bin(), "python", "list", "--all-versions", "--only-downloads", "--no-config"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    releases = {(int(m[1]), int(m[2])) for m in re.finditer(r"^cpython-3\.(\d+)\.(\d+)-", listed, re.MULTILINE)}
    newest = {minor: max(patch for other, patch in releases if other == minor) for minor, _ in releases}

    assert {Target((3, m), "x86_64", (2, 28)).python_full_version for m in newest} == {
        f"3.{minor}.{patch}" for minor, patch in newest.items()
    }
    assert replace(GRACE, patch=0).python_full_version == "3.12.0"


def uvs_choice(folder: Path, tags: Sequence[str]) -> str:
    """Which of two wheels uv installs into an empty folder, by the tag that is in its WHEEL."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    for tag in tags:
        WheelBuilder(tags=tag).write(wheels)
    install = ["pip", "install", "--quiet", "--no-index", "--no-cache", "--python", sys.executable, "demo"]
    subprocess.run(
        [find_uv_bin(), *install, "--find-links", str(wheels), "--target", str(folder / "installed")], check=True
    )
    lines = (folder / "installed/demo-1.0.dist-info/WHEEL").read_text().splitlines()
    return next(line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: "))


@on_linux
def test_uv_installs_the_file_that_is_ranked_first(tmp_path: Path) -> None:
    ranked = [str(tag) for tag in this_machine().target.supported_tags()]
    machine, python = this_machine().target.machine, this_machine().target.interpreter
    names = [
        f"{start}-{platform}"
        for start in (f"{python}-{python}", f"{python}-abi3", "cp36-abi3", f"{python}-none", "py3-none")
        for platform in (f"linux_{machine}", f"manylinux2014_{machine}", f"manylinux_2_17_{machine}", "any")
    ]
    names = [name for name in names if name in ranked]
    for one, other in itertools.pairwise(names):
        assert uvs_choice(tmp_path / one / other, [one, other]) == min(one, other, key=ranked.index)


@on_linux
def test_the_markers_of_this_machine_are_those_of_packaging() -> None:
    unknowable = {"platform_release", "platform_version"}
    real = {name: value for name, value in default_environment().items() if name not in unknowable}
    ours = {name: value for name, value in this_machine().target.markers().items() if name not in unknowable}
    assert ours == real


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ('platform_machine == "x86_64"', False),
        ('platform_machine == "aarch64" and platform_system == "Linux"', True),
        ('python_version < "3.13" and python_full_version >= "3.12.0"', True),
        ('sys_platform == "win32" or implementation_name == "pypy"', False),
        ('platform_release >= "5"', False),
    ],
)
def test_markers_are_evaluated_for_the_target_and_not_for_this_machine(marker: str, holds: bool) -> None:
    assert Marker(marker).evaluate(GRACE.markers()) is holds


def test_this_machine_is_the_default() -> None:
    (target,) = parse_targets()
    assert target == this_machine().target
    assert target.python_full_version == ".".join(map(str, sys.version_info[:3]))


# Other systems.


@pytest.mark.parametrize(
    ("platform", "expected", "label"),
    [
        ("win_amd64", "win_amd64", "cp312 Windows x86_64"),
        ("windows_arm64", "win_arm64", "cp312 Windows aarch64"),
        ("macosx_11_0_arm64", "macosx_11_0_arm64", "cp312 macOS aarch64"),
        ("macos_x86_64", "macosx_26_0_x86_64", "cp312 macOS x86_64"),
    ],
)
def test_windows_and_macos_are_targets_where_a_command_takes_them(platform: str, expected: str, label: str) -> None:
    (target,) = parse_targets([platform], ["3.12"], systems=True)
    assert (target.platform, target.label) == (expected, label)
    with pytest.raises(UsageError, match=f"the platform '{platform}' is unknown"):
        parse_targets([platform], ["3.12"])


def test_markers_and_tags_of_other_systems() -> None:
    windows, macos = parse_targets(["win_amd64", "macosx_14_0_arm64"], ["3.12"], systems=True)
    assert Marker("sys_platform == 'win32' and os_name == 'nt' and platform_machine == 'AMD64'").evaluate(
        windows.markers()
    )
    assert Marker("platform_system == 'Darwin' and platform_machine == 'arm64'").evaluate(macos.markers())
    assert {tag.platform for tag in windows.supported_tags()} == {"win_amd64", "any"}
    assert {tag.platform for tag in macos.supported_tags()} == {*mac_platforms((14, 0), "arm64"), "any"}


def test_a_macos_without_pythons() -> None:
    with pytest.raises(UsageError, match="no Python versions are known for the platform 'macosx_10_15_arm64'"):
        parse_targets(["macosx_10_15_arm64"], systems=True)


def test_a_platform_that_is_not_known_lists_the_other_systems() -> None:
    with pytest.raises(UsageError) as error:
        parse_targets(["aix"], systems=True)
    assert "win_amd64" in error.value.expected
