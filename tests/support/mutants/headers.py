"""Archives whose headers, descriptors, extra fields, comments and end records say more, less or something else."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.support.mutants.base import CODE, FILES, INFO, STORED_MEMBER, Mutant, archive, changed, entries, from_a_pipe
from tests.support.zips import DEFLATED, STORED, ZipEntry, described, write_zip

OTHER = ZipEntry(CODE, b"import os\n")
INNER = write_zip([OTHER])


def mutants() -> Iterator[Mutant]:
    """All kinds."""
    yield from _sound()
    yield from _flags()
    yield from _methods()
    yield from _members()
    yield from _extras()
    yield from _zip64()
    yield from _descriptors()
    yield from _comments()
    yield from _end_records()


def _sound() -> Iterator[Mutant]:
    """What all readers take, so that a judge that refuses everything shows."""
    kind = "sound"
    yield archive(kind, "plain", entries())
    yield archive(kind, "stored", [replace(e, method=STORED) for e in entries()])
    yield archive(kind, "from a pipe", from_a_pipe())
    yield archive(kind, "from a pipe, descriptors without a signature", from_a_pipe(signature=False))
    yield archive(kind, "with zip64 fields and end record", entries(zip64=True), zip64=True)
    yield archive(kind, "with a zip64 end record", entries(), zip64=True)
    yield archive(kind, "with a comment", entries(), comment=b"built by hand")
    yield archive(kind, "with folders", entries({"demo/": b"", f"{INFO}/": b"", **FILES}))
    stamps = struct.pack("<HHBI", 0x5455, 5, 1, 1_700_000_000)
    yield archive(kind, "with time stamps of Info-ZIP", entries(extra=stamps))
    yield archive(kind, "with members reversed", entries()[::-1])
    yield archive(kind, "with names in UTF-8", entries({"demo/größe.txt": b"x", **FILES}))
    yield archive(kind, "with comments of members", entries(comment=b"a member"))


def _flags() -> Iterator[Mutant]:
    for bit in range(16):
        flag = 1 << bit
        yield archive(
            "flags: both headers", f"bit {bit}", changed(CODE, local={"flags": flag}, directory={"flags": flag})
        )
        yield archive("flags: local header only", f"bit {bit}", changed(CODE, local={"flags": flag}))
        yield archive("flags: directory only", f"bit {bit}", changed(CODE, directory={"flags": flag}))
    for name in ("demo/größe.txt", "demo/data.txt"):
        data = entries({name: b"x", **FILES})
        for local, there in ((0, 0x800), (0x800, 0), (0, 0), (0x800, 0x800)):
            first = replace(data[0], local={"flags": local}, directory={"flags": there})
            yield archive("flags: UTF-8", f"{name}: {local:#x}, directory {there:#x}", [first, *data[1:]])
    for raw in (b"demo/gr\xf6\xdfe.txt", b"demo/\xff\xfe.txt", b"demo/\xc3"):
        for flag in (0, 0x800):
            entry = ZipEntry(raw, b"x", flags=flag)
            yield archive("flags: UTF-8", f"{raw!r} with {flag:#x}", [entry, *entries()])


def _methods() -> Iterator[Mutant]:
    for method in (1, 6, 7, 9, 12, 14, 20, 93, 95, 98, 99, 255):
        both = {"method": method}
        yield archive("compression methods", f"{method}", changed(CODE, local=both, directory=both))
        yield archive("compression methods", f"{method} in the local header", changed(CODE, local=both))
        yield archive("compression methods", f"{method} in the directory", changed(CODE, directory=both))
    for member, method in ((CODE, STORED), (STORED_MEMBER, DEFLATED)):
        both = {"method": method}
        yield archive("compression methods", f"{member} says {method}", changed(member, local=both, directory=both))
        yield archive("compression methods", f"{member} says {method} in its header", changed(member, local=both))
        yield archive(
            "compression methods", f"{member} says {method} in the directory", changed(member, directory=both)
        )
    packed = ZipEntry(CODE, FILES[CODE]).compressed()
    for what, payload in {
        "bytes after the stream": packed + b"more",
        "a zero after the stream": packed + b"\0",
        "a stream cut off": packed[:-3],
        "two streams": packed + packed,
        "nothing": b"",
        "an empty block before": b"\0\0\0\xff\xff" + packed,
    }.items():
        yield archive("deflate streams", what, changed(CODE, payload=payload))
        sizes = {"compressed_size": len(packed)}
        yield archive(
            "deflate streams",
            f"{what}, sizes of the stream",
            changed(CODE, payload=payload, local=sizes, directory=sizes),
        )


def _members() -> Iterator[Mutant]:
    """Members twice, hidden, in other orders, or with another header than the directory's."""
    kind, sound = "members", entries()
    by_name = {entry.name: entry for entry in sound}
    same, other = by_name[CODE], OTHER
    for place in (0, 2, len(sound)):
        yield archive(f"{kind}: twice", f"the same bytes, at {place}", [*sound[:place], same, *sound[place:]])
        yield archive(f"{kind}: twice", f"other bytes, at {place}", [*sound[:place], other, *sound[place:]])
        executable = replace(same, mode=0o100755)
        yield archive(f"{kind}: twice", f"executable, at {place}", [*sound[:place], executable, *sound[place:]])
    for size in (1, 3, len(sound)):
        yield _without_entries(f"{kind}: not in the directory", sound, {size - 1})
    yield _without_entries(f"{kind}: not in the directory", [other, *sound], {0})
    yield _without_entries(f"{kind}: not in the directory", [*sound, other], {len(sound)})
    for name in (CODE, f"{INFO}/METADATA", f"{INFO}/RECORD"):
        for field, value in {
            "name": b"demo/other.py",
            "crc32": 0,
            "size": 5,
            "compressed_size": 5,
            "header_offset": 0,
            "header_offset ": 10**6,
        }.items():
            said: dict[str, Any] = {field.strip(): value}
            yield archive(f"{kind}: headers differ", f"{name}: directory {said}", changed(name, directory=said))
            if "offset" not in field:
                yield archive(f"{kind}: headers differ", f"{name}: local {said}", changed(name, local=said))
                yield archive(f"{kind}: both lie", f"{name}: {said}", changed(name, local=said, directory=said))
    for mode in (0o120777, 0o040755, 0o060644, 0o020644, 0o010644, 0o140644, 0, 0o100000, 0o104755, 0o100777):
        yield archive(f"{kind}: modes", f"{mode:o}", changed(CODE, mode=mode))
    for system in (0, 1, 7, 10, 19, 255):
        yield archive(f"{kind}: systems", str(system), changed(CODE, create_system=system))


