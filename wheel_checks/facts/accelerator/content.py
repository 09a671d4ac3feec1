"""The accelerator of a wheel's native code: its GPU code, and the libraries that it needs.

These facts follow only from the file. The names of ELF sections (``.nv_fatbin``) and DT_NEEDED (``libcudart.so.13``)
decide, on Windows PE sections and imported DLLs; their meaning is data, ``wheel_checks/data/accelerators.toml``.
Presence is shown by one library. Absence requires the section names and needed libraries of every native member.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from wheel_checks.errors import FormatError
from wheel_checks.facts.accelerator.meaning import (
    LONGEST_NAME,
    file_name,
    library_meaning,
    may_show,
    rows,
    section_meaning,
)
from wheel_checks.facts.accelerator.pe_libraries import MemberPe, may_be_pe, read_member_pes
from wheel_checks.facts.accelerator.shown import (
    ALL,
    ANY,
    CODE,
    FILES,
    GLANCE,
    IS,
    NAMES,
    NEEDS,
    QUICK,
    AcceleratorContent,
    Shown,
)
from wheel_checks.facts.accelerator.signals import CUDA, GPU, ROCM, member_signal
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.elf.absence import rule_out
from wheel_checks.facts.elf.held_bytes import HeldBytes
from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.elf.native_members import may_be_elf
from wheel_checks.facts.elf.reading import FAR, PASSING, THOROUGH, THRIFTY, Effort, read_member_elfs
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.formats.elf.header import MAGIC
from wheel_checks.formats.elf.sections import Sections
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.formats.pe.header import MAGIC as PE_MAGIC
from wheel_checks.formats.pe.header import PeHeader
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

PARTS = frozenset({Part.SECTIONS, Part.DYNAMIC, Part.SEGMENTS})
AT_HAND = 512 * 1024  # bytes of native members that are read in any case: small wheels are known for certain
FOR_A_VERSION = 4 * 1024 * 1024  # bytes within which CUDA versions are searched for after other evidence of CUDA

_SMALL = 1024 * 1024  # compressed bytes of a member that may be read whole
_LOOKED_INTO = 3  # members
_FIRST, _AT_ONCE = 4, 12  # members read together: the most likely ones, then the others
_HEAD = 1024  # compressed bytes that include the beginning of a member
_NOT_READ = "its compression ratio is extreme, or it shares bytes with another member"

Look = Callable[[Member], tuple[GpuCode, int]]
"""The GPU code found in a sample of a member, and how many bytes that took."""


def read_accelerator_content(
    source: ByteSource,
    archive: Archive,
    *,
    most: int = QUICK,
    wanted: str = "",
    at_hand: int = AT_HAND,
    look: Look | None = None,
    effort: Effort = THOROUGH,
) -> AcceleratorContent:
    """The accelerators that the native members show. The likeliest members come first: by name, then by size.

    The search ends when ``wanted`` is shown (``ANY`` for any accelerator, ``ALL`` after all members; "" for one with
    its versions, at least when ``FOR_A_VERSION`` bytes were read), not before ``at_hand`` bytes, and after ``most``
    bytes at the latest. Until then, ``look`` searches for GPU code in members whose section names are far from head and
    tail, the largest first; then, and for ``ALL``, members with distant needs are streamed up to their dynamic strings.
    With a lesser ``effort`` nothing is streamed. Raises SourceError.
    """
    native = [m for m in archive.members if may_be_elf(m) or may_be_pe(m)]
    readable = {id(m) for m in unpackable(archive.members)}
    originals: dict[tuple[int, ...], list[Member]] = {}
    windows: dict[tuple[int, ...], list[Member]] = {}
    for member in native:
        if id(member) in readable:
            content = (member.crc32, member.size, member.compressed_size, member.method)
            (originals if may_be_elf(member) else windows).setdefault(content, []).append(member)
    found = _Found({m.name.rpartition("/")[2] for m in native})
    found.unread |= {m.name: _NOT_READ for m in native if id(m) not in readable}
    found.shown += _code_files(source, archive, [m for m in archive.members if id(m) in readable])
    queue = sorted(originals.values(), key=lambda copies: _likelihood(copies[0]), reverse=True)
    to_stream: list[Sequence[Member]] = []
    if effort is THOROUGH and sum(copies[0].compressed_size for copies in queue) > most:  # not all can be read
        at_hand, glance = 0, _glance(source, archive, queue, found)
        if glance.is_enough(wanted) and (wanted or _is_firm(glance, queue)):
            found, queue = glance, []
    while queue and found.bytes_read < most and not found.ends_before(queue[0][0], wanted, at_hand):
        size = _FIRST if len(queue) == len(originals) else _AT_ONCE
        batch, queue = queue[:size], queue[size:]
        to_stream += _read_batch(HeldBytes(source, archive.end.directory_offset), archive, batch, found, effort)
    if look is not None and not found.shown:
        found.look_into([copies[0] for copies in to_stream], look)
    if effort is not THOROUGH:
        to_stream = []
    for copies in sorted(to_stream, key=lambda copies: copies[0].compressed_size):
        _stream(source, archive, copies, found, most, wanted)
    libraries = [*windows.values(), *(copies for copies in originals.values() if copies[0].name in found.of_windows)]
    _read_windows(source, archive, libraries, found, most, at_hand, wanted)
    return AcceleratorContent(
        shown=tuple(dict.fromkeys(found.shown)),
        native=len(native) - found.not_code,
        read=found.read,
        unread=tuple(found.unread.items()),
        bytes_read=found.bytes_read,
    )


def glance_at_accelerator(source: ByteSource, archive: Archive) -> AcceleratorContent:
    """The accelerator that heads and tails of the native members show, stopping at the first, within ``GLANCE`` bytes.

    For a wheel that is not itself under examination: absence proves nothing. Raises SourceError.
    """
    return read_accelerator_content(source, archive, most=GLANCE, wanted=ANY, at_hand=0, effort=PASSING)


def _glance(source: ByteSource, archive: Archive, queue: Sequence[Sequence[Member]], found: _Found) -> _Found:
    """``found`` plus the likeliest members of a large wheel: small ones whole, heads and short tails of others."""
    found = copy.deepcopy(found)
    likely = [copies for copies in queue[:_FIRST] if _likelihood(copies[0])[0]] or queue[:_FIRST]
    for effort in (THOROUGH, THRIFTY):
        some = [copies for copies in likely if (copies[0].compressed_size <= _SMALL) is (effort is THOROUGH)]
        _read_batch(HeldBytes(source, archive.end.directory_offset), archive, some, found, effort)
    return found


def _is_firm(found: _Found, queue: Sequence[Sequence[Member]]) -> bool:
    """Whether a library's needs or identity show a version, and no other member is likely to show another."""
    more = queue[_FIRST : _FIRST + 1]
    return any(s.version and s.how in (NEEDS, IS) for s in found.shown) and not (more and _likelihood(more[0][0])[0])


