"""From TARGETs to the files of a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.releases import expectation_text
from tests.support.wheel_facts import listed
from wheel_checks.errors import NotFoundError, UsageError
from wheel_checks.facts.release.expectation import parse_release_expectation
from wheel_checks.formats.index.page import IndexFile
from wheelproof.release.plan import Candidate, find_files

ONE, TWO = "demo-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl"
INDEX = [listed(ONE), listed(TWO), listed("demo-2.0.tar.gz", yanked="broken"), listed("demo-3.0rc1-py3-none-any.whl")]


def find(*targets: str | Path, pre: bool = False, **expectation: object) -> tuple[Candidate, ...]:
    """The files that the targets name, with ``INDEX`` as the index."""
    expected = parse_release_expectation(expectation_text(**expectation).encode())  # type: ignore[arg-type]  # keys of the file
    return find_files(map(str, targets), expected, lambda _: INDEX, pre=pre)


def names(candidates: tuple[Candidate, ...]) -> list[str]:
    return [candidate.file_name for candidate in candidates]


@pytest.mark.parametrize(
    ("requirement", "pre", "found"),
    [
        ("demo==1.0", False, [ONE]),
        ("Demo", False, [TWO, "demo-2.0.tar.gz"]),
        ("demo", True, ["demo-3.0rc1-py3-none-any.whl"]),
        ("demo==3.0rc1", False, ["demo-3.0rc1-py3-none-any.whl"]),
        ("demo<3", False, [ONE, TWO, "demo-2.0.tar.gz"]),
    ],
)
def test_a_requirement_takes_all_files_of_its_versions(requirement: str, pre: bool, found: list[str]) -> None:
    assert names(find(requirement, pre=pre)) == found


def test_a_folder_takes_wheels_and_source_archives_and_reports_the_rest(tmp_path: Path) -> None:
    for name in (ONE, "demo-1.0.tar.gz", "other-1.0-py3-none-any.whl", "signatures.zip", "notes.txt"):
        (tmp_path / name).write_bytes(b"")

    candidates = find(tmp_path, other_files=["signatures.*"])

    assert names(candidates) == [ONE, "demo-1.0.tar.gz", "other-1.0-py3-none-any.whl"]
    assert candidates[0].place == tmp_path / ONE


def test_a_file_on_disk_and_on_the_index_is_one_file_read_from_disk(tmp_path: Path) -> None:
    (tmp_path / ONE).write_bytes(b"")

    (candidate,) = find(tmp_path / ONE, "demo==1.0")

    assert (candidate.place, candidate.listings) == (tmp_path / ONE, (INDEX[0],))
    assert find("demo==1.0", tmp_path / ONE)[0].place == tmp_path / ONE


def test_a_file_of_a_find_links_folder_is_read_from_disk(tmp_path: Path) -> None:
    path = tmp_path / ONE
    path.write_bytes(b"")
    expected = parse_release_expectation(expectation_text().encode())

    (candidate,) = find_files(["demo"], expected, lambda _: [IndexFile(ONE, path.as_uri())])

    assert candidate.place == path


def test_links_and_file_urls(tmp_path: Path) -> None:
    (tmp_path / TWO).write_bytes(b"")

    link, local = find(f"https://example.org/files/{ONE}", (tmp_path / TWO).as_uri())

    assert (link.place, local.place) == (f"https://example.org/files/{ONE}", tmp_path / TWO)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("other==1.0", "'other==1.0' is not a file of demo, the project of the expectation"),
        ("demo[extra]", "'demo[extra]' names more than a project and versions"),
        ("demo = 1", "'demo = 1' is not a folder, file, URL or requirement"),
        ("https://example.org/simple/", "'https://example.org/simple/' is not a link to a wheel or source archive"),
    ],
)
def test_a_target_that_means_nothing(target: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(target)

    assert caught.value.what.startswith(message)


@pytest.mark.parametrize("target", ["demo==4.0", "dist/demo-1.0-py3-none-any.whl", "absent/"])
def test_a_target_that_is_not_there(target: str) -> None:
    with pytest.raises(NotFoundError):
        find(target)


def test_a_folder_without_a_release(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="contains no wheel or source archive"):
        find(tmp_path)