def _without_entries(kind: str, members: list[ZipEntry], hidden: set[int]) -> Mutant:
    """An archive whose directory leaves members out."""
    shown = [entry for number, entry in enumerate(members) if number not in hidden]
    whole = []
    gap = b""
    for number, entry in enumerate(members):
        if number in hidden:
            gap += write_zip([entry])[: 30 + len(entry.raw_name) + len(entry.compressed())]
        else:
            whole.append(replace(entry, before=gap))
            gap = b""
    return (
        archive(
            kind, f"{', '.join(str(members[n].name) for n in hidden)} of {len(members)}", whole, before_directory=gap
        )
        if shown
        else archive(kind, "none", whole)
    )


def _field(identifier: int, content: bytes, length: int | None = None) -> bytes:
    return struct.pack("<HH", identifier, len(content) if length is None else length) + content


def _extras() -> Iterator[Mutant]:
    name = CODE.encode()
    paths = {
        "another name": struct.pack("<BI", 1, zlib.crc32(name)) + b"demo/other.py",
        "the same name": struct.pack("<BI", 1, zlib.crc32(name)) + name,
        "another name for another": struct.pack("<BI", 1, 7) + b"demo/other.py",
        "no UTF-8": struct.pack("<BI", 1, zlib.crc32(name)) + b"\xff\xfe",
        "version 2": struct.pack("<BI", 2, zlib.crc32(name)) + b"demo/other.py",
        "an empty name": struct.pack("<BI", 1, zlib.crc32(name)),
        "a name that climbs": struct.pack("<BI", 1, zlib.crc32(name)) + b"../../evil.py",
        "a NUL": struct.pack("<BI", 1, zlib.crc32(name)) + b"demo/other.py\0x",
        "nothing": b"",
        "three bytes": b"\1\0\0",
    }
    for what, content in paths.items():
        yield from _with_extra("extra fields: Unicode path", what, _field(0x7075, content))
    unknown = _field(0xCAFE, b"abcd")
    for what, extra in {
        "an unknown field": unknown,
        "twice one field": unknown + unknown,
        "twice a time stamp": _field(0x5455, b"\1\0\0\0\0") * 2,
        "a field that overruns": _field(0xCAFE, b"abcd", 9),
        "a field that overruns by far": _field(0xCAFE, b"abcd", 60_000),
        "one byte": b"\0",
        "three bytes": b"\1\2\3",
        "a field and two bytes": unknown + b"\0\0",
        "zeros": bytes(8),
        "a long field": _field(0xCAFE, bytes(60_000)),
        "a Unicode comment": _field(0x6375, struct.pack("<BI", 1, 0) + b"hello"),
        "an empty Unicode comment": _field(0x6375, b""),
        "AES": _field(0x9901, b"\2\0AE\3\10\0"),
        "a header inside": _field(0xCAFE, b"PK\3\4" + bytes(26)),
        "an end record inside": _field(0xCAFE, b"PK\5\6" + bytes(18)),
        "an archive inside": _field(0xCAFE, INNER),
    }.items():
        yield from _with_extra("extra fields", what, extra)


