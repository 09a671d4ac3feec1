"""Choosing a file: given these names on an index, this one, and these reasons for the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.errors import UsageError
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.targets.selection import Choice, Reason, choose, release_wheels
from wheel_checks.targets.target import Target

X86 = Target((3, 12), "x86_64", (2, 39))
GRACE = Target((3, 12), "aarch64", (2, 39))

TORCH = [
    "torch-2.9.1-cp312-cp312-manylinux_2_28_aarch64.whl",
    "torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl",
    "torch-2.10.0-3-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.10.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl",
    "torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.11.0-cp313-cp313t-manylinux_2_28_aarch64.whl",
    "torch-2.11.0-cp312-cp312-win_amd64.whl",
    "torch-2.12.0rc1-cp312-cp312-manylinux_2_28_aarch64.whl",
]


def file(name: str, **fields: str) -> IndexFile:
    return IndexFile(name, f"https://files.example.org/{name}", **fields)  # type: ignore[arg-type]  # only text fields


def chosen(requirement: str, names: Sequence[str | IndexFile], target: Target = GRACE, *, pre: bool = False) -> Choice:
    files = [file(name) if isinstance(name, str) else name for name in names]
    return choose(Requirement(requirement), files, target, pre=pre)


def chosen_name(
    requirement: str, names: Sequence[str | IndexFile], target: Target = GRACE, *, pre: bool = False
) -> str:
    wheel = chosen(requirement, names, target, pre=pre).chosen
    return wheel.file_name if wheel else ""


@pytest.mark.parametrize(
    ("requirement", "target", "expected"),
    [
        ("torch==2.10.0", X86, "torch-2.10.0-3-cp312-cp312-manylinux_2_28_x86_64.whl"),
        ("torch==2.10.0", GRACE, "torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl"),
        ("torch>=2.9", GRACE, "torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl"),
        ("Torch[extra] >=2.9,<2.11", GRACE, "torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl"),
        ("torch", Target((3, 13), "aarch64", (2, 39), True), "torch-2.11.0-cp313-cp313t-manylinux_2_28_aarch64.whl"),
        ("torch", Target((3, 12), "aarch64", (2, 17)), ""),
        ("torch>2.11", GRACE, "torch-2.12.0rc1-cp312-cp312-manylinux_2_28_aarch64.whl"),
        ("torch>=2.12.0rc1", GRACE, "torch-2.12.0rc1-cp312-cp312-manylinux_2_28_aarch64.whl"),
    ],
)
def test_the_torch_wheels(requirement: str, target: Target, expected: str) -> None:
    assert chosen_name(requirement, TORCH, target) == expected


def test_pre_releases_are_taken_when_asked_for() -> None:
    assert chosen("torch", TORCH, pre=True).version == Version("2.12.0rc1")


def test_every_other_file_is_rejected_with_a_reason() -> None:
    names = [*TORCH, "torchvision-0.1-py3-none-any.whl", "torch-2.11.0-py3.whl", "torch-2.0.exe"]
    choice = chosen("torch<3,!=2.9.1", names)
    reasons = {rejection.file.file_name: rejection.reason for rejection in choice.rejected}
    assert len(reasons) == len(names) - 1
    assert reasons["torch-2.9.1-cp312-cp312-manylinux_2_28_aarch64.whl"] is Reason.VERSION
    assert reasons["torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl"] is Reason.OLDER
    assert reasons["torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl"] is Reason.TAGS
    assert reasons["torch-2.12.0rc1-cp312-cp312-manylinux_2_28_aarch64.whl"] is Reason.PRE_RELEASE
    for no_candidate in names[-3:]:
        assert reasons[no_candidate] is Reason.NO_CANDIDATE


def test_the_file_without_build_tag_is_less_preferred() -> None:
    rejected = {r.file.file_name: r for r in chosen("torch==2.10.0", TORCH, X86).rejected}
    rejection = rejected["torch-2.10.0-cp312-cp312-manylinux_2_28_x86_64.whl"]
    assert rejection.reason is Reason.LESS_PREFERRED
    assert "than torch-2.10.0-3-cp312" in rejection.sentence


def test_build_tags_are_compared_as_numbers() -> None:
    names = [f"foo-1.0-{build}-py3-none-any.whl" for build in ("9", "10", "10a", "1")]
    assert chosen_name("foo", names) == "foo-1.0-10a-py3-none-any.whl"


def test_the_better_tag_beats_the_higher_build_tag() -> None:
    names = ["foo-1.0-9-py3-none-any.whl", "foo-1.0-cp39-abi3-manylinux_2_17_aarch64.whl"]
    assert chosen_name("foo", names) == names[1]


def test_a_pin_matches_local_versions_and_prefers_the_highest() -> None:
    names = [f"torch-2.11.0{local}-cp312-cp312-linux_aarch64.whl" for local in ("+cu130", "+cpu", "", "+cu128")]
    assert chosen_name("torch==2.11.0", names) == "torch-2.11.0+cu130-cp312-cp312-linux_aarch64.whl"
    assert chosen_name("torch==2.11.0+cpu", names) == "torch-2.11.0+cpu-cp312-cp312-linux_aarch64.whl"
    assert chosen_name("torch===2.11.0", names) == "torch-2.11.0-cp312-cp312-linux_aarch64.whl"


def test_yanked_files_are_taken_for_a_pin_only_and_with_a_note() -> None:
    files = [file("foo-1.0-py3-none-any.whl"), file("foo-2.0-py3-none-any.whl", yanked="broken on ARM")]
    assert chosen_name("foo", files) == "foo-1.0-py3-none-any.whl"
    assert chosen_name("foo==2.*", files) == ""
    pinned = chosen("foo==2.0", files)
    assert pinned.chosen is files[1]
    assert pinned.notes == (
        "foo-2.0-py3-none-any.whl is yanked: broken on ARM; it is selected because the requirement pins its version",
    )


def test_a_pin_prefers_the_files_that_are_not_yanked() -> None:
    files = [file("foo-1.0-9-py3-none-any.whl", yanked=""), file("foo-1.0-py3-none-any.whl")]
    assert chosen_name("foo==1.0", files) == "foo-1.0-py3-none-any.whl"


def test_requires_python_is_judged_for_the_target() -> None:
    files = [
        file("foo-1.0-py3-none-any.whl", requires_python=">=3.8"),
        file("foo-2.0-py3-none-any.whl", requires_python=">=3.12.4"),
        file("foo-0.5-py3-none-any.whl", requires_python="whatever"),
    ]
    assert chosen_name("foo", files) == "foo-2.0-py3-none-any.whl"  # --python 3.12 is its newest patch release
    assert chosen_name("foo", files, Target((3, 12), "aarch64", (2, 39), patch=3)) == "foo-1.0-py3-none-any.whl"
    assert chosen_name("foo<1", files) == "foo-0.5-py3-none-any.whl"


def test_a_newer_source_archive_beats_an_older_wheel() -> None:
    choice = chosen("foo-bar", ["foo_bar-1.0-py3-none-any.whl", "foo-bar-2.0.tar.gz"])
    assert (choice.sdist_only, choice.chosen, choice.version) == (True, None, Version("2.0"))
    assert choice.explanation == "foo-bar 2.0 has no wheel for cp312 aarch64, only a source archive"


def test_a_wheel_beats_the_source_archive_of_the_same_version() -> None:
    assert chosen_name("foo", ["foo-1.0.tar.gz", "foo-1.0-py2.py3-none-any.whl", "foo-1.0.zip"]) == (
        "foo-1.0-py2.py3-none-any.whl"
    )


def test_a_newer_release_without_a_file_for_the_target_is_noted() -> None:
    choice = chosen("foo", ["foo-1.0-py3-none-any.whl", "foo-2.0-cp312-cp312-manylinux_2_28_x86_64.whl"])
    assert (choice.version, choice.newest_release) == (Version("1.0"), Version("2.0"))
    assert choice.notes == ("foo 2.0 is newer, but has no file for cp312 aarch64",)


@pytest.mark.parametrize(
    ("requirement", "files", "explanation"),
    [
        ("foo", [], "foo has no files"),
        ("foo>2", [file("foo-1.0.tar.gz")], "no version of foo matches >2; the latest is 1.0"),
        ("foo>=1", [file("foo-1.0.tar.gz", yanked="")], "every file of foo that matches is yanked"),
        (
            "foo",
            [file("foo-1.0-cp312-cp312-win_amd64.whl"), file("foo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl")],
            "foo 1.0 has no file for cp312 aarch64; its wheels are for manylinux_2_28_x86_64, win_amd64",
        ),
        (
            "foo",
            [file("foo-1.0-cp310-cp310-manylinux_2_28_aarch64.whl"), file("foo-1.0-cp312-cp312-win_amd64.whl")],
            "foo 1.0 has no file for cp312 aarch64; its wheels for aarch64 are for cp310",
        ),
        (
            "foo",
            [file("foo-1.0-py3-none-any.whl", requires_python=">=3.14")],
            "foo-1.0-py3-none-any.whl requires Python >=3.14, not 3.12.16",
        ),
        (
            "foo",
            [file("foo-1.0-py3-none-any.whl", yanked=""), file("foo-1.0-cp312-cp312-win_amd64.whl")],
            "every file of foo 1.0 for cp312 aarch64 is yanked",
        ),
    ],
)
def test_when_nothing_fits_a_sentence_says_why(requirement: str, files: list[IndexFile], explanation: str) -> None:
    choice = chosen(requirement, files)
    assert (choice.chosen, choice.version, choice.explanation) == (None, None, explanation)


def test_the_marker_of_the_requirement_is_evaluated_for_the_target() -> None:
    requirement = 'torch==2.10.0; platform_machine == "x86_64"'
    assert chosen(requirement, TORCH, X86).applies
    elsewhere = chosen(requirement, TORCH, GRACE)
    assert (elsewhere.applies, elsewhere.chosen) == (False, None)
    assert elsewhere.explanation.startswith("torch is not installed on cp312 aarch64: its marker is platform_machine")


def test_a_marker_that_cannot_be_evaluated_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match=r"the marker of foo cannot be evaluated"):
        chosen('foo; os_name ~= "posix"', [])


def test_a_direct_reference_is_its_own_candidate() -> None:
    url = f"https://files.example.org/torch-2.12.0rc1-cp312-cp312-linux_aarch64.whl#sha256={'0' * 64}"
    choice = chosen(f"torch @ {url}", TORCH)
    assert choice.chosen is not None
    assert (choice.chosen.url, choice.chosen.hashes) == (url.partition("#")[0], {"sha256": "0" * 64})
    assert chosen(f"torch @ {url}", TORCH, X86).explanation == (
        "torch 2.12.0rc1 has no file for cp312 x86_64; its wheels are for linux_aarch64"
    )


@pytest.mark.parametrize("url", ["git+https://example.org/torch.git", "https://example.org/numpy-2.0-py3-none-any.whl"])
def test_a_direct_reference_to_something_else_is_explained(url: str) -> None:
    assert chosen(f"torch @ {url}", TORCH).explanation == "the URL does not lead to a file of torch"


def test_a_name_that_stands_for_too_many_tags_is_ignored() -> None:
    hostile = f"foo-1.0-{'.'.join('a' * 40)}-{'.'.join('b' * 40)}-{'.'.join('c' * 40)}.whl"
    (rejection,) = chosen("foo", [hostile]).rejected
    assert rejection.reason is Reason.NO_CANDIDATE
    assert "64000 tags" in rejection.sentence


@pytest.mark.parametrize(
    ("requirement", "versions"),
    [
        ("torch", {"2.11.0"}),
        ("torch>=2.9,<2.11", {"2.9.1", "2.10.0"}),
        ("torch==2.10.0", {"2.10.0"}),
        ("torch>2.11", {"2.12.0rc1"}),
        ("torch>5", set()),
    ],
)
def test_all_files_of_a_release(requirement: str, versions: set[str]) -> None:
    files = [*map(file, TORCH), file("torch-2.11.0.tar.gz"), file("torch-2.11.0-cp39-cp39-any.whl", yanked="")]
    names = [wheel.file_name for wheel in release_wheels(Requirement(requirement), files)]
    assert names == sorted(
        (n for n in TORCH if n.split("-")[1] in versions), key=lambda n: (Version(n.split("-")[1]), n)
    )
