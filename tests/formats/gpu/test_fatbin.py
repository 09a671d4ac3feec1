"""Fat binaries read as cuobjdump lists them, and refused for a wrong size."""

from __future__ import annotations

import struct
import tomllib
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.fatbin import MAGIC, Image, fat_binary, section
from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu.fatbin import MAX_TARGETS, FatbinScanner, GpuCode, GpuEntry, read_fatbins

FOLDER = Path(__file__).parents[2] / "data" / "fatbin"
LISTINGS: dict[str, Any] = tomllib.loads((FOLDER / "listings.toml").read_text(encoding="utf-8"))
REAL = {name: (FOLDER / name).read_bytes() for name in LISTINGS}

quick = settings(max_examples=150)


def scan(data: bytes, size: int = 1 << 20) -> GpuCode:
    """The summary of a section fed in chunks of ``size`` bytes."""
    scanner = FatbinScanner()
    for start in range(0, len(data), size):
        scanner.feed(data[start : start + size])
    return scanner.finish()


def refusal(data: bytes) -> str:
    """The sentence with which a section is refused."""
    with pytest.raises(FormatError) as error:
        read_fatbins(data)
    return str(error.value)


@pytest.mark.parametrize("name", LISTINGS)
def test_what_nvcc_made_is_listed_as_cuobjdump_lists_it(name: str) -> None:
    entries = read_fatbins(REAL[name])
    # cuobjdump does not print the f of machine code
    assert [e.label.rstrip("f") for e in entries if e.kind == "elf"] == LISTINGS[name]["cuobjdump"]["elf"]
    ptx = [e.label.replace("compute", "sm") for e in entries if e.kind == "ptx"]
    assert ptx == LISTINGS[name]["cuobjdump"]["ptx"]
    assert [f"{e.label} {e.compression}".rstrip() for e in entries] == LISTINGS[name]["entries"]


def test_an_entry() -> None:
    data = fat_binary(Image("sm_100a", size=321, compression="zstd"))
    assert read_fatbins(data) == (GpuEntry("elf", 100, "a", 328, "zstd", toolkit="ABI 8 from sm_100"),)


def test_a_kind_that_we_do_not_know_is_listed_all_the_same() -> None:
    assert [entry.label for entry in read_fatbins(fat_binary("kind16_100", "sm_90"))] == ["kind16_100", "sm_90"]


def test_a_compression_that_we_do_not_know_is_told_from_none() -> None:
    data = bytearray(fat_binary(Image("sm_90", size=200)))
    data[16 + 16 : 16 + 20] = struct.pack("<I", 197)  # the size as compressed
    assert read_fatbins(bytes(data)) == (GpuEntry("elf", 90, "", 200, "unknown", toolkit="ABI 8"),)


def test_the_summary_of_a_section() -> None:
    one = fat_binary("sm_90", "sm_100a", "compute_90")
    two = fat_binary("sm_90", "compute_90")
    code = scan(section(one, two, two, alignment=256))
    assert code.counts == {"sm_90": 3, "sm_100a": 1, "compute_90": 3}
    assert code.certainty == "exact"
    assert code.containers == {
        frozenset({"sm_90", "sm_100a", "compute_90"}): 1,
        frozenset({"sm_90", "compute_90"}): 2,
    }


def test_labels_are_sorted_by_architecture() -> None:
    code = scan(fat_binary("sm_120", "sm_100a", "compute_120", "sm_90a", "sm_100", "sm_90", "lto_80", "compute_90a"))
    assert code.sass == ("sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120")
    assert code.ptx == ("compute_90a", "compute_120")


def test_summaries_add_up_to_the_less_certain_one() -> None:
    exact = scan(fat_binary("sm_90", "sm_100"))
    declared = GpuCode({"sm_90": 0, "sm_80": 0}, "declared", {})
    assert (exact + exact).certainty == "exact"
    assert exact + declared == GpuCode(
        {"sm_90": 1, "sm_100": 1, "sm_80": 0}, "declared", {frozenset({"sm_90", "sm_100"}): 1}, {}, {"ABI 8": 1}
    )


