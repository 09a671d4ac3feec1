"""Offload bundles: AMD's GPU code in the section ``.hip_fatbin`` of a host library, and in files.

Source: Clang, "Clang Offload Bundler", Bundled Binary File Layout and Compressed Offload Bundle; clang's
``OffloadBundle.cpp`` for versions 1 to 3 of the compressed header; read 2026-11.

* A bundle is 24 bytes of magic, u64 number of entries, and for each u64 offset, u64 size, u64 length of an identifier
  and the identifier: "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+". Offsets count from the magic. Entries for the host are
  empty.
* A compressed bundle is "CCOB", u16 version, u16 method (0: zlib, 1: zstd), from version 2 on its whole size, its size
  as inflated (both u32, from version 3 on u64), u64 hash, and a bundle, compressed.
* A section is a row of bundles with zeros between them.
"""

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module

from wheel_checks.errors import FormatError
from wheel_checks.extras import how_to_install
from wheel_checks.formats.gpu.fatbin import Buffer, GpuCode

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"
MOST_ENTRIES = 1000
"""At most so many entries in one bundle; real ones have some twenty."""

MOST_HELD = 160 * 1024
"""Bytes of a compressed bundle that may be needed to read its entries: a block of zstd has up to 128 KiB."""

_MOST_BUNDLES = 100_000
_LONGEST_IDENTIFIER = 256  # bytes
_ENTRY = struct.Struct("<QQQ")
_HEADERS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_ZLIB, _ZSTD = 0, 1
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")  # of Python 3.14, and of the extra rocm
_INNER = 32 * 1024  # inflated bytes of a compressed bundle in which its entries are
_TARGET = re.compile(r"(?:hip|hipv4|openmp|sycl)-amdgcn-(?:amd|unknown)-[\w.]*-[\w.]*-(gfx[\w:+.-]*)", re.ASCII)
_PADDING = re.compile(rb"\0*")  # matches everywhere


class MoreNeededError(Exception):
    """The bytes end before the header does."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The targets of one bundle, as "gfx90a:xnack+", and how many bytes it has; 0 when it does not say."""

    labels: tuple[str, ...]
    size: int


def read_bundle(data: Buffer) -> Bundle:
    """The bundle that ``data`` starts with. Raises MoreNeededError when its header continues, and FormatError."""
    head = bytes(data[: len(MAGIC)])
    if head.startswith(COMPRESSED_MAGIC):
        return _read_compressed(data)
    if head != MAGIC:
        if MAGIC.startswith(head) or COMPRESSED_MAGIC.startswith(head):
            raise MoreNeededError
        raise FormatError(f"an offload bundle starts with {head!r}", expected=f"{MAGIC!r} or {COMPRESSED_MAGIC!r}")
    (count,) = _unpack(struct.Struct("<Q"), data, len(MAGIC))
    if count > MOST_ENTRIES:
        raise FormatError(f"an offload bundle has {count} entries", expected=f"at most {MOST_ENTRIES}")
    at = len(MAGIC) + 8
    labels, end = [], 0
    for _ in range(count):
        offset, size, length = _unpack(_ENTRY, data, at)
        if length > _LONGEST_IDENTIFIER:
            raise FormatError(f"an identifier has {length} bytes", expected=f"at most {_LONGEST_IDENTIFIER}")
        at += _ENTRY.size
        if at + length > len(data):
            raise MoreNeededError
        identifier = bytes(data[at : at + length]).decode("ascii", "backslashreplace")
        at += length
        end = max(end, offset + size)
        if size and (target := _TARGET.fullmatch(identifier)):
            labels.append(target[1])
    return Bundle(tuple(labels), max(at, end))


def _read_compressed(data: Buffer) -> Bundle:
    version, method = _unpack(struct.Struct("<HH"), data, len(COMPRESSED_MAGIC))
    layout = _HEADERS.get(version)
    if layout is None or method not in (_ZLIB, _ZSTD):
        raise FormatError(
            f"a compressed offload bundle has version {version} and method {method}",
            expected="version 1 to 3, zlib or zstd",
        )
    fields = _unpack(layout, data, 0)
    size = fields[3] if version > 1 else 0
    body = bytes(data[layout.size : min(len(data), size or len(data))])
    inner = _inflate_zlib(body) if method == _ZLIB else _inflate_zstd(body)
    try:
        labels = read_bundle(inner).labels
    except MoreNeededError:
        if len(data) >= min(size or MOST_HELD, MOST_HELD):
            raise FormatError(
                "a compressed offload bundle is cut off", expected="its entries at its beginning"
            ) from None
        raise
    return Bundle(labels, size)


