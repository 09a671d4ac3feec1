"""No bytes crash or hang a reader: only FormatError may escape, and the results keep their promises."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.wheels import WheelBuilder, torch_like
from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.core_metadata import parse_core_metadata
from wheel_checks.formats.wheel.record import parse_record
from wheel_checks.formats.wheel.version_file import parse_version_file
from wheel_checks.formats.wheel.wheel_file import parse_wheel_file
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.formats.zip.directory import EndRecord, Member, overlaps, read_directory
from wheel_checks.formats.zip.end_record import EndRecordTruncatedError, find_end_record
from wheel_checks.formats.zip.file_signature import describe_head
from wheel_checks.formats.zip.local_header import disagreements, read_local_header
from wheel_checks.formats.zip.member_data import MAX_CHUNK, inflate, inflate_stream

quick = settings(max_examples=150)

SMALL_WHEEL = WheelBuilder().add("demo/__init__.py", "x = 1\n" * 40).add("demo/ü.so", b"\x7fELF", zip64=True).build()
SMALL_ZIP64 = write_zip([ZipEntry("a", b"alpha", method=0), ZipEntry("b", b"beta" * 50)], zip64=True, comment=b"hello")
TORCH = zipfile.ZipFile(io.BytesIO(torch_like().build()))
TEXTS = {
    name.rpartition("/")[2]: TORCH.read(name)
    for name in TORCH.namelist()
    if name.endswith(("METADATA", "WHEEL", "RECORD", "version.py"))
}
TORCH.close()


@st.composite
def damaged(draw: st.DrawFn, original: bytes) -> bytes:
    """``original`` with a few bytes overwritten, inserted or removed, and perhaps cut off at either end."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.sampled_from((0, 1, 1, 2, 4, 40))))
        data[start:stop] = draw(
            st.one_of(st.binary(max_size=4), st.sampled_from((b"\xff" * 4, b"\xff" * 2, b"PK\5\6")))
        )
    cut = draw(st.sampled_from((0, 0, 0, 1, 22, 200)))
    return bytes(data[cut:]) if draw(st.booleans()) else bytes(data[: len(data) - cut])


def read_everything(data: bytes) -> None:
    """Read an archive as far as it goes, as the callers of the readers do."""
    end, members, _ = read_zip(data)
    assert 0 <= end.directory_offset <= end.directory_offset + end.directory_size <= len(data)
    overlaps(members, end.directory_offset)
    for member in members:
        with suppress(FormatError):
            header = read_local_header(data[member.header_offset : member.header_offset + 200])
            disagreements(header, member)
            start = member.header_offset + header.header_size
            content = inflate(member, data[start : start + member.compressed_size], limit=10_000)
            assert len(content) == member.size


@quick
@given(st.binary(max_size=400))
@example(b"")
@example(b"PK\5\6" + bytes(18))
@example(b"PK\5\6" + b"\xff" * 18)
def test_any_bytes_as_an_archive(data: bytes) -> None:
    with suppress(FormatError):
        read_everything(data)


@quick
@given(st.one_of(damaged(SMALL_WHEEL), damaged(SMALL_ZIP64)))
def test_a_damaged_archive(data: bytes) -> None:
    with suppress(FormatError):
        read_everything(data)


@quick
@given(st.one_of(damaged(SMALL_WHEEL), damaged(SMALL_ZIP64)), st.data())
def test_a_tail_of_any_length_makes_progress(data: bytes, draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, len(data)))
    with suppress(FormatError):
        try:
            find_end_record(data[start:], len(data))
        except EndRecordTruncatedError as error:
            assert 0 <= error.needed_offset < start  # noqa: PT017  # a promise about this exception, if it comes


@quick
@given(st.binary(max_size=300), st.integers(0, 5))
def test_any_bytes_as_a_directory(data: bytes, entries: int) -> None:
    with suppress(FormatError):
        members, _ = read_directory(data, EndRecord(0, len(data), entries, False, 0))
        assert len(members) * 46 <= len(data)


@quick
@given(st.binary(max_size=100))
def test_any_bytes_as_a_local_header(rest: bytes) -> None:
    with suppress(FormatError):
        assert read_local_header(b"PK\3\4" + rest).header_size >= 30


@quick
@given(st.binary(max_size=200), st.sampled_from((0, 8, 12)), st.integers(0, 300), st.lists(st.binary(max_size=40)))
def test_any_bytes_as_a_member(data: bytes, method: int, size: int, chunks: list[bytes]) -> None:
    member = Member("a", b"a", method, 0, 0, len(data), size, 0, 0, 3)
    with suppress(FormatError):
        assert len(inflate(member, data, limit=100)) <= 100
    with suppress(FormatError):
        assert all(len(piece) <= MAX_CHUNK for piece in inflate_stream(member, chunks))


@quick
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0/\\"), min_size=1), st.binary(), max_size=5
    )
)
def test_sound_archives_read_as_zipfile_reads_them(files: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    data = buffer.getvalue()
    _, members, faults = read_zip(data)
    assert faults == ()
    contents = {}
    for member in members:
        header = read_local_header(data[member.header_offset :])
        assert disagreements(header, member) == ()
        start = member.header_offset + header.header_size
        contents[member.name] = inflate(member, data[start : start + member.compressed_size], limit=10**6)
    assert contents == files


TEXT_READERS: dict[str, Callable[[bytes], object]] = {
    "METADATA": parse_core_metadata,
    "WHEEL": parse_wheel_file,
    "RECORD": parse_record,
    "version.py": lambda data: parse_version_file("version.py", data),
}


@pytest.mark.parametrize("name", TEXT_READERS)
@quick
@given(st.data())
def test_any_or_damaged_text(name: str, draw: st.DataObject) -> None:
    data = draw.draw(st.one_of(st.binary(max_size=300), damaged(TEXTS[name])))
    with suppress(FormatError):
        assert TEXT_READERS[name](data) == TEXT_READERS[name](data)


@quick
@given(st.binary(max_size=600))
def test_any_bytes_have_a_description(head: bytes) -> None:
    assert describe_head(head)


@quick
@given(st.one_of(st.text(max_size=60), st.text("ab-._19+!py3noneany", max_size=60)))
def test_any_text_as_a_file_name(stem: str) -> None:
    with suppress(FormatError):
        name = parse_wheel_name(f"{stem}.whl")
        assert name.file_name.startswith(f"{name.distribution}-{name.version}-")
        assert name.tags
