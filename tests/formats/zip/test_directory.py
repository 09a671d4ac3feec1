"""The central directory of a zip archive."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import pytest

from tests.support.wheels import WheelBuilder, torch_like
from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.directory import EndRecord, overlaps, read_directory


def as_zipfile_sees(data: bytes) -> list[tuple[object, ...]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [
            (i.filename, i.compress_type, i.CRC, i.compress_size, i.file_size, i.header_offset, i.external_attr)
            for i in archive.infolist()
        ]


def as_we_see(data: bytes) -> list[tuple[object, ...]]:
    _, members, faults = read_zip(data)
    assert faults == ()
    return [
        (m.name, m.method, m.crc32, m.compressed_size, m.size, m.header_offset, m.external_attributes) for m in members
    ]


@pytest.mark.parametrize("zip64", [False, True])
def test_a_wheel_reads_as_zipfile_reads_it(zip64: bool) -> None:
    data = torch_like().add("torch/ünïcode.py", b"x", zip64=zip64).build(zip64=zip64)
    assert as_we_see(data) == as_zipfile_sees(data)


def test_what_zipfile_writes_reads_as_zipfile_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"a comment"
        archive.writestr("package/", b"")
        archive.writestr("package/ß.txt", b"text" * 100)
        with archive.open("streamed.bin", "w", force_zip64=True) as member:
            member.write(bytes(1000))
    data = path.read_bytes()
    assert as_we_see(data) == as_zipfile_sees(data)


def test_properties_of_a_member() -> None:
    data = write_zip(
        [
            ZipEntry("folder/", mode=0o040755),
            ZipEntry("link", b"target", mode=0o120777),
            ZipEntry("secret", b"x", flags=1),
            ZipEntry("plain", b"x"),
        ]
    )
    folder, link, secret, plain = read_zip(data)[1]
    assert (folder.is_directory, link.is_symlink, secret.is_encrypted) == (True, True, True)
    assert (plain.is_directory, plain.is_symlink, plain.is_encrypted) == (False, False, False)


def test_a_name_without_the_utf8_flag_is_cp437() -> None:
    data = write_zip([ZipEntry(b"\x81.txt")])
    assert [m.name for m in read_zip(data)[1]] == ["ü.txt"] == [row[0] for row in as_zipfile_sees(data)]


def test_a_name_that_lies_about_being_utf8() -> None:
    _, (member,), (fault,) = read_zip(write_zip([ZipEntry(b"\xff.txt", flags=0x800)]))
    assert (fault.kind, fault.member) == ("name-encoding", member.name)
    assert member.raw_name == b"\xff.txt"


@pytest.mark.parametrize(("told", "fault"), [(b"other.txt", ["extra"]), (b"a.txt", [])])
def test_an_extra_field_that_renames_the_member(told: bytes, fault: list[str]) -> None:
    content = b"\1" + struct.pack("<I", zlib.crc32(b"a.txt")) + told
    data = write_zip([ZipEntry("a.txt", extra=struct.pack("<HH", 0x7075, len(content)) + content)])
    assert [f.kind for f in read_zip(data)[2]] == fault


def test_an_extra_field_that_belongs_to_an_older_name_is_void() -> None:
    content = b"\1" + struct.pack("<I", zlib.crc32(b"old.txt")) + b"other.txt"
    data = write_zip([ZipEntry("a.txt", extra=struct.pack("<HH", 0x7075, len(content)) + content)])
    assert read_zip(data)[2] == ()


@pytest.mark.parametrize(("promised", "faults"), [(2, []), (1, ["count"]), (3, ["count"])])
def test_the_number_of_entries_is_compared(promised: int, faults: list[str]) -> None:
    _, members, found = read_zip(write_zip([ZipEntry("a"), ZipEntry("b")], end={"entries": promised}))
    assert len(members) == 2
    assert [fault.kind for fault in found] == faults


def test_faults_of_one_kind_do_not_hide_those_of_another() -> None:
    members = [ZipEntry(f"{number}", comment=b"text") for number in range(60)]
    _, _, faults = read_zip(write_zip([*members, ZipEntry(b"\xff.txt", flags=0x800)]))
    assert Counter(fault.kind for fault in faults) == {"index": 51, "name-encoding": 1}
    assert faults[-1].message == "and 10 more faults of this kind"


def test_bytes_after_the_last_entry() -> None:
    end, _, _ = read_zip(write_zip([ZipEntry("a")]))
    data = write_zip([ZipEntry("a")])[end.directory_offset :][: end.directory_size] + b"PK\5\5\1\0x"
    _, (fault,) = read_directory(data, EndRecord(end.directory_offset, len(data), 1, False, 0))
    assert (fault.kind, fault.message) == ("trailing", "7 bytes follow the last entry of the central directory")


def broken_directory(change: tuple[int, bytes], cut: int = 0) -> str:
    """The sentence about a directory of two entries after ``change`` (offset, bytes) and cutting ``cut`` bytes."""
    whole = write_zip([ZipEntry("a"), ZipEntry("b")])
    end = read_zip(whole)[0]
    data = bytearray(whole[end.directory_offset : end.directory_offset + end.directory_size])
    data[change[0] : change[0] + len(change[1])] = change[1]
    data = data[: len(data) - cut]
    with pytest.raises(FormatError) as error:
        read_directory(bytes(data), EndRecord(end.directory_offset, len(data), 2, False, 0))
    return str(error.value)


def test_a_malformed_entry_is_named_with_its_place() -> None:
    # Each entry takes 47 bytes; the directory begins at byte 66.
    assert "entry 2 of the central directory, at byte 113, does not start" in broken_directory((47, b"XX"))
    assert "entry 2 of the central directory, at byte 113, is truncated" in broken_directory((0, b""), cut=1)
    assert "entry 2 of the central directory, at byte 113, is truncated" in broken_directory((0, b""), cut=40)
    assert "entry 1 of the central directory, at byte 66, is truncated" in broken_directory((32, b"\xff\xff"))
    assert "claims to be on another disk" in broken_directory((34, b"\1\0"))
    assert "needs a zip64 extra field" in broken_directory((24, b"\xff\xff\xff\xff"))


def test_an_extra_field_that_runs_over_its_end() -> None:
    with pytest.raises(FormatError, match=r"entry 1 .* extra field \(0xcafe\) that exceeds"):
        read_zip(write_zip([ZipEntry("a", extra=struct.pack("<HH", 0xCAFE, 9))]))


def test_the_directory_must_have_the_promised_length() -> None:
    with pytest.raises(FormatError, match="has 3 bytes; expected 4 bytes"):
        read_directory(b"abc", EndRecord(0, 4, 0, False, 0))


def test_entries_are_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_zip([ZipEntry("a"), ZipEntry("b"), ZipEntry("c")], end={"entries": 2})
    monkeypatch.setattr("wheel_checks.formats.zip.directory.MAX_ENTRIES", 2)
    _, members, faults = read_zip(data)
    assert [member.name for member in members] == ["a", "b"]
    assert [fault.kind for fault in faults] == ["trailing"]


def test_of_two_zip64_fields_the_first_counts() -> None:
    second = struct.pack("<HHQQQ", 1, 24, 7, 7, 7)
    first = struct.pack("<HHQQQ", 1, 24, 5, 5, 0)
    lie = {"size": 0xFFFFFFFF, "compressed_size": 0xFFFFFFFF, "header_offset": 0xFFFFFFFF}
    data = write_zip([ZipEntry("a", b"alpha", method=0, extra=first + second, directory=lie)])
    _, members, faults = read_zip(data)
    assert [(m.size, m.compressed_size, m.header_offset) for m in members] == [(5, 5, 0)]
    assert [(fault.kind, fault.case) for fault in faults] == [("extra", "extra-twice")]


def test_neighbours_that_touch_do_not_overlap() -> None:
    data = write_zip([ZipEntry("a", b"1"), ZipEntry("b", b"2")])
    end, members, _ = read_zip(data)
    assert members[1].header_offset == 30 + 1 + members[0].compressed_size
    assert overlaps(members, end.directory_offset) == []


def test_members_of_a_sound_wheel_do_not_overlap() -> None:
    end, members, _ = read_zip(torch_like().build())
    assert overlaps(members, end.directory_offset) == []
    assert overlaps(reversed(members), end.directory_offset) == []


def test_two_entries_for_the_same_bytes_overlap() -> None:
    data = WheelBuilder().add("a", b"1").add("b", b"2", directory={"header_offset": 0}).build()
    end, members, _ = read_zip(data)
    assert [(a.name, b and b.name) for a, b in overlaps(members, end.directory_offset)] == [("a", "b")]


def test_a_large_member_overlaps_all_that_it_covers() -> None:
    data = write_zip([ZipEntry("a", b"1", directory={"compressed_size": 70}), ZipEntry("b"), ZipEntry("c")])
    end, members, _ = read_zip(data)
    assert [(a.name, b and b.name) for a, b in overlaps(members, end.directory_offset)] == [
        ("a", None),
        ("a", "b"),
        ("a", "c"),
    ]
