"""Reads the GPU code of a wheel's libraries, as sure as it must be.

The section names say which libraries have some, and where. Small libraries are streamed, the others are sampled: what
is seen in a sample is there. Absence is known only of what was streamed to its end; so whoever misses something asks
for a larger sample of the libraries in question, and at last for their bytes from the first on, until it was seen:
:func:`read_until` does.
"""

import hashlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import MAX_READ, Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.elf.native_members import may_be_elf
from wheel_checks.facts.elf.reading import read_member_elfs
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode
from wheel_checks.facts.gpu.library import Library
from wheel_checks.facts.gpu.loose import loose_files, read_loose
from wheel_checks.facts.gpu.places import bundle_spans, holds_code_as_data, loaded_spans, may_hold_code_as_data
from wheel_checks.facts.gpu.sampling import SIZES, Sampled, sample, window_places
from wheel_checks.facts.gpu.streaming import Enough, all_of_it
from wheel_checks.formats.elf.file import Part
from wheel_checks.formats.elf.sections import Sections
from wheel_checks.formats.gpu.fatbin import GpuCode, find_declared
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

AT_ONCE = 4  # members streamed in parallel
CHEAP = 3 * 1024 * 1024
"""Compressed bytes up to which a library is streamed at once: less would not be saved."""
LARGEST = 8 * 1024**3  # bytes inflated of one member

_DECLARING = "libtorch_python.so"
_DECLARATION_BYTES = 16 * 1024 * 1024  # compressed bytes searched for the declared list
_ROUNDS = 4 * (len(SIZES) + 2)  # the samples, then all bytes, as some are missed only once others are known

Remember = Callable[[str, Callable[[], GpuCodeFacts]], GpuCodeFacts]
"""Gives what is kept under a name, else what the function returns."""
Missed = Callable[[GpuCodeFacts], Collection[str]]
"""Which members, of those that were not read whole, may hold what is missed; none when nothing is."""


def read_gpu_code(
    source: ByteSource,
    archive: Archive,
    elfs: Sequence[MemberElf] | None = None,
    *,
    exact: bool,
    max_read: int = MAX_READ,
) -> GpuCodeFacts:
    """The GPU code of every ELF file, and of files such as .fatbin, .cubin, .ptx, .hsaco; ``elfs`` is what is known of
    the ELF files already.

    ``exact``, every byte that may hold some is read, and what torch declares; else a sample, 1.8 MB of each large
    library. At most ``max_read`` bytes are streamed; a library that was not or could not be read is Unavailable.
    Raises SourceError when bytes cannot be had.
    """
    reading = _WheelReading(source, archive, elfs, max_read)
    reading.begin()
    if not exact:
        return reading.facts()
    reading.read_all(_open_members(reading.facts()) | reading.suspected)
    return reading.facts(_read_declared(source, archive))


def read_until(
    source: ByteSource,
    archive: Archive,
    missed: Missed,
    elfs: Sequence[MemberElf] | None = None,
    *,
    question: str = "",
    max_read: int = MAX_READ,
    remember: Remember = lambda _, read: read(),
) -> GpuCodeFacts:
    """As :func:`read_gpu_code`, from the smallest sample on, until ``missed`` returns no member that can be read on.

    The members that it returns are sampled in more places, up to 8.1 MB, and then streamed until it does not return
    them any more, as far as ``max_read`` allows. What is asked to be kept follows from the bytes of the file, from the
    members that were returned until then, and from the ``question``: all on which ``missed`` depends. The smallest
    sample is the same for all who ask.
    """
    reading: _WheelReading | None = None
    rounds: list[list[str]] = []

    def read() -> GpuCodeFacts:
        nonlocal reading
        if reading is None:  # what was kept until now is read after all
            reading = _WheelReading(source, archive, elfs, max_read)
            reading.begin()
            for members in rounds[:-1]:
                reading.read_on(members, missed)
        if rounds:
            reading.read_on(rounds[-1], missed)
        return reading.facts()

    facts = remember("sampled gpu code", read)
    while len(rounds) < _ROUNDS and (members := sorted(_open_members(facts) & set(missed(facts)))):
        rounds.append(members)
        digest = hashlib.blake2b(repr((question, rounds)).encode(), digest_size=16).hexdigest()
        facts = remember(f"gpu code {digest}", read)
    return facts


