"""Reads the GPU code of a wheel's libraries: their sections of fat binaries, streamed through and never held.

The section headers lie near the end of a file. They are read first, from the inflated tail, so that libraries without
GPU code are not streamed and the others only up to the end of their last section of it. A library whose tail does not
tell is streamed whole, and every fat binary in it noted until the headers come at the end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.elf.native_members import may_be_elf
from wheel_checks.facts.elf.reading import MemberElf, read_member_elfs
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode
from wheel_checks.formats.elf.bytes import StreamKeeper
from wheel_checks.formats.elf.file import Missing, Part, read_elf
from wheel_checks.formats.elf.sections import Sections
from wheel_checks.formats.gpu.fatbin import FatbinScanner, GpuCode, find_declared
from wheel_checks.formats.gpu.fatbin_search import FatbinFinder
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

AT_ONCE = 4  # members streamed in parallel
CHEAP = 8 * 1024 * 1024  # compressed bytes up to which a library is streamed when not all of them are
LARGEST = 8 * 1024**3  # bytes inflated of one member

_DECLARING = "libtorch_python.so"
_DECLARATION_BYTES = 16 * 1024 * 1024  # compressed bytes searched for the declared list
_LOADED, _RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"
_HEAD = 4096  # bytes that hold the ELF header
_NAMES_ROOM = 1024 * 1024  # bytes around the section headers; linkers put their names right before them
_NO_CODE = GpuCode({}, "exact", {})
_STUB = 64 * 1024  # bytes of loaded fat binaries below which there may be more of them in other sections
_MUCH_DATA = 16 * 1024 * 1024  # bytes of such a section from which it is worth a search
_DATA = (".data", ".rodata", ".ldata", ".lrodata")  # the last two: x86-64 psABI, large code model
_ONLY_EXACT = "--depth gpu reads it whole"


def read_gpu_code(
    source: ByteSource, archive: Archive, elfs: Sequence[MemberElf] | None = None, *, exact: bool
) -> GpuCodeFacts:
    """The GPU code of every ELF file and of every .fatbin member; ``elfs`` is what is known of the ELF files already.

    Not ``exact``, what is declared is enough, 6 MB of a torch wheel; of a wheel that declares nothing only small
    libraries are read. A library that was not or could not be read is Unavailable. Cubins of their own are only listed,
    by folder: their headers do not tell the ``a`` or ``f`` of their targets. Up to four members are streamed at once,
    each 1 MiB at a time. Raises SourceError when bytes cannot be had.
    """
    declared = _read_declared(source, archive)
    if declared and not exact:
        return GpuCodeFacts((), declared)
    found: dict[str, LibraryGpuCode] = {}
    planned: list[_Reading] = []
    for item in _plan(source, archive, elfs, exact=exact):
        if isinstance(item, LibraryGpuCode):
            found[item.member] = item
        else:
            planned.append(item)
    for member in archive.members:
        if member.name.endswith(".fatbin") and not member.is_directory:
            planned.append(_Reading(member, [(0, member.size)]))
        elif member.name.endswith(".cubin"):
            cubins = cubins_beside(member.name)
            found[cubins.member] = cubins
    found |= {library.member: library for library in _read(source, archive, planned, exact=exact)}
    order = {member.name: number for number, member in enumerate(archive.members)}
    libraries = sorted(found.values(), key=lambda library: order.get(library.member, len(order)))
    return GpuCodeFacts(tuple(libraries), declared)


@dataclass(slots=True)
class _Reading:
    """One member to read: the ``(offset, size)`` of what holds its fat binaries, None when its section headers are not
    known but lie at ``headers_offset``, ``as_data`` when they may lie anywhere; and where its data begins in the
    archive.
    """

    member: Member
    spans: list[tuple[int, int]] | None
    headers_offset: int = 0
    as_data: bool = False
    data_offset: int = 0
    bytes_read: int = field(default=0, init=False)

    def read(self, source: ByteSource) -> LibraryGpuCode:
        """Stream the member: to the end of its last span, or to its own."""
        chunks = source.stream(self.data_offset, self.member.compressed_size)
        pieces = inflate_stream(self.member, self._counted(chunks))
        try:
            code: GpuCode | Unavailable
            if self.as_data:
                code = search_everywhere(pieces, self.member.size)
            elif self.spans is None:
                code = search(pieces, self.member.size, self.headers_offset)
            else:
                code = scan(pieces, self.member.size, self.spans)
        except FormatError as error:
            code = Unavailable(f"it cannot be read: {error}")
        finally:
            if isinstance(chunks, Generator):
                chunks.close()  # now, not at some later time: a connection hangs on it
        return LibraryGpuCode(self.member.name, code, self.bytes_read)

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.bytes_read += len(chunk)
            yield chunk


def cubins_beside(path: str) -> LibraryGpuCode:
    """What is known of the cubins in the folder of this one: that they are there."""
    why = Unavailable("a cubin of its own does not tell the a or f of its target", "see what it was built for")
    return LibraryGpuCode(f"{path.rpartition('/')[0]}/*.cubin", why)


def scan(pieces: Iterable[bytes], size: int, spans: Iterable[tuple[int, int]]) -> GpuCode:
    """The GPU code in the ``(offset, length)`` spans of a file of ``size`` bytes that comes in ``pieces``.

    Takes no more of the pieces than the spans need. Raises FormatError when a span is no row of fat binaries, when two
    overlap, and what the pieces raise.
    """
    code = _NO_CODE
    stream = iter(pieces)
    position, piece = 0, memoryview(b"")  # where the piece begins, and what is left of it
    for offset, length in sorted(spans):
        if offset < position or offset + length > size:
            raise FormatError(
                f"the fat binaries lie at bytes {offset:#x} to {offset + length:#x}",
                expected=f"a place of their own inside the file of {size:#x} bytes",
            )
        scanner = FatbinScanner()
        while position < offset + length:
            if not piece:
                piece = memoryview(next(stream, b""))
                if not piece:
                    raise FormatError(f"the file ends at byte {position}", expected=f"{size} bytes")
            end = min(position + len(piece), offset + length)
            if end > offset:
                scanner.feed(piece[max(0, offset - position) : end - position])
            piece = piece[end - position :]
            position = end
        code += scanner.finish()
    return code


def search(pieces: Iterable[bytes], size: int, headers_offset: int) -> GpuCode | Unavailable:
    """The GPU code of an ELF file of ``size`` bytes, in ``pieces``, whose section headers are at ``headers_offset``.

    Everything is read, since the headers stand behind what they describe. Their names are looked for up to 1 MiB before
    them and behind. Raises FormatError when a section is no row of fat binaries, and what the pieces raise.
    """
    finder = FatbinFinder(size)
    start = max(0, headers_offset - _NAMES_ROOM)
    keeper = StreamKeeper(size, [(0, min(size, _HEAD)), (start, min(size, headers_offset + _NAMES_ROOM) - start)])
    for piece in pieces:
        finder.feed(piece)
        keeper.feed(piece)
    sections = read_elf(keeper.regions, {Part.SECTIONS}).sections
    if isinstance(sections, Missing):
        return Unavailable("the names of its sections lie far from their headers")
    if holds_code_as_data(sections):
        return finder.everywhere
    code = _NO_CODE
    for offset, length in loaded_spans(sections):
        code += finder.within(offset, length)
    return code


def search_everywhere(pieces: Iterable[bytes], size: int) -> GpuCode:
    """All GPU code in a file of ``size`` bytes that comes in ``pieces``. Raises FormatError, see FatbinFinder.feed."""
    finder = FatbinFinder(size)
    for piece in pieces:
        finder.feed(piece)
    return finder.everywhere


def _plan(
    source: ByteSource, archive: Archive, elfs: Sequence[MemberElf] | None, *, exact: bool
) -> Iterator[_Reading | LibraryGpuCode]:
    """What to read of every ELF file that has GPU code or, as far as its tail tells, may have some."""
    if elfs is None:
        members = [member for member in archive.members if may_be_elf(member)]
    else:
        members = [item.member for item in elfs if not isinstance(item.facts, Unavailable)]
    for item in read_member_elfs(source, archive, members, {Part.SECTIONS}):
        if isinstance(item.facts, Unavailable):
            continue  # no ELF file, or a corrupt one: that is the finding of other rules
        if isinstance(item.facts.sections, Sections):
            if spans := loaded_spans(item.facts.sections):
                yield _Reading(item.member, spans, as_data=holds_code_as_data(item.facts.sections))
        elif exact or item.member.compressed_size <= CHEAP:
            yield _Reading(item.member, None, item.facts.header.sections_offset)
        else:
            why = Unavailable("its section headers lie too far from its end", _ONLY_EXACT)
            yield LibraryGpuCode(item.member.name, why)


def loaded_spans(sections: Sections) -> list[tuple[int, int]]:
    """The ``(offset, size)`` of what is loaded, as cuobjdump lists it: relocatable code only when there is no other."""
    filled = [section for section in sections.gpu_code if section.size]
    names = {section.name for section in filled}
    wanted = _LOADED if _LOADED in names else _RELOCATABLE
    return [(section.offset, section.size) for section in filled if section.name == wanted]


def holds_code_as_data(sections: Sections) -> bool:
    """True for a library with hardly any code where the CUDA runtime loads it, and megabytes of data.

    cuFFT 12 keeps its 24,000 fat binaries in .data and loads them itself; .nv_fatbin has 672 bytes, for sm_75, which is
    all that cuobjdump lists.
    """
    loaded = sum(size for _, size in loaded_spans(sections))
    return 0 < loaded < _STUB and any(
        section.name in _DATA and section.in_file and section.size >= _MUCH_DATA for section in sections.headers
    )


def _read(source: ByteSource, archive: Archive, planned: list[_Reading], *, exact: bool) -> Iterator[LibraryGpuCode]:
    """Stream what was planned, as far as it is allowed; the rest is Unavailable."""
    allowed: list[_Reading] = []
    readable = {id(member) for member in unpackable(archive.members)}
    for reading in planned:
        member = reading.member
        if not exact and member.compressed_size > CHEAP:
            yield LibraryGpuCode(member.name, Unavailable(f"it has {member.compressed_size:,} bytes", _ONLY_EXACT))
        elif member.size > LARGEST or id(member) not in readable:
            yield LibraryGpuCode(member.name, Unavailable(f"it claims {member.size:,} bytes, more than is read"))
        else:
            allowed.append(reading)
    ready = []
    for reading, start in zip(allowed, data_offsets(source, archive, [item.member for item in allowed]), strict=True):
        if isinstance(start, Unavailable):
            yield LibraryGpuCode(reading.member.name, start)
        else:
            reading.data_offset = start
            ready.append(reading)
    if ready:
        with ThreadPoolExecutor(AT_ONCE, "gpu-code") as pool:
            yield from pool.map(lambda reading: reading.read(source), ready)


def data_offsets(source: ByteSource, archive: Archive, members: Sequence[Member]) -> list[int | Unavailable]:
    """Where the data of each member begins in the archive, behind its local header."""
    end = archive.end.directory_offset
    heads = [
        (member.header_offset, max(0, min(LOCAL_HEADER_SIZE + len(member.raw_name) + 64, end - member.header_offset)))
        for member in members
    ]
    pieces = iter(source.read_many([span for span in heads if span[1]]))
    offsets: list[int | Unavailable] = []
    for member, (offset, length) in zip(members, heads, strict=True):
        try:
            start = offset + read_local_header(next(pieces) if length else b"").header_size
        except FormatError as error:
            offsets.append(Unavailable(f"it cannot be read: {error}"))
            continue
        fits = start + member.compressed_size <= end
        offsets.append(start if fits else Unavailable("it reaches into the central directory"))
    return offsets


def _read_declared(source: ByteSource, archive: Archive) -> GpuCode | None:
    """The list in libtorch_python.so, streamed until it is found."""
    members = [member for member in archive.members if member.name.rpartition("/")[2] == _DECLARING]
    if not members or members[0].compressed_size > _DECLARATION_BYTES:
        return None
    (start,) = data_offsets(source, archive, members[:1])
    if isinstance(start, Unavailable):
        return None
    chunks = source.stream(start, members[0].compressed_size)
    try:
        return find_declared(inflate_stream(members[0], chunks))
    except FormatError:
        return None  # that the member is broken is the finding of other rules
    finally:
        if isinstance(chunks, Generator):
            chunks.close()
