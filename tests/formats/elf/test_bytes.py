"""The known bytes of a file: regions that grow."""

from __future__ import annotations

import mmap
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, KnownRegions, StreamKeeper, WholeFile, merge

SIZE = 24
UNKNOWN = -1


def test_a_head_and_a_tail() -> None:
    known = KnownRegions(10)
    known.add(0, b"abc")
    known.add(8, b"ij")
    assert known.read(1, 2) == b"bc"
    assert known.read(8, 2) == b"ij"
    with pytest.raises(BytesNeeded) as needed:
        known.read(2, 7)
    assert needed.value.ranges == (ByteRange(3, 5),)
    assert str(needed.value) == "bytes 3 to 8"


def test_bytes_outside_the_file_are_refused() -> None:
    with pytest.raises(ValueError, match="outside a file of 4 bytes"):
        KnownRegions(4).add(2, b"abc")


def test_a_file_mapped_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        view = WholeFile(data)
        assert (view.size, view.read(2, 3)) == (10, b"234")


def test_ranges_are_merged() -> None:
    assert merge([(8, 2), (0, 3), (3, 1), (2, 1)]) == ((0, 4), (8, 2))
    assert merge([(0, 3), (5, 1)], gap=2) == ((0, 6),)


pieces = st.lists(st.tuples(st.integers(0, SIZE), st.binary(max_size=12)), max_size=8)


@given(pieces)
def test_regions_are_as_if_every_byte_were_noted_on_its_own(added: list[tuple[int, bytes]]) -> None:
    known = KnownRegions(SIZE)
    model = [UNKNOWN] * SIZE
    for offset, data in added:
        with suppress(ValueError):
            known.add(offset, data)
            for position, byte in enumerate(data, start=offset):
                if model[position] == UNKNOWN:
                    model[position] = byte
    for start in range(SIZE):
        for end in range(start, SIZE + 1):
            wanted = model[start:end]
            gaps = merge((start + at, 1) for at, byte in enumerate(wanted) if byte == UNKNOWN)
            assert known.gaps(start, end - start) == gaps
            if not gaps:
                assert known.read(start, end - start) == bytes(wanted)


ranges = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, 9)), max_size=4)


@given(ranges, st.lists(st.integers(0, 7), max_size=12))
def test_a_stream_leaves_what_was_chosen(chosen: list[tuple[int, int]], chunk_sizes: list[int]) -> None:
    file = bytes(range(SIZE))
    keeper = StreamKeeper(SIZE, chosen)
    for size in chunk_sizes:
        keeper.feed(file[keeper.position : keeper.position + size])
    for position in range(SIZE):
        kept = position < keeper.position and any(start <= position < start + length for start, length in chosen)
        assert (keeper.regions.gaps(position, 1) == ()) == kept
        if kept:
            assert keeper.regions.read(position, 1) == file[position : position + 1]
    assert keeper.done == (keeper.position >= max((start + length for start, length in chosen), default=0))


def test_a_stream_longer_than_its_file_is_refused() -> None:
    keeper = StreamKeeper(3, [(0, 3)])
    keeper.feed(b"ab")
    with pytest.raises(ValueError, match="more than the 3 bytes"):
        keeper.feed(b"cd")