def _open_members(facts: GpuCodeFacts) -> set[str]:
    """The members of which reading on may show more."""
    return {
        library.member
        for library in facts.libraries
        if not isinstance(library.code, Unavailable) and library.code.certainty != "exact" and library.limit is None
    }


class _WheelReading:
    """The libraries of one wheel that have, or may have, GPU code, and how far each was read."""

    def __init__(self, source: ByteSource, archive: Archive, elfs: Sequence[MemberElf] | None, max_read: int) -> None:
        self._source = source
        self._archive = archive
        self._left = max_read
        self._max_read = max_read
        self._files = loose_files(archive.members)
        self._loose = {path: self._read_loose(path, whole=_are_cheap(files)) for path, files in self._files.items()}
        self._libraries = {library.member.name: library for library in self._find(elfs)}

    def facts(self, declared: GpuCode | None = None) -> GpuCodeFacts:
        """What is known by now."""
        found = {
            name: LibraryGpuCode(name, of.code, of.bytes_read, of.limit)
            for name, of in self._libraries.items()
            if of.is_shown
        } | self._loose
        order = {member.name: number for number, member in enumerate(self._archive.members)}
        libraries = sorted(found.values(), key=lambda library: order.get(library.member, len(order)))
        return GpuCodeFacts(tuple(libraries), declared)

    def _with(self, library: Library, code: GpuCode) -> GpuCodeFacts:
        """What is known, with more code of one library."""
        facts, known = self.facts(), library.code
        both = LibraryGpuCode(library.member.name, code if isinstance(known, Unavailable) else known + code)
        return replace(facts, libraries=tuple(both if of.member == both.member else of for of in facts.libraries))

    @property
    def suspected(self) -> set[str]:
        """The members that have no section for GPU code, and so much data that there may be some in it."""
        return {name for name, library in self._libraries.items() if library.suspected and library.is_open}

    def begin(self) -> None:
        """Stream small libraries, and take the smallest sample of all others."""
        names = [name for name, library in self._libraries.items() if library.is_open]
        self._sample([self._libraries[name] for name in names if _is_next(self._libraries[name], SIZES[0])], SIZES[0])
        cheap = [of for of in self._libraries.values() if of.member.compressed_size <= CHEAP]
        self._stream([of for of in cheap if of.is_open])

    def read_on(self, members: Collection[str], missed: Missed) -> None:
        """Take the next larger sample of each of ``members``, or stream it until it is not ``missed`` any more."""
        whole = set(members)
        for size in SIZES:
            libraries = [of for name, of in self._libraries.items() if name in whole and _is_next(of, size)]
            self._sample(libraries, size)
            whole -= {library.member.name for library in libraries}
        self.read_all(whole, missed)

    def read_all(self, members: Collection[str], missed: Missed | None = None) -> None:
        """Read these to their ends, as far as the budget allows; or until they are not ``missed`` any more."""
        self._stream([self._libraries[name] for name in members if name in self._libraries], missed)
        for path in sorted(set(members) & set(self._loose)):
            self._loose[path] = self._read_loose(path, whole=True)

    def _read_loose(self, path: str, *, whole: bool) -> LibraryGpuCode:
        files = self._files[path]
        if whole and not _are_cheap(files):
            size = sum(member.compressed_size for member in files)
            if size > self._left:
                return replace(self._loose[path], limit=self._too_large(size))
            self._left -= size
        return read_loose(self._source, self._archive, path, files, whole=whole)

    def _sample(self, libraries: Sequence[Library], windows: int) -> None:
        for library, (code, read) in zip(
            libraries,
            sample(self._source, [(library.sampled, library.windows) for library in libraries], windows),
            strict=True,
        ):
            if not isinstance(library.code, Unavailable):
                library.code += code
            library.windows = windows
            library.bytes_read += read

    def _stream(self, libraries: Sequence[Library], missed: Missed | None = None) -> None:
        def enough_of(library: Library) -> Enough:
            if missed is None or library.is_streamed:
                return all_of_it
            return lambda code: library.member.name not in missed(self._with(library, code))

        allowed = []
        for library in sorted(libraries, key=lambda library: library.member.compressed_size):
            size = library.member.compressed_size
            if size > CHEAP and size > self._left:
                library.limit = self._too_large(size)
                continue
            self._left -= size if size > CHEAP else 0
            allowed.append(library)
        if allowed:
            with ThreadPoolExecutor(AT_ONCE, "gpu-code") as pool:
                list(pool.map(lambda library: library.stream(self._source, enough_of(library)), allowed))

    def _too_large(self, size: int) -> Unavailable:
        return Unavailable(
            f"it has {size:,} bytes, but at most {self._max_read:,} of a wheel are read",
            f"--max-read {-(-(size + self._max_read - self._left) // 10**9)}GB reads it",
        )

    def _find(self, elfs: Sequence[MemberElf] | None) -> list[Library]:
        """The libraries that have GPU code, or may have some, with the places of their data."""
        found = list(self._with_code(elfs))
        found += [
            Library(member, [(0, member.size)])
            for member in self._archive.members
            if member.name.endswith(".fatbin") and not member.is_directory
        ]
        readable = {id(member) for member in unpackable(self._archive.members)}
        starts = data_offsets(self._source, self._archive, [library.member for library in found])
        for library, start in zip(found, starts, strict=True):
            if isinstance(start, Unavailable):
                library.code = start
            elif library.member.size > LARGEST or id(library.member) not in readable:
                library.code = Unavailable(f"it claims {library.member.size:,} bytes, more than are read")
            else:
                library.data_offset = start
        return found

    def _with_code(self, elfs: Sequence[MemberElf] | None) -> Iterator[Library]:
        if elfs is None:
            members = [member for member in self._archive.members if may_be_elf(member)]
        else:
            members = [item.member for item in elfs if not isinstance(item.facts, Unavailable)]
        for item in read_member_elfs(self._source, self._archive, members, {Part.SECTIONS}):
            if isinstance(item.facts, Unavailable):
                continue  # no ELF file, or a corrupt one: that is the finding of other rules
            sections = item.facts.sections
            if not isinstance(sections, Sections):
                yield Library(item.member, None, headers_offset=item.facts.header.sections_offset)
            elif not sections.headers:  # stripped off: nothing says where code is
                yield Library(item.member, None, as_data=True)
            elif (spans := loaded_spans(sections)) or bundle_spans(sections):
                yield Library(
                    item.member,
                    spans,
                    bundle_spans(sections),
                    as_data=holds_code_as_data(sections),
                    unloaded=len(spans) < len(sections.gpu_code),
                )
            elif may_hold_code_as_data(sections):
                yield Library(item.member, None, as_data=True, suspected=True)


