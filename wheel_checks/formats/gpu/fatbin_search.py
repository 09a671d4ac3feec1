"""Finds fat binaries in a library that is read once, front to back, when the section headers come last.

Every container is found by its magic number and read as it passes; once the headers are known,
:meth:`FatbinFinder.within` returns the content of a section, as strictly as a scanner of that section.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu.fatbin import FatbinScanner, GpuCode, newest_isa

MAX_CONTAINERS = 100_000
"""At most so many containers in one file; the largest libraries have some thousands."""
MAX_UNSOUND = 100
"""At most so many things that only look like containers: each may cost as much time as a chunk is long."""

_HEADER = struct.Struct("<4sHHQ")
_MAGIC = b"\x50\xed\x55\xba"
_ALIGNMENT = 8
_PADDING = re.compile(rb"\0*")  # matches everywhere


@dataclass(slots=True)
class _Container:
    """The content of a container, and the end of the zeros after it."""

    offset: int
    end: int
    next: int
    code: GpuCode | FormatError


class FatbinFinder:
    """Reads every fat binary in a file of ``size`` bytes fed in chunks; keeps only a summary of each container."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0  # of the first byte held
        self._held = b""  # the end of a chunk in which a header may begin
        self._scanner: FatbinScanner | None = None  # while inside a container
        self._in_padding = False
        self._containers: list[_Container] = []
        self._unsound = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file. Raises FormatError beyond MAX_CONTAINERS and MAX_UNSOUND."""
        data = self._held + chunk if self._held else chunk
        view = memoryview(data)
        at = 0
        while at < len(data):
            if self._scanner is not None:
                at += self._feed_container(self._scanner, view[at:], self._position + at)
                continue
            if self._in_padding:
                at = self._skip_padding(data, at)
            found = self._find(data, at)
            if found < 0:
                at = max(at, len(data) - _HEADER.size + 1)  # the rest may be the beginning of a header
                break
            at = found
            if at + _HEADER.size > len(data):
                break
            at += self._open(view, at)
        self._held = data[at:]
        self._position += at

    def within(self, offset: int, size: int) -> GpuCode:
        """The GPU code of the section of ``size`` bytes at ``offset``, when all of the file has been fed.

        Raises FormatError unless it is a row of sound containers with nothing but zeros between and after them.
        """
        code = GpuCode({}, "exact", {})
        expected, end = offset, offset + size
        first = bisect_left(self._containers, offset, key=lambda container: container.offset)
        for container in self._containers[first:]:
            if container.offset >= end:
                break
            if isinstance(container.code, FormatError):
                raise container.code
            if container.offset != expected or container.end > end:
                break
            code += container.code
            expected = container.next
        if expected < end:
            raise FormatError(
                f"the section of fat binaries at byte {offset:#x} has something else at byte {expected:#x}",
                expected="a fat binary, or zeros to the end of the section",
            )
        return code

    @property
    def everywhere(self) -> GpuCode:
        """The GPU code of all sound containers that were fed, wherever they lie."""
        counts: Counter[str] = Counter()
        containers: Counter[frozenset[str]] = Counter()
        isa: set[tuple[str, str]] = set()
        toolkits: Counter[str] = Counter()
        for container in self._containers:
            if isinstance(container.code, GpuCode):
                counts.update(container.code.counts)
                containers.update(container.code.containers)
                isa.update(container.code.ptx_isa.items())
                toolkits.update(container.code.toolkits)
        return GpuCode(dict(counts), "exact", dict(containers), newest_isa(isa), dict(toolkits))

    def _find(self, data: bytes, start: int) -> int:
        """The offset of the next magic number at a multiple of 8; -1 if none."""
        found = data.find(_MAGIC, start)
        while found >= 0 and (self._position + found) % _ALIGNMENT:
            found = data.find(_MAGIC, found + 1)
        return found

    def _open(self, view: memoryview, at: int) -> int:
        """Begin the container whose header is at ``at``, and say how many bytes to pass over; 4 when it is not one."""
        _, version, header_size, size = _HEADER.unpack_from(view, at)
        offset = self._position + at
        end = offset + header_size + size
        if version != 1 or header_size != _HEADER.size or end > self._size:
            return len(_MAGIC)
        if len(self._containers) == MAX_CONTAINERS:
            raise FormatError("the file has too many fat binaries", expected=f"at most {MAX_CONTAINERS}")
        self._scanner = FatbinScanner()
        self._containers.append(_Container(offset, end, end, GpuCode({}, "exact", {})))
        return 0

    def _feed_container(self, scanner: FatbinScanner, view: memoryview, position: int) -> int:
        """Read on in the last container, and say how many bytes to pass over: all of its own, unless it is unsound."""
        container = self._containers[-1]
        taken = min(len(view), container.end - position)
        try:
            scanner.feed(view[:taken])
            if position + taken == container.end:
                container.code = scanner.finish()
                self._scanner, self._in_padding = None, True
        except FormatError as error:
            container.code = error
            self._scanner = None
            self._unsound += 1
            if self._unsound > MAX_UNSOUND:
                raise FormatError(
                    "the file has too many invalid fat binaries", expected=f"at most {MAX_UNSOUND}"
                ) from None
            return len(_MAGIC) if position == container.offset else 0
        return taken

    def _skip_padding(self, data: bytes, at: int) -> int:
        """The end of the zeros after a container."""
        match = _PADDING.match(data, at)
        end = match.end() if match else at
        self._containers[-1].next = self._position + end
        self._in_padding = end == len(data)
        return end
