"""Packages without GPU code that compile for the GPU at first use, and the compilers that they contain.

The signs are sources of CUDA, libdevice, Triton kernels, and text in native libraries: PTX, and the names of the driver
or NVRTC, which are opened by name. The targets of a compiler are the names in its text, as its ``--help`` lists them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.archive.members import read_members
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.gpu.reading import data_offsets
from wheel_checks.formats.wheel.python_source import MAX_SIZE
from wheel_checks.formats.zip.directory import Member
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

MOST_NATIVE = 24 * 1024 * 1024
"""Compressed bytes of native libraries that are searched, the smallest first, until one shows a sign."""
MOST_PYTHON = 2_000_000
"""Compressed bytes of all Python members up to which they are searched for Triton kernels, and for the driver."""

_COMPILER = re.compile(r"(?:^|/)(?:ptxas(?:-\w+)?|lib(?:nvrtc|nvJitLink)\.so[\d.]*)$")
_OF_TRITON = re.compile(r"(?:^|/)backends/nvidia/bin/ptxas[\w-]*$")
_SOURCE = re.compile(r"\.cuh?$")
_LIBDEVICE = re.compile(r"(?:^|/)libdevice[\w.]*\.bc$")
_KERNEL = re.compile(rb"^[ \t]*@triton\.(?:jit|autotune|heuristics)\b", re.MULTILINE)
_OPENED = re.compile(rb"""["']libcuda\.so""")
_OF_PYTHON = ((_KERNEL, "Triton kernels", "triton"), (_OPENED, "libcuda.so", "the driver"))
_TEXT = re.compile(rb"libcuda\.so|libnvrtc\.so|\.target sm_")
_TARGET = re.compile(rb"(?<![\w.])sm_(\d{2,3})[af]?(?![\w.])")
_OVERLAP = 80  # bytes that are longer than any match


@dataclass(frozen=True, slots=True)
class Sign:
    """``what`` shows that the package compiles, in ``member``; ``compiler`` does it, the package's own or another's."""

    what: str
    member: str
    compiler: str


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler in the package, and the compute capabilities (as in sm_100) that it names.

    ``decides`` is true for Triton's ptxas: its kernels are compiled by nothing else, for the GPU's own target.
    """

    member: str
    targets: tuple[int, ...] | Unavailable
    decides: bool = False


@dataclass(frozen=True, slots=True)
class FirstUse:
    """The parts of the package that compile at first use; none if all fields are empty.

    ``unread`` describes members that were not searched, of a package in whose other members nothing was found.
    """

    signs: tuple[Sign, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    unread: tuple[str, ...] = ()

    def knows(self, sm: int) -> bool | None:
        """Whether a compiler of the package has this target; None without one that decides, or if it is unread."""
        known = [set(one.targets) for one in self.compilers if not isinstance(one.targets, Unavailable)]
        if any(sm in targets for targets in known):
            return True
        deciding = [one for one in self.compilers if one.decides]
        return False if deciding and all(not isinstance(one.targets, Unavailable) for one in deciding) else None


def read_first_use(source: ByteSource, archive: Archive, *, whole: bool = False) -> FirstUse:
    """Read the signs and compilers of a package without GPU code; ``whole`` searches it whatever its size.

    Raises SourceError.
    """
    most_python, most_native = (sys.maxsize, sys.maxsize) if whole else (MOST_PYTHON, MOST_NATIVE)
    members = [member for member in unpackable(archive.members) if not member.is_directory]
    compilers = [member for member in members if _COMPILER.search(member.name)]
    found = tuple(
        Compiler(member.name, targets, bool(_OF_TRITON.search(member.name)))
        for member, targets in zip(compilers, _targets(source, archive, compilers), strict=True)
    )
    unread: list[str] = []
    signs = (
        *_by_name(members),
        *_of_python(source, archive, members, most_python, unread),
        *_of_libraries(source, archive, members, most_native, unread),
    )
    return FirstUse(signs, found, () if signs or found else tuple(unread))


def _by_name(members: Sequence[Member]) -> Iterator[Sign]:
    sources = [member.name for member in members if _SOURCE.search(member.name)]
    if sources:
        yield Sign(f"CUDA sources ({len(sources)} files)", sources[0], "nvcc or NVRTC on the host")
    for member in members:
        if _LIBDEVICE.search(member.name):
            yield Sign("libdevice", member.name, "a compiler that links it")
            break


def _of_python(
    source: ByteSource, archive: Archive, members: Sequence[Member], most: int, unread: list[str]
) -> Iterator[Sign]:
    python = [member for member in members if member.name.endswith(".py")]
    if large := [member.name for member in python if member.size > MAX_SIZE]:
        unread.append(large[0])
    python = [member for member in python if member.size <= MAX_SIZE]
    if sum(member.compressed_size for member in python) > most:
        unread.append(f"{len(python):,} Python modules")
        return
    contents = read_members(source, archive, {member.name: MAX_SIZE for member in python}).contents
    for name, data in contents.items():
        for pattern, what, compiler in _OF_PYTHON:
            if isinstance(data, bytes) and pattern.search(data):
                yield Sign(what, name, compiler)
                return


def _of_libraries(
    source: ByteSource, archive: Archive, members: Sequence[Member], most: int, unread: list[str]
) -> Iterator[Sign]:
    left = most
    libraries = [member for member in members if is_library(member.name) and not _COMPILER.search(member.name)]
    chosen: list[Member] = []
    for member in sorted(libraries, key=lambda member: member.compressed_size):
        left -= member.compressed_size
        if left >= 0:
            chosen.append(member)
        else:
            unread.append(member.name)
    for member, start in zip(chosen, data_offsets(source, archive, chosen), strict=True):
        if isinstance(start, Unavailable):
            unread.append(member.name)
            continue
        texts = {match.decode() for match in search_member(source, member, start, _TEXT)}
        if texts:
            what = " and ".join(f"the text {text!r}" for text in sorted(texts))
            yield Sign(what, member.name, "NVRTC" if "libnvrtc.so" in texts else "the driver")
            return


def _targets(
    source: ByteSource, archive: Archive, members: Sequence[Member]
) -> Iterator[tuple[int, ...] | Unavailable]:
    for member, start in zip(members, data_offsets(source, archive, members), strict=True):
        if isinstance(start, Unavailable):
            yield start
            continue
        found = {int(match[3:].rstrip(b"af")) for match in search_member(source, member, start, _TARGET)}
        yield tuple(sorted(found)) or Unavailable("its text names no target")


def search_member(source: ByteSource, member: Member, start: int, pattern: re.Pattern[bytes]) -> set[bytes]:
    """The different matches in a member; of a corrupt one, which other rules report, those before the fault."""
    found: set[bytes] = set()
    held = b""
    try:
        for piece in _pieces(source, member, start):
            data = held + piece
            found |= {match[0] for match in pattern.finditer(data)}
            held = data[-_OVERLAP:]
    except FormatError:
        pass
    return found


def _pieces(source: ByteSource, member: Member, start: int) -> Iterable[bytes]:
    return inflate_stream(member, source.stream(start, member.compressed_size))