def _read_batch(
    source: ByteSource, archive: Archive, batch: Sequence[Sequence[Member]], found: _Found, effort: Effort
) -> list[Sequence[Member]]:
    """Record the accelerators of these members; the first of each group with its copies. Returns those not read."""
    hinted = [copies for copies in batch if _likelihood(copies[0])[0]]
    plain = [copies for copies in batch if not _likelihood(copies[0])[0]]
    for copies, absence in zip(plain, rule_out(source, archive, [c[0] for c in plain], may_show), strict=True):
        found.bytes_read += absence.bytes_read
        if absence.proven:
            found.read += len(copies)
        else:
            hinted.append(copies)
    elfs = read_member_elfs(source, archive, [c[0] for c in hinted], PARTS, effort=effort)
    for copies, elf in zip(hinted, elfs, strict=True):
        found.take(elf, len(copies), partial(_begins, source, archive))
    return [copies for copies in hinted if copies[0].name in found.unread]


def _stream(
    source: ByteSource, archive: Archive, copies: Sequence[Member], found: _Found, most: int, wanted: str
) -> None:
    """Read on in a member, within the bounds: for the names that it may need, and for its needs if these matter."""
    for _ in range(2):
        left = (FOR_A_VERSION if found.shown and not wanted else most) - found.bytes_read
        if found.is_enough(wanted) or left <= 0:
            return
        if copies[0].name in found.may_need:
            (elf,) = read_member_elfs(source, archive, copies[:1], PARTS, effort=FAR, stream=left)
        else:
            (elf,) = read_member_elfs(source, archive, copies[:1], PARTS, stream_names=left)
        found.take(elf, len(copies), partial(_begins, source, archive))
        if copies[0].name not in found.unread:
            return


