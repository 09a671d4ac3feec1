"""The records at the end of a zip archive that say where its central directory is (PKWARE APPNOTE 6.3.10).

Stricter than unpackers on purpose: whatever lets two of them find two different directories is refused.
"""

import struct

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.directory import MAX_ENTRIES, REBUILD, EndRecord

MAX_DIRECTORY_SIZE = 32 * 1024 * 1024

_END = struct.Struct("<4s4H2IH")  # 4.3.16: signature, disks and entries, size, offset, comment length
_LOCATOR = struct.Struct("<4sIQI")  # 4.3.15
_END64 = struct.Struct("<4sQ2H2I4Q")  # 4.3.14
_END_SIGNATURE, _LOCATOR_SIGNATURE, _END64_SIGNATURE = b"PK\5\6", b"PK\6\7", b"PK\6\6"

_MAX_COMMENT = 0xFFFF
MAX_TAIL = _MAX_COMMENT + _END.size + _LOCATOR.size + _END64.size
"""The longest tail that :func:`find_end_record` asks for when a zip64 record has no extensible data, in bytes."""

_MOVED = "something precedes the archive, or it is damaged"
_SATURATED = (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


class EndRecordTruncatedError(FormatError):
    """The end of the archive begins before the bytes available: read from ``needed_offset`` to the end of the file.

    ``needed_offset`` is smaller than the offset of the tail that was given, by about 128 KiB at most. One such reading
    is enough unless the zip64 record carries extensible data, which no known writer emits.
    """

    def __init__(self, needed_offset: int) -> None:
        super().__init__(f"the end of the zip archive begins before the bytes read, perhaps at byte {needed_offset}")
        self.needed_offset = needed_offset


def find_end_record(tail: bytes, size: int) -> EndRecord:
    """Where the central directory is, from ``tail``, the last bytes of a file of ``size`` bytes.

    Raises EndRecordTruncatedError when a longer tail is needed, and FormatError when the file does not end with one
    single end record (as far as ``tail`` reaches) that agrees with the file and with its zip64 record.
    """
    start = size - len(tail)
    position = _locate_end_record(tail, start)
    told = _END.unpack_from(tail, position)[1:7]
    directory_end, zip64 = start + position, False
    if start and position < _LOCATOR.size:
        raise EndRecordTruncatedError(max(0, directory_end - _LOCATOR.size - _END64.size))
    locator = position - _LOCATOR.size
    if locator >= 0 and tail.startswith(_LOCATOR_SIGNATURE, locator):
        directory_end, told64 = _read_zip64(tail, start, locator)
        if any(short not in (full, ones) for short, full, ones in zip(told, told64, _SATURATED, strict=True)):
            raise FormatError("the zip64 end record and the ordinary one contradict each other", hint=REBUILD)
        told, zip64 = told64, True
    disk, directory_disk, disk_entries, entries, directory_size, directory_offset = told
    if disk or directory_disk or disk_entries != entries:
        raise FormatError("the zip archive is split over several disks", expected="a single file")
    _check_place(directory_offset, directory_size, directory_end, size)
    if entries > MAX_ENTRIES:
        raise FormatError(f"the zip archive states {entries} entries", expected=f"at most {MAX_ENTRIES}")
    comment_size = len(tail) - position - _END.size
    return EndRecord(directory_offset, directory_size, entries, zip64, comment_size)


def _check_place(offset: int, length: int, directory_end: int, size: int) -> None:
    """Raise FormatError unless the directory ends where the end records begin: readers guess differently otherwise."""
    end = offset + length
    if end > size:
        raise FormatError(
            f"the central directory should be at bytes {offset} to {end}, but the file has only {size}", hint=REBUILD
        )
    if end != directory_end:
        raise FormatError(
            f"the central directory should end at byte {end}, but the end record begins at byte {directory_end}",
            expected="no bytes outside the archive's structure",
            hint=_MOVED,
        )
    if length > MAX_DIRECTORY_SIZE:
        raise FormatError(f"the central directory has {length} bytes", expected=f"at most {MAX_DIRECTORY_SIZE}")


def _locate_end_record(tail: bytes, start: int) -> int:
    """The position in ``tail`` of the only end record whose comment reaches exactly to the end of the file."""
    first = max(0, len(tail) - _MAX_COMMENT - _END.size)
    fitting: list[int] = []
    misfit = -1
    position = len(tail)
    while (position := tail.rfind(_END_SIGNATURE, first, position + 3)) >= 0:
        comment_size = len(tail) - position - _END.size
        if comment_size >= 0 and tail.startswith(comment_size.to_bytes(2, "little"), position + _END.size - 2):
            fitting.append(position)
        elif misfit < 0:
            misfit = position
    if len(fitting) > 1:
        raise FormatError("the zip archive has two end records", hint="unpackers may disagree about its contents")
    if fitting:
        return fitting[0]
    if start and first == 0:
        raise EndRecordTruncatedError(max(0, start + len(tail) - MAX_TAIL))
    if misfit >= 0:
        raise FormatError(
            f"the zip archive's end record, at byte {start + misfit}, does not reach exactly to the end of the file",
            expected="nothing after the archive",
            hint="bytes were appended, or it was truncated",
        )
    raise FormatError(
        "the file has no zip end record", expected="a zip archive", hint="it is truncated, or not a wheel"
    )


def _read_zip64(tail: bytes, start: int, locator: int) -> tuple[int, tuple[int, ...]]:
    """The absolute offset of the zip64 end record, and its six fields in the order of the ordinary record."""
    _, locator_disk, offset, disks = _LOCATOR.unpack_from(tail, locator)
    if locator_disk or disks > 1:
        raise FormatError("the zip archive is split over several disks", expected="a single file")
    # The bound on the extensible data keeps a lying locator from making the caller read a whole file.
    if not _END64.size <= start + locator - offset <= _END64.size + _MAX_COMMENT:
        raise FormatError(
            f"the zip64 end record should be at byte {offset}, which is not just before byte {start + locator}",
            hint=_MOVED,
        )
    if offset < start:
        raise EndRecordTruncatedError(offset)
    signature, length, _, _, *fields = _END64.unpack_from(tail, offset - start)
    if signature == _END64_SIGNATURE and length != _END64.size - 12:
        raise FormatError(
            f"the zip64 end record has {length} bytes", expected=f"{_END64.size - 12}, without extensible data"
        )
    if signature != _END64_SIGNATURE or offset + 12 + length != start + locator:
        raise FormatError(f"no valid zip64 end record at byte {offset}", hint=_MOVED)
    return offset, tuple(fields)
