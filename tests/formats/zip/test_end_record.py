"""The end of a zip archive."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.zips import ZipEntry, write_zip
from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.end_record import MAX_TAIL, EndRecordTruncatedError, find_end_record

MEMBERS = (ZipEntry("a.txt", b"alpha"), ZipEntry("b.txt", b"beta"))


def end_of(**options: Any) -> str:
    """The sentence with which an archive written with ``options`` is refused."""
    data = write_zip(MEMBERS, **options)
    with pytest.raises(FormatError) as error:
        find_end_record(data, len(data))
    return str(error.value)


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("comment", [b"", b"built by hand", b"x" * 0xFFFF])
def test_the_directory_is_found(zip64: bool, comment: bytes) -> None:
    data = write_zip(MEMBERS, zip64=zip64, comment=comment)
    end = find_end_record(data, len(data))
    assert (end.entries, end.zip64, end.comment_size) == (2, zip64, len(comment))
    assert data[end.directory_offset :].startswith(b"PK\1\2")
    assert data[end.directory_offset + end.directory_size :].startswith(b"PK\6\6" if zip64 else b"PK\5\6")


def test_an_archive_without_members() -> None:
    data = write_zip([])
    assert find_end_record(data, len(data)).entries == 0


@pytest.mark.parametrize("length", [22, 41, 42, 60, 97, 98, 150])
@pytest.mark.parametrize("comment", [b"", b"c" * 70, b"c" * 0xFFFF])
def test_a_short_tail_says_from_where_to_read_and_then_suffices(length: int, comment: bytes) -> None:
    data = write_zip((ZipEntry("big", bytes(200_000), method=0), *MEMBERS), zip64=True, comment=comment)
    starts = [len(data) - length]
    while True:
        try:
            end = find_end_record(data[starts[-1] :], len(data))
            break
        except EndRecordTruncatedError as error:
            starts.append(error.needed_offset)
    assert end == find_end_record(data, len(data))
    assert starts == sorted(set(starts), reverse=True)
    assert len(starts) <= 2
    assert len(data) - starts[-1] <= MAX_TAIL


def test_a_file_that_is_no_archive() -> None:
    text = b"this is not a wheel\n" * 10_000
    with pytest.raises(FormatError, match="no zip end record"):
        find_end_record(text[-MAX_TAIL:], len(text))
    with pytest.raises(FormatError, match="no zip end record"):
        find_end_record(b"", 0)


def test_an_archive_that_is_cut_off() -> None:
    data = write_zip(MEMBERS)
    with pytest.raises(FormatError, match="no zip end record"):
        find_end_record(data[:-30], len(data) - 30)
    with pytest.raises(FormatError, match=r"not reach exactly|no zip end record"):
        find_end_record(data[:-3], len(data) - 3)


def test_bytes_added_around_the_archive_are_noticed() -> None:
    assert "something precedes the archive" in end_of(prefix=b"#!/bin/sh\n")
    assert "something precedes the archive" in end_of(prefix=b"#!/bin/sh\n", zip64=True)
    assert "does not reach exactly to the end of the file" in end_of(suffix=b"\n")


def test_two_end_records_are_refused() -> None:
    # A whole end record, with its own fitting comment length, inside the comment.
    inner = b"PK\5\6" + bytes(16) + (3).to_bytes(2, "little") + b"abc"
    assert "two end records" in end_of(comment=inner)


def test_a_stored_archive_inside_the_archive_is_no_second_end_record() -> None:
    data = write_zip([ZipEntry("inner.zip", write_zip(MEMBERS), method=0)])
    assert find_end_record(data, len(data)).entries == 1


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"directory_offset": 10**6}, "but the file has only"),
        ({"directory_size": 10**6}, "but the file has only"),
        ({"directory_offset": 3}, "should end at byte"),
        ({"disk": 1}, "split over several disks"),
    ],
)
@pytest.mark.parametrize("zip64", [False, True])
def test_an_end_record_that_contradicts_the_file(told: dict[str, int], sentence: str, zip64: bool) -> None:
    assert sentence in end_of(end=told, zip64=zip64)


def test_too_many_entries_are_refused() -> None:
    assert "states 4294967296 entries; expected at most 250000" in end_of(end={"entries": 2**32}, zip64=True)


def test_a_directory_too_large_to_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheel_checks.formats.zip.end_record.MAX_DIRECTORY_SIZE", 100)
    assert "the central directory has 102 bytes; expected at most 100" in end_of()


def test_a_locator_on_another_disk() -> None:
    data = bytearray(write_zip(MEMBERS, zip64=True))
    data[-42 + 4] = 1
    with pytest.raises(FormatError, match="split over several disks"):
        find_end_record(bytes(data), len(data))


def test_zip64_and_ordinary_record_must_agree() -> None:
    data = bytearray(write_zip(MEMBERS, zip64=True))
    data[-14:-10] = (7).to_bytes(2, "little") * 2
    with pytest.raises(FormatError, match="contradict each other"):
        find_end_record(bytes(data), len(data))


def test_a_locator_that_points_far_away_costs_no_reading() -> None:
    data = bytearray(write_zip((ZipEntry("big", bytes(300_000), method=0),), zip64=True))
    data[-42 + 8 : -42 + 16] = bytes(8)
    with pytest.raises(FormatError, match="not just before") as error:
        find_end_record(bytes(data[-1000:]), len(data))
    assert not isinstance(error.value, EndRecordTruncatedError)