def _read_windows(
    source: ByteSource,
    archive: Archive,
    queue: Sequence[Sequence[Member]],
    found: _Found,
    most: int,
    at_hand: int,
    wanted: str,
) -> None:
    """Read the libraries of Windows, within the same bounds: likely ones first, then by size, the smallest first."""
    queue = sorted(queue, key=lambda copies: (not _likelihood(copies[0])[0], copies[0].compressed_size))
    to_stream = []
    while queue and found.bytes_read < most and not found.ends_before(queue[0][0], wanted, at_hand):
        batch, queue = queue[:_FIRST], queue[_FIRST:]
        pes = read_member_pes(source, archive, [copies[0] for copies in batch], has_code=_has_code)
        for copies, pe in zip(batch, pes, strict=True):
            found.take_pe(pe, len(copies))
            if pe.member.name in found.unread:
                to_stream.append(copies)
    for copies in to_stream:
        left = most - found.bytes_read
        if (found.is_enough(wanted) if wanted else found.shown) or left <= 0:
            break
        (pe,) = read_member_pes(source, archive, copies[:1], stream=left)
        found.take_pe(pe, len(copies))


def content_of_files(files: Mapping[str, ElfFacts | str]) -> AcceleratorContent:
    """The accelerators that the libraries of a tree show, by path; a string is a reason, "" if the file is not ELF."""
    found = _Found({path.rpartition("/")[2] for path in files})
    native = {path: facts for path, facts in files.items() if facts != ""}
    for path, facts in native.items():
        found.note(path, Unavailable(facts) if isinstance(facts, str) else facts, None, 1)
    return AcceleratorContent(tuple(dict.fromkeys(found.shown)), len(native), found.read, tuple(found.unread.items()))