def _is_next(library: Library, size: int) -> bool:
    """True when ``size`` windows are the next larger sample, and clearly less than all bytes."""
    before = (0, *SIZES)[SIZES.index(size)]
    if not library.is_open or library.windows != before or library.member.compressed_size <= CHEAP:
        return False
    places = window_places(library.sampled, size)
    return 0 < 2 * sum(length for _, length in places) < library.member.compressed_size


def _are_cheap(files: Sequence[Member]) -> bool:
    return sum(member.compressed_size for member in files) <= CHEAP


def look_into(source: ByteSource, archive: Archive, member: Member) -> tuple[GpuCode, int]:
    """What a small sample of a library of unknown sections shows, and how many bytes that took; of a small one nothing.

    Raises SourceError when bytes cannot be had.
    """
    (start,) = data_offsets(source, archive, [member])
    if isinstance(start, Unavailable) or member.compressed_size <= CHEAP:
        return GpuCode({}, "sampled", {}), 0
    ((code, read),) = sample(source, [(Sampled(member, start, ()), 0)], SIZES[1])
    return code, read


def data_offsets(source: ByteSource, archive: Archive, members: Sequence[Member]) -> list[int | Unavailable]:
    """Where the data of each member begins in the archive, after its local header."""
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
        offsets.append(start if fits else Unavailable("it overlaps the central directory"))
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
