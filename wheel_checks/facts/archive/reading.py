"""The archive of a wheel as its central directory describes it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from wheel_checks.facts.archive.columns import Columns, SizedArchive
from wheel_checks.facts.archive.facts import Archive, ArchiveFault
from wheel_checks.facts.archive.kept import NOTHING_KEPT, FileFacts
from wheel_checks.facts.archive.map import limited, wide_gaps
from wheel_checks.formats.zip.directory import (
    MOST_FAULTS,
    DirectoryFault,
    EndRecord,
    overlaps,
    read_directory,
    suspicious_comment,
)
from wheel_checks.formats.zip.end_record import EndRecordTruncatedError, find_end_record
from wheel_checks.sources.byte_source import ByteSource

TAIL = 64 * 1024  # bytes; holds the end record, and the whole directory of most wheels


def read_archive(source: ByteSource, kept: FileFacts = NOTHING_KEPT) -> Archive:
    """The archive as its central directory describes it, and nothing else. Raises FormatError and SourceError."""
    return read_sized_archive(source, partial(source.read_tail, TAIL), kept).archive


def read_sized_archive(source: ByteSource, read_tail: Callable[[], tuple[int, bytes]], kept: FileFacts) -> SizedArchive:
    """The same with the size of the file; ``read_tail`` gives that size and the last bytes."""
    return kept.remember("archive", Columns(), lambda: _read_archive(source, *read_tail()))


def _read_archive(source: ByteSource, size: int, tail: bytes) -> SizedArchive:
    start = size - len(tail)

    def read(offset: int, length: int) -> bytes:
        """Bytes of the file, whose tail is available already."""
        if offset >= start:
            return tail[offset - start : offset - start + length]
        return source.read(offset, min(length, start - offset)) + tail[: max(0, offset + length - start)]

    end = _end_record(source, size, tail)
    members, faults = read_directory(read(end.directory_offset, end.directory_size), end)
    found = [_of_directory(fault) for fault in faults]
    shared = overlaps(members, end.directory_offset)
    for a, b in shared[:MOST_FAULTS]:
        what = f"{a.name} and {b.name} share bytes" if b else f"{a.name} overlaps the central directory"
        found.append(ArchiveFault("overlap", what, a.name))
    if len(shared) > MOST_FAULTS:
        found.append(ArchiveFault("overlap", f"and {len(shared) - MOST_FAULTS:,} more pairs of members"))
    comment = tail[len(tail) - end.comment_size :] if end.comment_size else b""
    if said := suspicious_comment(comment):
        found.append(ArchiveFault("comment", f"the comment of the archive {said}", case="comment-archive"))
    archive = Archive(end, tuple(members), tuple(found))
    return SizedArchive(size, replace(archive, faults=(*found, *limited(wide_gaps(archive)))))


def _of_directory(fault: DirectoryFault) -> ArchiveFault:
    own = fault.kind if fault.kind in ("extra", "comment", "version", "index") else "directory"
    return ArchiveFault(own, fault.message, fault.member, fault.case)


def _end_record(source: ByteSource, size: int, tail: bytes) -> EndRecord:
    try:
        return find_end_record(tail, size)
    except EndRecordTruncatedError as more:
        missing = size - len(tail) - more.needed_offset
        return find_end_record(source.read(more.needed_offset, missing) + tail, size)