def _with_extra(kind: str, what: str, extra: bytes) -> Iterator[Mutant]:
    yield archive(kind, f"{what}, both headers", changed(CODE, extra=extra))
    yield archive(kind, f"{what}, local header", changed(CODE, local={"extra": extra}))
    yield archive(kind, f"{what}, directory", changed(CODE, directory={"extra": extra}))


def _zip64() -> Iterator[Mutant]:
    data = FILES[CODE]
    packed, size = len(ZipEntry(CODE, data).compressed()), len(data)
    ones = 0xFFFFFFFF
    for what, content in {
        "not needed": struct.pack("<QQ", size, packed),
        "not needed, other sizes": struct.pack("<QQ", 5, 5),
        "not needed, one size": struct.pack("<Q", size),
        "not needed, with an offset": struct.pack("<QQQ", size, packed, 0),
        "not needed, with a disk": struct.pack("<QQQI", size, packed, 0, 0),
        "empty": b"",
        "four bytes": bytes(4),
        "too long": struct.pack("<QQ", size, packed) + bytes(16),
    }.items():
        yield from _with_extra("zip64 fields: not needed", what, _field(1, content))
    both = struct.pack("<QQ", size, packed)
    widened = {"size": ones, "compressed_size": ones}
    for what, extra in {
        "right": _field(1, both),
        "twice": _field(1, both) * 2,
        "twice, other sizes second": _field(1, both) + _field(1, struct.pack("<QQ", 5, 5)),
        "twice, other sizes first": _field(1, struct.pack("<QQ", 5, 5)) + _field(1, both),
        "too long": _field(1, both + bytes(8)),
        "too long by four": _field(1, both + bytes(4)),
        "too short": _field(1, both[:8]),
        "missing": b"",
        "other sizes": _field(1, struct.pack("<QQ", 5, 5)),
    }.items():
        field = {"extra": extra, **widened}
        yield archive("zip64 fields: needed", f"{what}, both headers", changed(CODE, local=field, directory=field))
        yield archive("zip64 fields: needed", f"{what}, local header", changed(CODE, local=field))
        yield archive("zip64 fields: needed", f"{what}, directory", changed(CODE, directory=field))
    for missing, value in (("size", size), ("compressed_size", packed)):
        field = {"extra": _field(1, struct.pack("<Q", value)), missing: ones}
        yield archive(
            "zip64 fields: needed", f"{missing} alone, both headers", changed(CODE, local=field, directory=field)
        )
        yield archive("zip64 fields: needed", f"{missing} alone, local header", changed(CODE, local=field))
        yield archive("zip64 fields: needed", f"{missing} alone, directory", changed(CODE, directory=field))


def _descriptors() -> Iterator[Mutant]:
    kind = "data descriptors"
    data = FILES[CODE]
    crc, packed, size = zlib.crc32(data), len(ZipEntry(CODE, data).compressed()), len(data)
    right = struct.pack("<III", crc, packed, size)
    zeros = {"crc32": 0, "compressed_size": 0, "size": 0}
    for what, after in {
        "missing": b"",
        "without a signature": right,
        "with a signature": b"PK\7\x08" + right,
        "wrong CRC": b"PK\7\x08" + struct.pack("<III", crc ^ 1, packed, size),
        "wrong packed size": b"PK\7\x08" + struct.pack("<III", crc, packed + 1, size),
        "wrong size": b"PK\7\x08" + struct.pack("<III", crc, packed, size + 1),
        "sizes swapped": b"PK\7\x08" + struct.pack("<III", crc, size, packed),
        "of zip64": b"PK\7\x08" + struct.pack("<IQQ", crc, packed, size),
        "of zip64 without a signature": struct.pack("<IQQ", crc, packed, size),
        "twice": (b"PK\7\x08" + right) * 2,
        "cut off": (b"PK\7\x08" + right)[:-4],
        "of zeros": b"PK\7\x08" + bytes(12),
        "with another signature": b"PK\7\x09" + right,
    }.items():
        for flags, where in ((8, "both"), (0, "none")):
            base = ZipEntry(CODE, data, flags=flags, descriptor=after)
            said = zeros if flags else {}
            yield archive(kind, f"{what}, flag in {where}", _replaced(replace(base, local=said)))
        yield archive(
            kind, f"{what}, sizes in the header too", _replaced(ZipEntry(CODE, data, flags=8, descriptor=after))
        )
        only_local = ZipEntry(CODE, data, descriptor=after, local={"flags": 8, **zeros})
        yield archive(kind, f"{what}, flag in the local header", _replaced(only_local))
        yield archive(
            kind,
            f"{what}, flag in the directory",
            _replaced(ZipEntry(CODE, data, descriptor=after, directory={"flags": 8})),
        )
    yield archive(kind, "stored", _replaced(described(CODE, data, method=STORED)))
    yield archive(
        kind,
        "stored, sizes in the header",
        _replaced(described(CODE, data, method=STORED, local={"crc32": crc, "compressed_size": size, "size": size})),
    )
    yield archive(kind, "of a folder", [described("demo/", b"", method=STORED), *entries()])
    yield archive(kind, "of an empty file", [described("demo/empty.py", b""), *entries()])
    wide = {"extra": _field(1, struct.pack("<QQ", 0, 0)), "compressed_size": 0xFFFFFFFF, "size": 0xFFFFFFFF}
    yield archive(kind, "of zip64 with a field", _replaced(described(CODE, data, zip64=True, local=wide)))
    yield archive(kind, "plain with a zip64 field", _replaced(described(CODE, data, local=wide)))
    small = {"extra": _field(1, struct.pack("<QQ", 0, 0))}
    yield archive(
        kind, "of zip64 with a field that is not needed", _replaced(described(CODE, data, zip64=True, local=small))
    )


