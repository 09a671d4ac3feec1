"""GPU code that is not read whole: entries found in a window, and what a library declares."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.gpu.test_fatbin import REAL
from tests.support.fatbin import Image, fat_binary, section
from wheel_checks.formats.gpu.fatbin import GpuCode, find_declared, read_fatbins, sample

quick = settings(max_examples=150)

TORCH = b"cxx11_abi_1\0\0\0\0\0sm_80 sm_90 sm_100 sm_110 sm_120\0\0|LLL\0\0"


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("name", REAL)
def test_sampling_a_whole_section_finds_all_that_can_run(name: str) -> None:
    runnable = [entry for entry in read_fatbins(REAL[name]) if entry.kind != "lto"]
    assert sample(REAL[name]) == runnable


@pytest.mark.parametrize("start", [1, 15, 17, 2000, 5000])
def test_a_window_that_begins_anywhere_gives_the_headers_in_it(start: int) -> None:
    whole = read_fatbins(REAL["zstd.fatbin"])
    found = sample(REAL["zstd.fatbin"][start:])
    assert tuple(found) == whole[len(whole) - len(found) :]
    assert len(found) == {1: 9, 15: 9, 17: 8, 2000: 6, 5000: 3}[start]


def test_a_header_that_the_window_cuts_is_not_believed() -> None:
    data = fat_binary("sm_90", "sm_100")
    assert [entry.label for entry in sample(data[: -200 - 1])] == ["sm_90"]
    assert [entry.label for entry in sample(data[:-200])] == ["sm_90", "sm_100"]


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (2, b"\x02"),  # attributes
        (8, b"\xc9"),  # payload size, not a multiple of 8
        (15, b"\x01"),  # payload size, too large
        (16, b"\x01"),  # a compressed size without compression
        (20, b"\x01"),  # offset of options
        (28, b"\x01"),  # architecture
        (32, b"\xff"),  # identifier outside the header
        (40, b"\x10"),  # not 64-bit
        (47, b"\x01"),  # flags that nobody has seen
        (55, b"\x01"),  # a field that is always 0
        (64, b"\x7eELF"),  # no ELF
    ],
)
def test_what_nvcc_does_not_write_is_not_believed(offset: int, value: bytes) -> None:
    data = bytearray(b"noise" + Image("sm_90", size=200).build())
    assert len(sample(bytes(data))) == 1
    data[5 + offset : 5 + offset + len(value)] = value
    assert sample(bytes(data)) == []


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (4, b"\x44"),  # header size, not a multiple of 8
        (16, b"\xc0"),  # padded to more than the next multiple of 8
        (56, b"\x00\x00"),  # inflated to nothing
    ],
)
def test_compressed_ptx_that_nvcc_does_not_write_is_not_believed(offset: int, value: bytes) -> None:
    data = bytearray(Image("compute_90", size=200, compression="lz4").build() + bytes(8))
    assert len(sample(bytes(data))) == 1
    data[offset : offset + len(value)] = value
    assert sample(bytes(data)) == []


def test_noise_gives_nothing() -> None:
    assert sample(random.Random(20261120).randbytes(8 << 20)) == []


@quick
@given(st.binary(max_size=300), st.sampled_from(sorted(REAL)), st.integers(0, 4000), st.integers(0, 4000))
def test_any_window_gives_only_what_is_there(noise: bytes, name: str, start: int, stop: int) -> None:
    for entry in sample(noise + REAL[name][start:stop] + noise):
        assert entry in read_fatbins(REAL[name])


@quick
@given(st.binary(max_size=2000).map(lambda noise: noise + b"\x02\0\x01\x01@\0\0\0" * 20 + noise))
def test_any_bytes_as_a_window(window: bytes) -> None:
    assert len(sample(window)) * 64 <= len(window)


def test_the_declaration_of_torch() -> None:
    declared = find_declared([TORCH])
    assert declared is not None
    assert declared.sass == ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120")
    assert declared.certainty == "declared"
    assert set(declared.counts.values()) == {0}


def test_a_declaration_with_ptx_and_suffixes() -> None:
    declared = find_declared([b"\0sm_90a sm_120f compute_120\0"])
    assert declared is not None
    assert (declared.sass, declared.ptx) == (("sm_90a", "sm_120f"), ("compute_120",))


@pytest.mark.parametrize("size", range(1, 40))
def test_a_declaration_split_over_chunks(size: int) -> None:
    assert find_declared(chunked(bytes(3000) + TORCH + bytes(3000), size)) == find_declared([TORCH])


def test_reading_stops_at_the_list() -> None:
    def chunks() -> Iterator[bytes]:
        yield TORCH
        pytest.fail("the rest was read")

    assert find_declared(chunks()) is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0sm_\0",
        b"\0requires sm_80 sm_90\0",  # part of a sentence
        b"\0sm_80 sm_90 or newer\0",
        b"\0sm_80, sm_90\0",
        b"\0sm_80\0sm_90\0",  # the names of two, and no list
        b"\0sm_80 sm_90",  # no end
    ],
)
def test_what_is_not_a_declaration(data: bytes) -> None:
    assert find_declared([data]) is None


def test_one_label_alone_is_a_declaration() -> None:
    declared = find_declared([b"\0sm_90\0 and again \0sm_90\0"])
    assert declared == GpuCode({"sm_90": 0}, "declared", {})


def test_the_list_beats_labels_that_stand_alone() -> None:
    declared = find_declared([b"\0sm_50\0", b"\0sm_60\0", TORCH])
    assert declared == find_declared([TORCH])


@quick
@given(st.lists(st.one_of(st.binary(max_size=50), st.sampled_from((b"\0", b"sm_80", b" ", b"sm_90 sm_100")))))
@example([b"\0sm_80", b" ", b"sm_90", b"\0"])
def test_any_bytes_declare_the_same_in_one_piece_and_in_chunks(chunks: list[bytes]) -> None:
    assert find_declared(chunks) == find_declared([b"".join(chunks)])


def test_two_sections_one_after_the_other() -> None:
    both = section(REAL["plain.fatbin"], alignment=4096) + REAL["lz4.fatbin"]
    assert tuple(sample(both)) == read_fatbins(both)