def _inflate_zlib(body: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(body, _INNER)
    except zlib.error as error:
        raise FormatError(f"a compressed offload bundle is not a valid zlib stream ({error})") from None


def _inflate_zstd(body: bytes) -> bytes:
    """What the beginning of a zstd frame inflates to, as far as its blocks are whole."""
    for name in _ZSTD_MODULES:
        with suppress(ImportError):
            zstd = import_module(name)
            break
    else:
        raise FormatError(
            "its offload bundles are compressed with zstd, which this Python cannot read",
            expected="Python 3.14, or the package backports.zstd",
            hint=how_to_install("rocm"),
        )
    try:
        inflated: bytes = zstd.ZstdDecompressor().decompress(body, max_length=_INNER)
    except zstd.ZstdError as error:
        raise FormatError(f"a compressed offload bundle is not a valid zstd stream ({error})") from None
    return inflated


def _unpack(layout: struct.Struct, data: Buffer, at: int) -> tuple[int, ...]:
    if at + layout.size > len(data):
        raise MoreNeededError
    return layout.unpack_from(data, at)


class BundleScanner:
    """Reads the bundles of one section, fed in chunks of any size, as :class:`FatbinScanner` reads fat binaries.

    At most MOST_HELD bytes are kept between chunks. What is not a bundle raises FormatError; after a compressed bundle
    of version 1, which does not say how long it is, the next magic number is waited for.
    """

    def __init__(self) -> None:
        self._fed = 0
        self._next = 0  # where the next bundle, or the zeros before it, begin
        self._seeks = False
        self._held = b""
        self._counts: Counter[str] = Counter()
        self._containers: Counter[frozenset[str]] = Counter()
        self._bundles = 0

    def feed(self, chunk: Buffer) -> None:
        """Take the next bytes of the section."""
        start = self._fed - len(self._held)
        data = memoryview(self._held + bytes(chunk) if self._held else chunk)
        self._fed = start + len(data)
        while (at := self._next - start) < len(data):
            if self._seeks:
                found = _MAGICS.search(data, at)
                at = found.start() if found else max(at, len(data) - len(MAGIC) + 1)
                if not found:  # a magic number may begin there whose end has not come yet
                    self._next = start + at
                    break
            else:
                padding = _PADDING.match(data, at)
                at = padding.end() if padding else at
            self._next = start + at
            if at >= len(data):
                break
            try:
                bundle = read_bundle(data[at : at + MOST_HELD])
            except MoreNeededError:
                if len(data) - at >= MOST_HELD:
                    raise FormatError("the header of an offload bundle has no end") from None
                break
            self._add(bundle)
            self._next += bundle.size or len(COMPRESSED_MAGIC)
        self._held = bytes(data[max(0, self._next - start) :])

    def _add(self, bundle: Bundle) -> None:
        self._seeks = not bundle.size
        self._bundles += 1
        if self._bundles > _MOST_BUNDLES:
            raise FormatError("the section has too many offload bundles", expected=f"at most {_MOST_BUNDLES}")
        self._counts.update(bundle.labels)
        if bundle.labels:
            self._containers[frozenset(bundle.labels)] += 1

    def skip(self, size: int) -> int:
        """Omit what no header is in: the offset in the section, of ``size`` bytes, from which to feed on."""
        if not self._seeks:
            self._fed = max(self._fed, min(self._next, size))
        return self._fed

    def finish(self) -> GpuCode:
        """The summary, when the whole section has been fed. Raises FormatError when it ends within a bundle."""
        if (self._held.strip(b"\0") and not self._seeks) or self._next > self._fed:
            raise FormatError(
                f"the section of offload bundles ends at byte {self._fed}, inside a bundle",
                expected=f"at least {self._next} bytes",
                hint="it is cut off, or a size in it is wrong",
            )
        return replace(self.so_far, certainty="exact")

    @property
    def so_far(self) -> GpuCode:
        """What has been fed until now, as "sampled"."""
        return GpuCode(dict(self._counts), "sampled", dict(self._containers))


_MAGICS = re.compile(re.escape(MAGIC) + rb"|" + COMPRESSED_MAGIC + rb"[\x01-\x03]\0[\0\x01]\0")


def find_bundles(data: Buffer) -> Iterator[int]:
    """Where bundles may begin in ``data``."""
    return (match.start() for match in _MAGICS.finditer(data))
