"""Local headers, and their offsets."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.local_header import disagreements, read_local_header


def compare(entry: ZipEntry) -> tuple[str, ...]:
    data = write_zip([entry])
    (member,) = read_zip(data)[1]
    return disagreements(read_local_header(data), member)


@pytest.mark.parametrize("zip64", [False, True])
def test_an_honest_header_says_where_the_data_begins(zip64: bool) -> None:
    data = write_zip([ZipEntry("folder/a.txt", b"alpha", method=0, zip64=zip64, extra=struct.pack("<HH", 0xCAFE, 0))])
    header = read_local_header(data)
    assert (header.name, header.method, header.size, header.compressed_size) == (b"folder/a.txt", 0, 5, 5)
    assert data[header.header_size :].startswith(b"alpha")
    assert compare(ZipEntry("a", b"alpha", zip64=zip64)) == ()


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        ({"name": b"b"}, "name 'b', but the directory says 'a'"),
        ({"method": 0}, "method 0, but the directory says 8"),
        ({"flags": 1}, "encryption flag 1, but the directory says 0"),
        ({"crc32": 1}, "CRC-32 '00000001', but the directory says"),
        ({"compressed_size": 1}, "compressed size 1, but the directory says 7"),
        ({"size": 1}, "size 1, but the directory says 5"),
    ],
)
def test_each_lie_is_named(lie: dict[str, Any], sentence: str) -> None:
    (found,) = compare(ZipEntry("a", b"alpha", local=lie))
    assert sentence in found


def test_sizes_in_a_data_descriptor_are_not_compared() -> None:
    sizes = {"crc32": 0, "compressed_size": 0, "size": 0}
    assert compare(ZipEntry("a", b"alpha", flags=8, local=sizes)) == ()
    assert len(compare(ZipEntry("a", b"alpha", flags=0, local=sizes))) == 3


def test_the_bytes_may_end_behind_the_name_unless_sizes_follow() -> None:
    extra = struct.pack("<HH", 0xCAFE, 4) + b"1234"
    data = write_zip([ZipEntry("a.txt", b"", extra=extra)])
    assert read_local_header(data[:35]).header_size == 43
    wide = write_zip([ZipEntry("a.txt", b"", zip64=True)])
    with pytest.raises(FormatError, match="truncated after 35 bytes; expected 55 bytes"):
        read_local_header(wide[:35])


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"PK\1\2" + bytes(40), b"\x7fELF" + bytes(60)])
def test_what_is_no_local_header(data: bytes) -> None:
    with pytest.raises(FormatError, match="refers to a local header that is missing"):
        read_local_header(data)


def test_zip64_sizes_that_are_missing() -> None:
    data = write_zip([ZipEntry("a.txt", b"", local={"size": 0xFFFFFFFF})])
    with pytest.raises(FormatError, match=r"the local header of 'a.txt' needs a zip64 extra field"):
        read_local_header(data)
