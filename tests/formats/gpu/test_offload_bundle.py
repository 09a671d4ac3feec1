"""Offload bundles: AMD's GPU code, plain and compressed, whole and in parts."""

from __future__ import annotations

import struct
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu.bundle_sample import sample_bundles
from wheel_checks.formats.gpu.offload_bundle import BundleScanner, MoreNeededError, read_bundle
from wheel_checks.formats.zip.deflate_blocks import Inflated

HOST = "host-x86_64-unknown-linux--"


def bundle(*targets: str, size: int = 5000) -> bytes:
    """A bundle with an empty entry for the host and one for each target, 4096-aligned as clang does it."""
    names = [HOST, *(f"hipv4-amdgcn-amd-amdhsa--{target}" for target in targets)]
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    body = b""
    for name in names:
        length = 0 if name == HOST else size
        header += struct.pack("<QQQ", 4096 + len(body), length, len(name)) + name.encode()
        body += (b"\x7fELF" + b"\xb1" * size)[:length].ljust(-(-length // 4096) * 4096, b"\0")
    return header.ljust(4096, b"\0") + body


def compressed(inner: bytes, version: int) -> bytes:
    """The same as clang compresses it by zlib."""
    body = zlib.compress(inner)
    layouts = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}
    size = struct.calcsize(layouts[version]) + len(body)
    sizes = (len(inner),) if version == 1 else (size, len(inner))
    return struct.pack(layouts[version], b"CCOB", version, 0, *sizes, 7) + body


def pages(*bundles: bytes) -> bytes:
    """Bundles one after another, each at a page."""
    return b"".join(data.ljust(-(-len(data) // 4096) * 4096, b"\0") for data in bundles)


def scan(data: bytes, chunk: int) -> dict[str, int]:
    scanner = BundleScanner()
    for start in range(0, len(data), chunk):
        scanner.feed(data[start : start + chunk])
    return dict(scanner.finish().counts)


PLAIN = bundle("gfx90a:xnack+", "gfx942")
SECTION = pages(PLAIN, compressed(bundle("gfx942", "gfx1100"), 1), compressed(bundle("gfx942"), 3), PLAIN)
COUNTS = {"gfx90a:xnack+": 2, "gfx942": 4, "gfx1100": 1}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_bundle_names_its_targets(version: int) -> None:
    assert read_bundle(PLAIN).labels == ("gfx90a:xnack+", "gfx942")
    packed = compressed(PLAIN, version)
    assert read_bundle(packed).labels == ("gfx90a:xnack+", "gfx942")
    assert read_bundle(packed).size == (0 if version == 1 else len(packed))


@settings(max_examples=60)
@given(st.integers(1, 9000))
def test_a_section_in_chunks_of_any_size(chunk: int) -> None:
    assert scan(SECTION, chunk) == COUNTS


def test_payloads_are_stepped_over() -> None:
    scanner = BundleScanner()
    position = read = 0
    data = pages(PLAIN, PLAIN)
    while position < len(data):
        scanner.feed(data[position : position + 512])
        read += 512
        position = scanner.skip(len(data))
    assert dict(scanner.finish().counts) == {"gfx90a:xnack+": 2, "gfx942": 2}
    assert read < len(data) / 2


def test_what_is_seen_in_a_part_is_there() -> None:
    code = sample_bundles(Inflated.of_known(b"x" * 100 + SECTION))
    assert dict(code.counts) == COUNTS
    assert code.certainty == "sampled"
    assert not sample_bundles(Inflated.of_known(PLAIN[10:])).counts


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x7fELF" + bytes(100), "starts with"),
        (b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 1 << 40), "has 1099511627776 entries"),
        (b"CCOB" + struct.pack("<HH", 9, 0) + bytes(40), "version 9"),
        (b"CCOB" + struct.pack("<HHII", 2, 0, 100, 100) + bytes(100), "not a valid zlib stream"),
        (b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 0, 5, 1 << 50), "an identifier has"),
    ],
)
def test_what_is_no_bundle(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        read_bundle(data)


def test_without_zstd_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    packed = struct.pack("<4sHHIIQ", b"CCOB", 2, 1, 100, 8192, 7) + bytes(76)
    with pytest.raises(FormatError, match=r"-m pip install .backports\.zstd"):
        read_bundle(packed)


def test_a_section_that_is_cut_off() -> None:
    with pytest.raises(FormatError, match="inside a bundle"):
        scan(PLAIN[:6000], 1000)


@settings(max_examples=200)
@given(st.binary(max_size=300), st.sampled_from((b"", b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__")))
def test_any_bytes_are_read_or_refused(data: bytes, magic: bytes) -> None:
    try:
        assert len(read_bundle(magic + data).labels) <= 300
    except (FormatError, MoreNeededError):
        return
