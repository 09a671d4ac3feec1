"""GPU code that a library declares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.gpu.test_fatbin import REAL
from tests.support.fatbin import section
from wheel_checks.formats.gpu.fatbin import GpuCode, find_declared, read_fatbins

quick = settings(max_examples=150)

TORCH = b"cxx11_abi_1\0\0\0\0\0sm_80 sm_90 sm_100 sm_110 sm_120\0\0|LLL\0\0"


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


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
    assert read_fatbins(both) == read_fatbins(REAL["plain.fatbin"]) + read_fatbins(REAL["lz4.fatbin"])
