"""No bytes whatever crash, hang or fill the memory of the ELF readers, and parts never give another result."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.elf import BuiltElf
from tests.support.elf_samples import BUILT, TORCH_LIKE, Ranges, real_files
from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import BytesNeeded, KnownRegions, WholeFile
from wheel_checks.formats.elf.file import MAX_ROUNDS, ElfFacts, Missing, Part, read_elf, read_elf_by_ranges

quick = settings(max_examples=150)

SMALL = [elf.build() for elf in BUILT.values()]
SMALL.append(replace(TORCH_LIKE, gap=20_000, contents={".nv_fatbin": bytes(64)}).build())
REAL = min(real_files(), key=lambda path: path.stat().st_size).read_bytes()
MEMORY = 30_000_000  # bytes


def outcome(data: bytes) -> ElfFacts | str:
    """All facts, or the sentence with which the file is refused."""
    try:
        return read_elf(WholeFile(data), list(Part))
    except FormatError as error:
        return str(error)


@st.composite
def lying_fields(draw: st.DrawFn, built: BuiltElf) -> bytes:
    """A file in which some fields have unexpected values: huge, tiny, off by one, or that of another field."""
    names = sorted(built.fields)
    values = st.one_of(
        st.sampled_from((0, 1, 0x7FFF, 0xFFFF, 2**31, 2**32 - 1, 2**60, 2**63, 2**64 - 1)),
        st.integers(0, 2**64 - 1),
        st.sampled_from(names).map(built.value),
        st.integers(0, len(built.data)),
    )
    return built.with_fields(draw(st.dictionaries(st.sampled_from(names), values, min_size=1, max_size=4)))


@st.composite
def damaged(draw: st.DrawFn, original: bytes) -> bytes:
    """``original`` with some bits flipped, and perhaps cut off."""
    data = bytearray(original)
    for _ in range(draw(st.integers(0, 6))):
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data[: draw(st.one_of(st.just(len(data)), st.integers(0, len(data))))])


lies = st.sampled_from(SMALL).flatmap(lying_fields)
damage = st.sampled_from([built.data for built in SMALL]).flatmap(damaged)


@quick
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda rest: b"\x7fELF\2\1\1" + rest)))
@example(b"")
@example(b"\x7fELF")
@example(b"\x7fELF\2\1\1" + b"\xff" * 200)
def test_any_bytes(data: bytes) -> None:
    assert outcome(data)


@settings(quick, max_examples=500)
@given(st.one_of(lies, damage))
def test_lies_and_damage_are_read_or_refused(data: bytes) -> None:
    assert outcome(data)


@quick
@given(damaged(REAL))
def test_a_damaged_real_file(data: bytes) -> None:
    assert outcome(data)


@settings(quick, max_examples=40)
@given(lies)
def test_memory_is_bounded_whatever_a_file_claims(data: bytes) -> None:
    tracemalloc.start()
    try:
        outcome(data)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


@quick
@given(st.one_of(lies, damage, st.sampled_from([built.data for built in SMALL])))
def test_by_ranges_a_file_is_read_or_refused_as_when_it_is_whole(data: bytes) -> None:
    whole = outcome(data)
    source = Ranges(data)
    if isinstance(whole, str):
        with pytest.raises(FormatError):
            read_elf_by_ranges(len(data), source.read_many, list(Part))
    else:
        assert read_elf_by_ranges(len(data), source.read_many, list(Part)) == whole
    assert source.rounds <= MAX_ROUNDS


@quick
@given(st.sampled_from(SMALL), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3000)), max_size=6))
def test_from_parts_of_a_file_no_other_facts_come(built: BuiltElf, places: list[tuple[float, int]]) -> None:
    data = built.data
    whole = outcome(data)
    assert isinstance(whole, ElfFacts)
    known = KnownRegions(len(data))
    known.add(0, data[:64])
    for share, length in places:
        start = int(share * (len(data) - 1))
        known.add(start, data[start : start + length])
    facts = read_elf(known, list(Part))
    for part in Part:
        read = getattr(facts, part)
        if isinstance(read, Missing):
            assert all(known.gaps(*piece) for piece in read.ranges)
            assert read.ranges
        else:
            assert read == getattr(whole, part)


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_files_by_ranges(path: Path) -> None:
    data = path.read_bytes()
    source = Ranges(data)
    assert read_elf_by_ranges(len(data), source.read_many) == read_elf(WholeFile(data))
    assert source.rounds <= 6
    assert source.bytes < 40_000


def test_a_header_cut_short_asks_for_the_rest() -> None:
    known = KnownRegions(len(REAL))
    known.add(0, REAL[:20])
    with pytest.raises(BytesNeeded) as needed:
        read_elf(known)
    assert needed.value.ranges[0].offset == 20