class _Found:
    """The results so far, member by member; ``own`` are the base names of all native members."""

    def __init__(self, own: set[str]) -> None:
        self.own = {file_name(name) for name in own}
        self.shown: list[Shown] = []
        self.of_windows: set[str] = set()
        self.may_need: set[str] = set()  # members that may need an accelerator's library, by their dynamic strings
        self.unread: dict[str, str] = {}
        self.read = 0
        self.not_code = 0
        self.bytes_read = 0

    def is_enough(self, wanted: str) -> bool:
        """True when the wanted accelerator is shown."""
        if wanted == ALL:
            return False
        if wanted:
            return any(wanted == s.accelerator or (wanted not in GPU and s.how != FILES) for s in self.shown)
        if len({s.version for s in self.shown if s.accelerator == CUDA and s.version}) > 1:
            return False  # all of several majors are to be named
        firm = [s for s in self.shown if s.how != FILES]
        named = any(s.version or s.accelerator not in (CUDA, ROCM) for s in firm)
        return named or bool(firm and self.bytes_read >= FOR_A_VERSION)

    def ends_before(self, member: Member, wanted: str, at_hand: int) -> bool:
        """True when the wanted accelerator is shown, and ``member`` is not worth reading."""
        is_hinted = not wanted and _likelihood(member)[0]  # it may be for another version
        return self.bytes_read >= (FOR_A_VERSION if is_hinted else at_hand) and self.is_enough(wanted)

    def take(self, elf: MemberElf, copies: int, begins: Callable[[Member], bytes]) -> None:
        """Record the accelerators of one member; ``copies`` members have the same content."""
        self.bytes_read += elf.bytes_read
        if isinstance(elf.facts, Unavailable) and (head := begins(elf.member)) and not head.startswith(MAGIC):
            if head.startswith(PE_MAGIC):
                self.of_windows.add(elf.member.name)  # tensorflow-intel has _xla_ops.so
            else:
                self.not_code += copies  # a linker script, a program in a language of scripts, or a library of macOS
            return
        names = None if isinstance(elf.possible_names, Unavailable) else elf.possible_names
        self.note(elf.member.name, elf.facts, names, copies)

    def take_pe(self, pe: MemberPe, copies: int) -> None:
        """Record the accelerators of one Windows library; the loader knows it by its file name."""
        self.bytes_read += pe.bytes_read
        member = pe.member.name
        if pe.header is None:
            self.not_code += copies
            self.unread.pop(member, None)
            return
        if isinstance(pe.header, Unavailable):
            self.unread[member] = pe.header.reason
            return
        self._note_sections(member, [section.name for section in pe.header.sections if section.size])
        self._note_names(member, [member.rpartition("/")[2]], IS)
        if isinstance(pe.imports, Unavailable):
            self.unread[member] = pe.imports.reason
            return
        self._note_names(member, pe.imports, NEEDS)
        self.read += copies
        self.unread.pop(member, None)

    def look_into(self, members: Sequence[Member], look: Look) -> None:
        """Note the first member in which GPU code is seen, of the largest ones."""
        for member in sorted(members, key=lambda member: member.compressed_size, reverse=True)[:_LOOKED_INTO]:
            code, bytes_read = look(member)
            self.bytes_read += bytes_read
            for accelerator, labels in ((CUDA, (*code.sass, *code.ptx)), (ROCM, code.gfx)):
                if labels:
                    self.shown.append(Shown(accelerator, CODE, f"GPU code ({', '.join(labels)})", member.name))
            if self.shown:
                break

    def note(self, member: str, facts: ElfFacts | Unavailable, possible: Sequence[str] | None, copies: int) -> None:
        """Record the accelerators of an ELF file; ``possible`` strings include its needs, if these are unknown."""
        if isinstance(facts, Unavailable):
            self.unread[member] = facts.reason
            return
        lacking = []
        if not isinstance(facts.sections, Sections) or (not facts.sections.headers and facts.header.segment_count):
            lacking.append("the names of its sections")
        elif facts.sections.headers:
            self._note_sections(member, [s.name for s in facts.sections.headers if s.size and s.in_file])
        if isinstance(facts.dynamic, DynamicFacts):
            self._note_names(member, facts.dynamic.needed, NEEDS)
            self._note_names(member, [facts.dynamic.soname or ""], IS)
        elif facts.dynamic is not None and (possible is None or any(map(may_show, possible))):
            lacking.append("what it needs")
            if possible is not None:
                self.may_need.add(member)
            has_code = {s.accelerator for s in self.shown if s.member == member and s.how == CODE}
            self._note_names(member, possible or (), NAMES, has_code)
        if lacking:
            self.unread[member] = f"{' and '.join(lacking)} are out of reach"
        else:
            self.read += copies
            self.unread.pop(member, None)

    def _note_sections(self, member: str, names: Iterable[str]) -> None:
        for name in dict.fromkeys(names):
            self.shown += [Shown(accelerator, CODE, name, member) for accelerator in section_meaning(name)]

    def _note_names(self, member: str, names: Iterable[str], how: str, only: Collection[str] = GPU) -> None:
        for name in names:
            for accelerator, version in library_meaning(name):
                own = how == NEEDS and file_name(name) in self.own
                if accelerator in only:
                    self.shown.append(Shown(accelerator, how, name, member, version, own))


def _has_code(header: PeHeader) -> bool:
    return any(section.size and section_meaning(section.name) for section in header.sections)


def _likelihood(member: Member) -> tuple[bool, int]:
    return bool(member_signal([member.name]).accelerators), member.compressed_size


def _code_files(source: ByteSource, archive: Archive, members: Sequence[Member]) -> Iterator[Shown]:
    """The first member of each kind of file that is GPU code itself, and begins as such a file does."""
    for pattern, row in rows("file"):
        named = [m for m in members if len(m.name) <= LONGEST_NAME and pattern.search(m.name)]
        magic, offset = bytes.fromhex(row["magic"]), row["offset"]
        for member in named[:2]:
            if _begins(source, archive, member)[offset:].startswith(magic):
                yield Shown(row["accelerator"], FILES, f"GPU code ({len(named)} such files)", member.name)
                break


def _begins(source: ByteSource, archive: Archive, member: Member) -> bytes:
    """The first bytes of a member, or none if it cannot be read."""
    room = LOCAL_HEADER_SIZE + len(member.raw_name) + _HEAD
    length = max(0, min(room, archive.end.directory_offset - member.header_offset))
    data = source.read(member.header_offset, length) if length else b""
    try:
        start = read_local_header(data).header_size
        return next(inflate_stream(member, [data[start : start + member.compressed_size]]), b"")
    except FormatError:
        return b""