@pytest.mark.parametrize("data", [b"", bytes(7), bytes(5000), fat_binary(), section(fat_binary(), alignment=64)])
def test_a_section_without_entries(data: bytes) -> None:
    assert scan(data) == GpuCode({}, "exact", {})


@pytest.mark.parametrize("size", [1, 3, 15, 16, 17, 63, 64, 65, 1000])
def test_chunks_of_any_size_give_the_same(size: int) -> None:
    data = section(*REAL.values(), fat_binary("sm_80", Image("sm_121a", header_size=120)), alignment=256)
    assert scan(data, size) == scan(data)


def test_the_payload_is_never_held() -> None:
    def chunks() -> Iterator[bytes]:
        entry = Image("sm_90", size=8).build()
        size = 64 << 20
        header = entry[:8] + struct.pack("<Q", size) + entry[16:64]
        yield MAGIC + struct.pack("<HHQ", 1, 16, 64 + size) + header
        for _ in range(64):
            yield bytes(1 << 20)

    tracemalloc.start()
    scanner = FatbinScanner()
    for chunk in chunks():
        scanner.feed(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert scanner.finish().counts == {"sm_90": 1}
    assert peak < 4 << 20


@pytest.mark.parametrize(
    ("offset", "value", "sentence"),
    [
        (0, b"\x51", "magic 0xBA55ED51"),
        (4, b"\x02", "version 2"),
        (6, b"\x18", "header size 24"),
        (8, b"\xff", "inside a container"),
        (16 + 4, b"\x38", "entry's header size 56; expected at least 64"),
        (16 + 7, b"\xff", "entry's header size"),
        (16 + 8, b"\xd0", "entry's payload size 208; expected at most 200"),
        (16 + 15, b"\x80", "entry's payload size"),
        (16 + 28, b"\x00", "entry's architecture 0"),
        (16 + 31, b"\xff", "entry's architecture"),
    ],
)
def test_a_lying_field_is_named(offset: int, value: bytes, sentence: str) -> None:
    data = bytearray(fat_binary(Image("sm_90", size=200)))
    data[offset : offset + len(value)] = value
    assert sentence in refusal(bytes(data))


def test_a_header_is_not_endless() -> None:
    assert read_fatbins(fat_binary(Image("sm_90", header_size=1 << 20)))
    assert "entry's header size 1048584; expected" in refusal(fat_binary(Image("sm_90", header_size=(1 << 20) + 8)))


def test_a_container_must_end_with_an_entry() -> None:
    data = fat_binary("sm_90") + bytes(24)
    data = data[:8] + struct.pack("<Q", len(data) - 16) + data[16:]
    assert "inside a container" in refusal(data)
    assert "entry's header size 0" in refusal(data + bytes(64))


def test_containers_begin_at_multiples_of_eight() -> None:
    assert "offset 4; expected a multiple of 8" in refusal(bytes(4) + fat_binary("sm_90"))


def test_nothing_but_zeros_lies_between_containers() -> None:
    data = fat_binary("sm_90") + b"something else, 16+"
    assert f"at byte {len(data) - 19} of its section has magic" in refusal(data)


@pytest.mark.parametrize("kept", [1, 15, 16, 17, 79, 80, 81, 279])
def test_a_section_that_is_cut_off(kept: int) -> None:
    data = fat_binary(Image("sm_90", size=200))
    assert len(data) == 280
    assert "inside a container" in refusal(data[:kept])


def test_targets_without_end_are_refused() -> None:
    images = [Image(f"kind{kind}_{sm}", size=0) for kind in (20, 21) for sm in range(100, 100 + MAX_TARGETS // 2)]
    assert len(read_fatbins(fat_binary(*images))) == MAX_TARGETS
    assert "targets" in refusal(fat_binary(*images, "sm_90"))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A section of nvcc's with a few bytes changed, and perhaps cut off."""
    data = bytearray(draw(st.sampled_from([*REAL.values(), section(*REAL.values())])))
    interesting = st.sampled_from((0, 4, 6, 8, 12, 15, 16, 20, 24, 28, 31, 44, 58, 61, 80))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.one_of(interesting, st.integers(0, len(data) - 1)))
        data[place : place + 1] = draw(st.binary(min_size=0, max_size=9))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@quick
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(MAGIC.__add__), damaged()), st.integers(1, 700))
@example(MAGIC + struct.pack("<HHQ", 1, 16, 2**64 - 1), 1)
def test_any_bytes_are_read_or_refused_alike_in_one_piece_and_in_chunks(data: bytes, size: int) -> None:
    try:
        entries = read_fatbins(data)
    except FormatError as refused:
        with pytest.raises(FormatError) as error:
            scan(data, size)
        assert str(error.value) == str(refused)  # noqa: PT017  # the two refusals are compared
    else:
        assert sum(scan(data, size).counts.values()) == len(entries)
        assert sum(64 + entry.size for entry in entries) <= len(data)


