"""The extra fields of local headers and directory entries (PKWARE APPNOTE 6.3.10, 4.5; Info-ZIP's in 4.6).

Stricter than the specification: whatever makes one of two unpackers take another size or name is a fault.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.phrases import plural

ZIP64, UNICODE_PATH, UNICODE_COMMENT = 0x0001, 0x7075, 0x6375
ALL_ONES, ALL_ONES_16 = 0xFFFFFFFF, 0xFFFF
_NAMES = {ZIP64: "zip64", UNICODE_PATH: "Unicode path", UNICODE_COMMENT: "Unicode comment"}


@dataclass(frozen=True, slots=True)
class ExtraFault:
    """One thing wrong with extra fields: ``case`` is a row of ``data/installers.toml``.

    ``kind`` is "extra", or "index" where the index alone refuses it.
    """

    case: str
    message: str
    kind: str = "extra"


def extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """The identifiers and contents of the fields. Fewer than four bytes at the end are passed over.

    Raises FormatError, saying only what is wrong, for a field that runs over the end.
    """
    position = 0
    while position + 4 <= len(extra):
        identifier, length = struct.unpack_from("<HH", extra, position)
        if position + 4 + length > len(extra):
            raise FormatError(f"has an extra field ({identifier:#06x}) that exceeds its end")
        yield identifier, extra[position + 4 : position + 4 + length]
        position += 4 + length


def widen(extra: bytes, *numbers: int) -> list[int]:
    """``numbers`` with those that are 0xFFFFFFFF replaced, in order, from the zip64 extra field (4.5.3).

    Raises FormatError when an extra field is malformed or has no value for one of them.
    """
    fields = dict(reversed(list(extra_fields(extra))))  # of two alike the first counts, as in zipfile
    if ALL_ONES not in numbers:
        return list(numbers)
    content = fields.get(ZIP64, b"")
    values = iter(struct.unpack_from(f"<{len(content) // 8}Q", content))
    try:
        return [next(values) if number == ALL_ONES else number for number in numbers]
    except StopIteration:
        raise FormatError("needs a zip64 extra field that is missing or too short") from None


def has_zip64(extra: bytes) -> bool:
    """True when there is a zip64 field: a data descriptor then has sizes of eight bytes (4.3.9.2)."""
    return any(identifier == ZIP64 for identifier, _ in extra_fields(extra))


def extra_faults(
    extra: bytes, raw_name: bytes, sizes: tuple[int, int], place: tuple[int, int] | None
) -> list[ExtraFault]:
    """What is wrong with the fields of one header.

    ``sizes`` are the size and the compressed size as the header has them, ``place`` the offset and the disk of a
    directory entry (None in a local header). Raises FormatError for a field that runs over the end.
    """
    faults: list[ExtraFault] = []
    seen: set[int] = set()
    length = 0
    for identifier, content in extra_fields(extra):
        length += 4 + len(content)
        label = _NAMES.get(identifier, f"{identifier:#06x}")
        if identifier in seen:
            faults.append(ExtraFault("extra-twice", f"has the extra field {label} twice"))
        seen.add(identifier)
        if identifier == ZIP64:
            faults += _zip64_faults(content, sizes, place)
        elif identifier in (UNICODE_PATH, UNICODE_COMMENT) and (not content or (content[0] == 1 and len(content) < 5)):
            faults.append(ExtraFault("extra-short", f"has an extra field {label} that is truncated"))
        elif identifier == UNICODE_PATH:
            faults += _path_faults(content, raw_name)
    if length < len(extra):
        left = plural(len(extra) - length, "byte")
        faults.append(ExtraFault("extra-rest", f"has {left} after its extra fields", "index"))
    return faults


def _zip64_faults(content: bytes, sizes: tuple[int, int], place: tuple[int, int] | None) -> list[ExtraFault]:
    """A field must hold exactly the numbers that the header leaves to it."""
    needed = 8 * sizes.count(ALL_ONES)
    if place is not None:
        needed += 8 * (place[0] == ALL_ONES) + 4 * (place[1] == ALL_ONES_16)
    if len(content) == needed:
        return []
    if needed:
        message = f"has a zip64 field of {len(content)} bytes; its header leaves {needed} to it"
        return [ExtraFault("zip64-length", message)]
    if place is None and content == struct.pack("<QQ", *sizes):
        return []  # the sizes again, as some writers have it
    return [ExtraFault("zip64-unneeded", f"has a zip64 field of {len(content)} bytes that its header does not need")]


def _path_faults(content: bytes, raw_name: bytes) -> list[ExtraFault]:
    """A name that is put in place of ``raw_name`` (4.6.9); one for another name is passed over by all readers."""
    name = content[5:]
    if content[0] != 1 or int.from_bytes(content[1:5], "little") != zlib.crc32(raw_name) or name in (b"", raw_name):
        return []
    message = f"has an extra field that renames it to {name.decode('utf-8', 'replace')!r}"
    return [ExtraFault("unicode-path", message)]
