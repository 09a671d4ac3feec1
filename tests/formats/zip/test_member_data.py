"""The contents of members."""

from __future__ import annotations

import tracemalloc
import zlib
from typing import Any

import pytest

from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.directory import Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import MAX_CHUNK, inflate, inflate_stream, method_name


def member_and_data(data: bytes = b"alpha " * 100, **options: Any) -> tuple[Member, bytes]:
    archive = write_zip([ZipEntry("a.txt", data, **options)])
    (member,) = read_zip(archive)[1]
    start = read_local_header(archive).header_size
    return member, archive[start : start + member.compressed_size]


@pytest.mark.parametrize("method", [0, 8])
@pytest.mark.parametrize("content", [b"", b"x", b"alpha " * 1000])
def test_contents_come_back(method: int, content: bytes) -> None:
    member, data = member_and_data(content, method=method)
    assert inflate(member, data, limit=10_000) == content


@pytest.mark.parametrize("method", [0, 8])
@pytest.mark.parametrize("step", [1, 1000, 10**9])
def test_a_stream_may_be_cut_anywhere(method: int, step: int) -> None:
    content = bytes(range(256)) * 40
    member, data = member_and_data(content, method=method)
    chunks = (data[start : start + step] for start in range(0, len(data), step))
    assert b"".join(inflate_stream(member, chunks)) == content


def test_pieces_are_bounded_and_a_bomb_costs_no_memory() -> None:
    member, data = member_and_data(bytes(40 * MAX_CHUNK))
    tracemalloc.start()
    try:
        lengths = [len(piece) for piece in inflate_stream(member, [data])]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(lengths) == 40 * MAX_CHUNK
    assert max(lengths) == MAX_CHUNK
    assert peak < 4 * MAX_CHUNK


def test_output_that_is_due_after_the_last_input_byte_is_not_lost() -> None:
    # At the end of the first piece zlib has taken all of the input and still owes the rest of a match.
    content = bytes(MAX_CHUNK + 100)
    member, data = member_and_data(content)
    assert inflate(member, data, limit=2 * MAX_CHUNK) == content


def refusal(member: Member, data: bytes, limit: int = 10_000) -> str:
    with pytest.raises(FormatError) as error:
        inflate(member, data, limit)
    return str(error.value)


def test_more_than_the_limit_is_refused() -> None:
    assert "'a.txt' has 600 bytes; expected at most 100" in refusal(*member_and_data(), limit=100)


def test_a_member_larger_than_it_claims_stops_early() -> None:
    member, data = member_and_data(bytes(40 * MAX_CHUNK), directory={"size": 10})
    assert "'a.txt' is larger than it claims; expected 10 bytes" in refusal(member, data)


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        ({"size": 601}, "ends after 600 bytes; expected 601 bytes"),
        ({"size": 599}, "larger than it claims; expected 599 bytes"),
        ({"crc32": 0xABCD}, "expected 0000abcd"),
        ({"method": 12}, "compressed by bzip2; expected stored or deflate"),
        ({"method": 93}, "compressed by zstd"),
        ({"method": 77}, "compressed by method 77"),
        ({"flags": 1}, "is encrypted"),
    ],
)
def test_a_lie_of_the_directory(lie: dict[str, int], sentence: str) -> None:
    assert sentence in refusal(*member_and_data(directory=lie))


def test_damaged_deflate_data() -> None:
    member, data = member_and_data()
    assert "not a valid deflate stream" in refusal(member, b"\xff" * len(data))
    assert "ends within its deflate stream" in refusal(member, data[:-2])
    assert "ends within its deflate stream" in refusal(member, b"")
    assert "bytes after the end of its deflate stream" in refusal(member, data + b"more")


def test_a_zlib_stream_is_no_raw_deflate_stream() -> None:
    member, _ = member_and_data()
    assert "'a.txt'" in refusal(member, zlib.compress(b"alpha " * 100))


def test_names_of_methods() -> None:
    assert [method_name(method) for method in (0, 8, 14, 9, 5)] == [
        "stored",
        "deflate",
        "LZMA",
        "deflate64",
        "method 5",
    ]
