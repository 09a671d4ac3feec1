"""Fat binaries found in a file that is read once: the same answer as a scanner of the section gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fatbin import MAGIC, Image, fat_binary, section
from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu import fatbin_search
from wheel_checks.formats.gpu.fatbin import FatbinScanner, GpuCode
from wheel_checks.formats.gpu.fatbin_search import FatbinFinder

CODE = section(fat_binary("sm_90", "sm_100a", "compute_90"), fat_binary(Image("sm_80", 1000, "zstd")))
HOST = b"host code" * 1000  # 9,000 bytes, a multiple of 8


def found(data: bytes, chunk: int = 1 << 20) -> FatbinFinder:
    """A finder to which all of ``data`` was fed."""
    finder = FatbinFinder(len(data))
    for start in range(0, len(data), chunk):
        finder.feed(data[start : start + chunk])
    return finder


def scanned(data: bytes) -> GpuCode:
    """A scanner's result for the section."""
    scanner = FatbinScanner()
    scanner.feed(data)
    return scanner.finish()


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000, 1 << 20])
def test_a_section_amid_host_code(chunk: int) -> None:
    finder = found(HOST + CODE + HOST, chunk)

    assert finder.within(len(HOST), len(CODE)) == scanned(CODE)
    assert finder.within(len(HOST), len(CODE)).counts == {"sm_90": 1, "sm_100a": 1, "compute_90": 1, "sm_80": 1}


def test_two_sections_side_by_side_are_told_apart() -> None:
    other = section(fat_binary("sm_120"))
    finder = found(HOST + CODE + bytes(64) + other)

    assert finder.within(len(HOST), len(CODE) + 64) == scanned(CODE)
    assert finder.within(len(HOST) + len(CODE) + 64, len(other)).sass == ("sm_120",)


def test_zeros_between_containers() -> None:
    spaced = fat_binary("sm_90") + bytes(4096) + fat_binary("sm_100") + bytes(100)

    assert found(spaced, 1000).within(0, len(spaced)).sass == ("sm_90", "sm_100")


@pytest.mark.parametrize(
    "decoy",
    [
        MAGIC + bytes(12),  # version 0
        MAGIC + b"\1\0\x10\0" + b"\xff" * 8,  # a container larger than the file
        MAGIC + b"\1\0\x10\0" + (4000).to_bytes(8, "little") + b"\xff" * 8,  # no entry in it
    ],
)
def test_a_magic_number_in_host_code_hides_nothing(decoy: bytes) -> None:
    data = decoy + HOST + CODE

    assert found(data).within(len(decoy) + len(HOST), len(CODE)) == scanned(CODE)


@pytest.mark.parametrize(
    ("offset", "size"),
    [
        (0, len(HOST)),  # no fat binary at all
        (len(HOST) - 8, len(CODE) + 8),  # begins too early
        (len(HOST) + 8, len(CODE) - 8),  # begins within
        (len(HOST), len(CODE) - 8),  # ends within
        (len(HOST), len(CODE) + 8),  # ends in host code
    ],
)
def test_a_section_of_something_else(offset: int, size: int) -> None:
    with pytest.raises(FormatError, match="has something else at byte"):
        found(HOST + CODE + HOST).within(offset, size)


def test_an_unsound_container_is_told_when_its_section_is_asked_for() -> None:
    broken = bytearray(CODE)
    broken[16 + 28] = 1  # the architecture of the first entry: sm_1

    with pytest.raises(FormatError, match="architecture 1"):
        found(bytes(broken)).within(0, len(broken))


def test_a_container_cut_off_by_the_end_of_the_file_is_none() -> None:
    with pytest.raises(FormatError, match="has something else"):
        found(CODE[:-8]).within(0, len(CODE) - 8)


def test_too_many_containers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fatbin_search, "MAX_CONTAINERS", 1)
    with pytest.raises(FormatError, match="too many fat binaries"):
        found(CODE)


def test_too_many_unsound_containers_are_refused() -> None:
    unsound = fat_binary("sm_90")[:16].ljust(24, b"\xff")

    with pytest.raises(FormatError, match="too many invalid"):
        found(unsound * (fatbin_search.MAX_UNSOUND + 1) + bytes(1000))


pieces = st.lists(st.sampled_from([CODE, CODE[:40], MAGIC, b"\1\0\x10\0", bytes(8), b"x"]) | st.binary(max_size=40))


@settings(max_examples=200)
@given(pieces=pieces, chunk=st.integers(1, 200), offset=st.integers(0, 400), size=st.integers(0, 4000))
def test_whatever_the_bytes_the_chunks_make_no_difference(
    pieces: list[bytes], chunk: int, offset: int, size: int
) -> None:
    data = b"".join(pieces)
    answers: list[GpuCode | None] = []
    for step in (chunk, 1 << 20):
        try:
            answers.append(found(data, step).within(offset, size))
        except FormatError:
            answers.append(None)
    # The search resumes after the fault of an unsound container, which depends on the chunks: it may hide others.
    assert answers[0] == answers[1] or None in answers


@settings(max_examples=100)
@given(before=st.integers(0, 50), after=st.binary(max_size=50), chunk=st.integers(1, 300))
def test_a_sound_section_is_read_as_a_scanner_reads_it(before: int, after: bytes, chunk: int) -> None:
    data = b"y" * (8 * before) + CODE + after

    assert found(data, chunk).within(8 * before, len(CODE)) == scanned(CODE)


def test_everywhere_counts_what_no_section_lists() -> None:
    finder = found(HOST + CODE + HOST + fat_binary("sm_120") + MAGIC + bytes(12), 1000)

    assert finder.everywhere == scanned(CODE) + scanned(fat_binary("sm_120"))
