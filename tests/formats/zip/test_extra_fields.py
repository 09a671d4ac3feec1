"""Extra fields and data descriptors: any bytes give faults or a FormatError, and right ones give none."""

from __future__ import annotations

import contextlib
import struct

from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.data_descriptor import LONGEST, SIGNATURE, DataDescriptor, read_descriptor
from wheel_checks.formats.zip.extra_fields import ALL_ONES, extra_faults, extra_fields, has_zip64, widen

NUMBERS = st.integers(0, ALL_ONES)
FIELDS = st.lists(st.tuples(st.sampled_from([1, 0x5455, 0x7075, 0x6375]), st.binary(max_size=40)), max_size=4)


def written(fields: list[tuple[int, bytes]]) -> bytes:
    """The bytes of extra fields."""
    return b"".join(struct.pack("<HH", identifier, len(content)) + content for identifier, content in fields)


@given(
    st.binary(max_size=200),
    st.binary(max_size=20),
    st.tuples(NUMBERS, NUMBERS),
    st.none() | st.tuples(NUMBERS, NUMBERS),
)
def test_any_bytes(extra: bytes, name: bytes, sizes: tuple[int, int], place: tuple[int, int] | None) -> None:
    with contextlib.suppress(FormatError):
        assert len(extra_faults(extra, name, sizes, place)) <= 2 * len(extra) + 1


@given(FIELDS)
def test_fields_come_back_as_they_were_written(fields: list[tuple[int, bytes]]) -> None:
    assert list(extra_fields(written(fields))) == fields
    assert has_zip64(written(fields)) == any(identifier == 1 for identifier, _ in fields)


def test_a_zip64_field_holds_what_the_header_leaves_to_it() -> None:
    extra = written([(1, struct.pack("<QQQI", 7, 5, 3, 0))])
    assert extra_faults(extra, b"a", (ALL_ONES, ALL_ONES), (ALL_ONES, 0xFFFF)) == []
    assert [fault.case for fault in extra_faults(extra, b"a", (ALL_ONES, ALL_ONES), (ALL_ONES, 0))] == ["zip64-length"]
    assert widen(extra, ALL_ONES, ALL_ONES, ALL_ONES) == [7, 5, 3]


def test_a_local_header_may_repeat_its_sizes() -> None:
    extra = written([(1, struct.pack("<QQ", 7, 5))])
    assert extra_faults(extra, b"a", (7, 5), None) == []
    assert [fault.case for fault in extra_faults(extra, b"a", (7, 5), (0, 0))] == ["zip64-unneeded"]


@given(NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.booleans(), st.binary(max_size=9))
def test_descriptors(crc32: int, packed: int, size: int, signed: bool, zip64: bool, more: bytes) -> None:
    data = SIGNATURE * signed + struct.pack("<IQQ" if zip64 else "<III", crc32, packed, size)
    found = read_descriptor(data + more, zip64=zip64)
    if signed or crc32 != int.from_bytes(SIGNATURE, "little"):
        assert found == DataDescriptor(crc32, packed, size, len(data))
    assert len(data) <= LONGEST
    assert read_descriptor(data[: 4 * signed + 8], zip64=zip64) is None
