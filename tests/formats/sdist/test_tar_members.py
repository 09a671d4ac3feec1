"""Reading tar files while they pass: the members that tarfile writes, and bytes that no archiver writes."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sdists import tar
from wheel_checks.errors import FormatError
from wheel_checks.formats.sdist.tar_members import BLOCK, TarMember, gunzip, read_tar

FILES = {"demo-1.0/PKG-INFO": b"Name: demo\n", "demo-1.0/empty": b"", "demo-1.0/" + "deep/" * 60 + "name": b"x" * 600}


def pieces(data: bytes, size: int = 700) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def members(data: bytes, limit: int = 100) -> list[TarMember]:
    return list(read_tar(pieces(data), lambda _: limit))


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_names_sizes_and_small_contents(form: int) -> None:
    files = FILES if form != tarfile.USTAR_FORMAT else dict(list(FILES.items())[:2])
    found = members(tar(files, form))
    assert [(m.name, m.size) for m in found] == [(name, len(data)) for name, data in files.items()]
    assert [m.content for m in found] == [data if len(data) <= 100 else None for data in files.values()]


def test_folders_and_links_have_no_content_and_are_no_members() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind in (("demo", tarfile.DIRTYPE), ("demo/link", tarfile.SYMTYPE), ("demo/hard", tarfile.LNKTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        archive.addfile(tarfile.TarInfo("demo/setup.py"))
    assert [member.name for member in members(stream.getvalue())] == ["demo/setup.py"]


@pytest.mark.parametrize("blocks", [0, 2])
def test_the_map_of_a_sparse_file_is_passed_over(blocks: int) -> None:
    sparse = bytearray(tar({"sparse": b""})[:BLOCK])
    sparse[156:157], sparse[257:265] = b"S", b"ustar  \0"
    sparse[124:136], sparse[482] = b"00000000144\0", bool(blocks)  # 100 bytes are stored
    sparse[148:156] = b" " * 8
    sparse[148:156] = b"%06o\0 " % sum(sparse)
    maps = b"".join(bytes(504) + bytes([number < blocks - 1]) + bytes(7) for number in range(blocks))
    data = bytes(sparse) + maps + b"x" * 100 + bytes(BLOCK - 100) + tar({"next": b"1"})
    assert members(data) == [TarMember("next", 1, b"1")]


def test_a_size_in_base_256() -> None:
    header = bytearray(tar({"big": b""})[:BLOCK])
    header[124:136] = b"\x80" + (9 << 33).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (found,) = read_tar([bytes(header)], lambda _: 100)
    assert (found.size, found.content) == (9 << 33, None)


def test_an_archive_that_ends_early_gives_what_is_whole() -> None:
    data = tar({"a": b"1" * 50, "b": b"2" * 50})
    assert [member.name for member in members(data[: BLOCK * 3 + 10])] == ["a"]
    assert members(data[:100]) == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"PK\3\4" + b"x" * 600, "octal digits"),
        (tar({"a": b"1"})[:148] + b"0" * 8 + tar({"a": b"1"})[156:], "checksum"),
    ],
)
def test_what_is_no_tar_file(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        members(data)


def test_a_header_that_claims_gigabytes_is_refused_unread() -> None:
    header = bytearray(tar({"x" * 150: b""}, tarfile.GNU_FORMAT)[:BLOCK])
    header[124:136] = b"77777777777\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with pytest.raises(FormatError, match="a header of 8,589,934,591 bytes"):
        members(bytes(header))


def test_gzip_files_of_several_members_and_padding() -> None:
    data = gzip.compress(b"one") + gzip.compress(b"two") + b"\0" * 40
    assert b"".join(gunzip(pieces(data, 5))) == b"onetwo"


def test_a_bomb_is_stopped() -> None:
    bomb = gzip.compress(bytes(5 << 20))
    read: list[int] = []
    with pytest.raises(FormatError, match="more than 2,097,152 bytes"):
        read.extend(map(len, gunzip([bomb], largest=2 << 20)))
    assert sum(read) <= 2 << 20
    assert max(read) <= 1 << 20


def test_what_is_no_gzip_file() -> None:
    with pytest.raises(FormatError, match="does not unpack"):
        list(gunzip([zlib.compress(b"x")]))


@given(st.binary(max_size=2000), st.integers(0, 1500))
def test_any_bytes_give_members_or_an_error(noise: bytes, place: int) -> None:
    data = tar(FILES)
    changed = data[:place] + noise + data[place + len(noise) :]
    try:
        found = list(read_tar(pieces(changed), lambda _: 100))
    except FormatError:
        return
    assert all(member.content is None or len(member.content) <= 100 for member in found)
