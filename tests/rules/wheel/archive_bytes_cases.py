"""WHL009, WHL014 to WHL019 and WHL125: every byte of the archive, and members that installers cannot write."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from tests.rules.case import WARNING, Case
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from tests.support.zips import ZipEntry, described, write_zip
from wheel_checks.facts.wheel.facts import WheelFacts

CODE = b"x = 1\n" * 9
HIDDEN = write_zip([ZipEntry("demo/b.py", b"", method=0)])[: 30 + 9]
PIPED = described("demo/a.py", CODE)
RIGHT = struct.pack("<III", zlib.crc32(CODE), len(PIPED.compressed()), len(CODE))
ZEROS = {"crc32": 0, "compressed_size": 0, "size": 0}


def demo(path: str = "demo/a.py", data: bytes = CODE, **options: Any) -> WheelFacts:
    """A wheel with one member more."""
    return facts_of(WheelBuilder().add(path, data, **options))


def piped(descriptor: bytes, **options: Any) -> WheelFacts:
    """A wheel with a member whose header announces a data descriptor."""
    return demo(flags=0x8, descriptor=descriptor, local=ZEROS, **options)


def field(identifier: int, content: bytes) -> bytes:
    """An extra field."""
    return struct.pack("<HH", identifier, len(content)) + content


def unicode_path(name: bytes) -> bytes:
    """An extra field that renames the member demo/a.py."""
    return field(0x7075, struct.pack("<BI", 1, zlib.crc32(b"demo/a.py")) + name)


def points(text: str) -> WheelFacts:
    """A wheel with this entry_points.txt."""
    return facts_of(WheelBuilder().dist_info_file("entry_points.txt", text))


CASES = [
    Case(
        "WHL009",
        "bytes before the first member",
        lambda: demo(before=b"#!/bin/sh\n"),
        ("10 bytes precede the first member",),
        evidence=("install it",),
    ),
    Case(
        "WHL009",
        "a member that no entry lists",
        lambda: facts_of(WheelBuilder().add("demo/a.py", CODE).add("demo/c.py", before=HIDDEN)),
        ("a member that the directory does not list is after demo/a.py",),
        member="demo/a.py",
    ),
    Case(
        "WHL009",
        "bytes before the directory",
        lambda: facts_of(WheelBuilder().build(before_directory=bytes(7))),
        ("7 unused bytes are after demo-1.0.dist-info/RECORD",),
    ),
    Case(
        "WHL009",
        "more bytes than headers have, remotely",
        lambda: facts_of(WheelBuilder().add("demo/a.py").add("demo/b.py", before=bytes(70_000)), remote=True),
        ("70,000 bytes follow demo/a.py, more than headers have",),
        member="demo/a.py",
    ),
    Case(
        "WHL009", "extra fields and data descriptors", lambda: piped(b"PK\7\x08" + RIGHT, extra=field(0xCAFE, b"abcd"))
    ),
    Case(
        "WHL014",
        "no descriptor where one is announced",
        lambda: piped(b""),
        ("demo/a.py has no data descriptor, but its header announces one",),
        member="demo/a.py",
    ),
    Case(
        "WHL014",
        "another checksum",
        lambda: piped(b"PK\7\x08" + bytes(4) + RIGHT[4:]),
        (
            "the data descriptor of demo/a.py has CRC-32 00000000, compressed size 11 and size 54; "
            f"the directory says {zlib.crc32(CODE):08x}, 11 and 54",
        ),
    ),
    Case(
        "WHL014",
        "sizes of eight bytes without a zip64 field",
        lambda: piped(struct.pack("<IQQ", zlib.crc32(CODE), len(PIPED.compressed()), len(CODE))),
        ("the data descriptor of demo/a.py has sizes of eight bytes, but its header says otherwise",),
    ),
    Case(
        "WHL014",
        "a descriptor that no header announces",
        lambda: demo(descriptor=b"PK\7\x08" + RIGHT),
        ("a data descriptor follows demo/a.py, but its header does not announce one",),
    ),
    Case("WHL014", "a descriptor without a signature", lambda: piped(RIGHT)),
    Case(
        "WHL015",
        "a field twice",
        lambda: demo(extra=field(0xCAFE, b"abcd") * 2),
        (
            "'demo/a.py' has the extra field 0xcafe twice (in the directory)",
            "'demo/a.py' has the extra field 0xcafe twice (in its local header)",
        ),
    ),
    Case(
        "WHL015",
        "a field of the local header that overruns",
        lambda: demo(local={"extra": struct.pack("<HH", 0xCAFE, 9) + b"abcd"}),
        ("'demo/a.py' has an extra field (0xcafe) that exceeds its end (in its local header)",),
    ),
    Case(
        "WHL015",
        "a Unicode path with another name",
        lambda: demo(local={"extra": unicode_path(b"demo/evil.py")}),
        ("'demo/a.py' has an extra field that renames it to 'demo/evil.py' (in its local header)",),
    ),
    Case(
        "WHL015",
        "a zip64 field in the directory that is not needed",
        lambda: demo(directory={"extra": field(1, struct.pack("<QQ", 5, 5))}),
        ("'demo/a.py' has a zip64 field of 16 bytes that its header does not need (in the directory)",),
    ),
    Case(
        "WHL015",
        "a zip64 field that is too long",
        lambda: demo(
            local={"extra": field(1, struct.pack("<QQQ", 54, 12, 0)), "size": 2**32 - 1, "compressed_size": 2**32 - 1}
        ),
        ("'demo/a.py' has a zip64 field of 24 bytes; its header leaves 16 to it (in its local header)",),
    ),
    Case(
        "WHL015",
        "time stamps of Info-ZIP, and its own name",
        lambda: demo(extra=field(0x5455, b"\1\0\0\0\0") + unicode_path(b"demo/a.py")),
    ),
    Case("WHL015", "zip64 fields that are needed", lambda: demo(zip64=True)),
    Case(
        "WHL016",
        "an archive in the comment of a member",
        lambda: demo(comment=HIDDEN),
        ("the comment of 'demo/a.py' contains the signature of a member",),
        member="demo/a.py",
    ),
    Case(
        "WHL016",
        "a control character in the comment of the archive",
        lambda: facts_of(WheelBuilder().build(comment=b"\3")),
        ("the comment of the archive contains control characters, as archives do",),
    ),
    Case("WHL016", "lines of text", lambda: facts_of(WheelBuilder().build(comment=b"built\r\n\tby hand"))),
    Case(
        "WHL017",
        "a file that is a folder",
        lambda: facts_of(WheelBuilder().add("demo/data", b"x").add("demo/data/deep/inner.txt", b"x")),
        ("demo/data is a file, but also the folder of demo/data/deep/inner.txt",),
        member="demo/data/deep/inner.txt",
    ),
    Case(
        "WHL017",
        "a folder with data",
        lambda: demo("demo/", b"data"),
        ("the folder demo/ has data, or a checksum of data",),
    ),
    Case(
        "WHL017",
        "a name of 256 bytes",
        lambda: demo("demo/" + "é" * 128),
        (f"the name {'é' * 40}... has 256 bytes; the limit of file systems is 255",),
    ),
    Case(
        "WHL017",
        "a path of 1,204 bytes",
        lambda: demo("/".join(["d" * 200] * 6)),
        (f"the path {'d' * 40}... has 1,205 bytes; the limit of systems is 1,024",),
    ),
    Case("WHL017", "a name of 255 bytes", lambda: demo("demo/" + "n" * 255)),
    Case(
        "WHL017",
        "a folder, and a file whose name begins like it",
        lambda: facts_of(WheelBuilder().add("demo/").add("demo.py")),
    ),
    Case(
        "WHL018",
        "a scheme that is not known",
        lambda: demo("demo-1.0.data/include/demo.h"),
        ("demo-1.0.data/include/demo.h uses a scheme that installers do not support",),
        evidence=("refuse: The wheel is invalid: Unknown wheel data type: include",),
    ),
    Case(
        "WHL018",
        "a folder of another project",
        lambda: demo("other-1.0.data/scripts/tool"),
        ("pip treats other-1.0.data/scripts/tool as a file of a data folder, but uv does not",),
    ),
    Case(
        "WHL018",
        "a file at the top",
        lambda: demo("tables.data"),
        ("pip treats tables.data as a file of a data folder, but uv does not",),
    ),
    Case(
        "WHL018",
        "a script in a folder",
        lambda: demo("demo-1.0.data/scripts/tools/a"),
        ("demo-1.0.data/scripts/tools/a is a script in a subfolder, which uv rejects",),
    ),
    Case(
        "WHL018",
        "known schemes, and a name below a package",
        lambda: facts_of(WheelBuilder().add("demo-1.0.data/data/x/y").add("demo/x.data/y")),
    ),
    Case(
        "WHL019",
        "a data descriptor",
        lambda: piped(b"PK\7\x08" + RIGHT),
        ("the index rejects data descriptors, which 1 member has",),
        WARNING,
        evidence=("refuse: ZIP contains a data descriptor",),
    ),
    Case("WHL019", "a comment of a member", lambda: demo(comment=b"text"), ("'demo/a.py' has a comment",), WARNING),
    Case(
        "WHL019",
        "a byte behind extra fields",
        lambda: demo(local={"extra": b"\0"}),
        ("'demo/a.py' has 1 byte after its extra fields (in its local header)",),
        WARNING,
    ),
    Case("WHL019", "a comment of the archive", lambda: facts_of(WheelBuilder().build(comment=b"text"))),
    Case(
        "WHL125",
        "a comment after a semicolon",
        lambda: points("[console_scripts]\n; tools\na = demo:main\n"),
        (
            "entry_points.txt, line 2: '; tools' has no value; pip treats every line except # comments as an entry "
            "point",
        ),
        member="entry_points.txt",
        line=2,
    ),
    Case(
        "WHL125",
        "lines before a group, a group twice, and one without a name",
        lambda: points("a = demo:main\n[x]\n[x]\n[]\n"),
        (
            "entry_points.txt, line 1: the line is in no group",
            "entry_points.txt, line 3: the group [x] occurs twice",
            "entry_points.txt, line 4: '[]' is not a group",
        ),
    ),
    Case(
        "WHL125",
        "a name twice in one group",
        lambda: points("[demo.plugins]\na = demo:a\na = demo:b\n"),
        ("entry_points.txt, line 3: 'a' occurs twice in its group",),
    ),
    Case(
        "WHL125",
        "names that uv keeps for interpreters",
        lambda: facts_of(
            WheelBuilder()
            .add("demo-1.0.data/scripts/graalpy", b"#!python\n")
            .dist_info_file("entry_points.txt", "[console_scripts]\nPython3.12.py = demo:main\n")
        ),
        ("uv installs no script named graalpy", "uv installs no script named Python3.12.py"),
    ),
    Case(
        "WHL125",
        "a script without an object",
        lambda: points("[gui_scripts]\na = demo\n"),
        ("the script a does not refer to an object: 'demo'",),
    ),
    Case(
        "WHL125",
        "comments, plug-ins without an object, and near names",
        lambda: points("# x\n[console_scripts]\npython-x = demo:main\n\n[plugins]\na = demo\n"),
    ),
]