@quick
@given(st.lists(st.binary(max_size=100), max_size=30))
def test_what_is_held_between_chunks_is_bounded(chunks: list[bytes]) -> None:
    scanner = FatbinScanner()
    with suppress(FormatError):
        for chunk in chunks:
            scanner.feed(chunk)
            assert len(scanner._held) < 256


@pytest.mark.parametrize(
    ("images", "toolkits"),
    [
        ((Image("sm_90", abi=7, release="12.4"), Image("compute_90", ptx_isa="8.4")), {"12.4": 1}),
        ((Image("sm_90", abi=7, compression="lz4"), Image("compute_90", ptx_isa="8.7")), {"PTX 8.7": 1}),
        ((Image("sm_90", abi=7, compression="lz4"), Image("sm_100", compression="lz4")), {"ABI 7": 1}),
        ((Image("sm_75", compression="zstd"), Image("sm_100", compression="zstd")), {"ABI 8": 1}),
        ((Image("sm_100", compression="zstd"),), {"ABI 8 from sm_100": 1}),
        ((Image("sm_100", abi=9),), {"": 1}),
        ((Image("sm_100", release="12.8"),), {"ABI 8 from sm_100": 1, "12.8": 0}),
        ((Image("sm_90", abi=7, release="99.9"),), {"ABI 7": 1}),
        (("lto_80",), {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_the_toolkit_of_a_compiled_file(images: tuple[Image | str, ...], toolkits: dict[str, int], size: int) -> None:
    data = section(fat_binary(*images))
    assert scan(data, size).toolkits == toolkits
    assert scan(data + data, size).toolkits == {toolkit: 2 * count for toolkit, count in toolkits.items()}


@pytest.mark.parametrize("name", ["zstd.fatbin", "plain.fatbin", "default.fatbin"])
def test_nvcc_of_cuda_13_shows_its_toolkit(name: str) -> None:
    assert set(scan(REAL[name]).toolkits) <= {"PTX 9.0", "ABI 8", "13.0"}
    assert scan(REAL[name]).toolkits


def skipping(data: bytes, size: int) -> GpuCode:
    """The summary of a section without its payloads, read in pieces of ``size`` bytes."""
    scanner, position = FatbinScanner(), 0
    while position < len(data):
        scanner.feed(data[position : position + size])
        position = scanner.skip(len(data))
    return scanner.finish()


@given(st.one_of(st.binary(max_size=300).map(MAGIC.__add__), damaged()), st.integers(1, 700))
@quick
def test_leaving_payloads_out_makes_no_difference(data: bytes, size: int) -> None:
    def outcome(read: Callable[[bytes, int], GpuCode]) -> GpuCode | str:
        try:
            code = read(data, size)
        except FormatError as error:
            return str(error)
        return replace(code, toolkits={one: count for one, count in code.toolkits.items() if count})  # not by texts

    assert outcome(skipping) == outcome(scan)