def _replaced(entry: ZipEntry) -> list[ZipEntry]:
    return [entry if other.name == entry.name else other for other in entries()]


def _comments() -> Iterator[Mutant]:
    for what, comment in {
        "an end record": b"PK\5\6" + bytes(18),
        "a signature of an end record": b"text PK\5\6 text",
        "an archive": INNER,
        "an archive and text": INNER + b"end",
        "a locator": b"PK\6\7" + bytes(16),
        "a control character": b"text \3 text",
        "no UTF-8": b"\xff\xfe\xfd",
        "NUL": bytes(12),
        "65,535 bytes": b"x" * 65_535,
        "lines": b"a\nb\r\n\tc",
        "a local header": b"PK\3\4" + bytes(26),
    }.items():
        yield archive("comments: archive", what, entries(), comment=comment)
        yield archive("comments: member", what, changed(CODE, comment=comment))
        yield archive("comments: last member", what, changed(f"{INFO}/RECORD", comment=comment))


def _end_records() -> Iterator[Mutant]:
    kind, sound = "end records", entries()
    for suffix in (b"\0", bytes(100), b"\n", b"PK", INNER, b"PK\5\6" + bytes(18)):
        yield archive(f"{kind}: bytes behind", repr(suffix[:8]), sound, suffix=suffix)
    for prefix in (b"#!/bin/sh\n", b"\0", INNER, b"MZ" + bytes(100), b"PK\3\4"):
        yield archive(f"{kind}: bytes before, offsets not moved", repr(prefix[:8]), sound, prefix=prefix)
        first = replace(sound[0], before=prefix)
        yield archive(f"{kind}: bytes before, offsets moved", repr(prefix[:8]), [first, *sound[1:]])
    for end in ({"entries": 3}, {"entries": 99}, {"directory_size": 10}, {"directory_offset": 0}, {"disk": 1}):
        yield archive(f"{kind}: wrong", str(end), sound, end=end)
        yield archive(f"{kind}: wrong", f"zip64 {end}", sound, end=end, zip64=True)
    data = write_zip(sound, zip64=True)
    at = data.rfind(b"PK\6\6")
    more = bytes(8)
    longer = data[: at + 4] + struct.pack("<Q", 44 + 8) + data[at + 12 : at + 56] + more + data[at + 56 :]
    yield Mutant(f"{kind}: extensible data", "8 bytes", longer)
    plain = data[: at + 56] + data[at + 76 :]
    yield Mutant(f"{kind}: extensible data", "a zip64 record without a locator", plain)
    last = data.rfind(b"PK\5\6")
    numbers = data[at + 24 : at + 56]
    count, size, offset = (int.from_bytes(numbers[n : n + 8], "little") for n in (8, 16, 24))
    for what, fields in {
        "right": (0, 0, count, count, size, offset, 0),
        "another count": (0, 0, count - 1, count - 1, size, offset, 0),
        "another size": (0, 0, count, count, size - 46, offset, 0),
        "another offset": (0, 0, count, count, size, offset + 46, 0),
    }.items():
        yield Mutant(f"{kind}: zip64 and ordinary", what, data[: last + 4] + struct.pack("<4H2IH", *fields))
