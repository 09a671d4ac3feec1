"""WHL001 to WHL013: the zip archive and the names in it."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.rules.case import WARNING, Case
from tests.support.wheel_facts import facts_of, listed
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts

MIB = 1024 * 1024


def demo(path: str | bytes, data: bytes = b"x", **options: Any) -> WheelFacts:
    """A wheel with one member more."""
    return facts_of(WheelBuilder().add(path, data, **options))


def many(count: int, packed: int, size: int) -> WheelFacts:
    """A wheel with members that claim to inflate ``packed`` bytes to ``size``."""
    wheel = WheelBuilder()
    for number in range(count):
        wheel.add(f"demo/{number}.bin", payload=bytes(packed), directory={"size": size})
    return facts_of(wheel)


def many_eggs(count: int) -> WheelBuilder:
    wheel = WheelBuilder()
    for number in range(count):
        wheel.add(f"{number}.egg-info/PKG-INFO", f"Metadata-Version: 1.1\nName: p{number}\nVersion: 1.0\n")
    return wheel


def listed_as(digest: str) -> WheelFacts:
    """A wheel read whole, with this digest in the index; "" for the right one, in capitals."""
    data = WheelBuilder().build()
    hashes = {"sha256": digest or hashlib.sha256(data).hexdigest().upper()}
    return facts_of(data, listing=listed(hashes=hashes), depth=Depth.FULL)


CASES = [
    Case(
        "WHL001",
        "a text file named .whl",
        lambda: facts_of(b"not found\n"),
        ("the file is not a readable wheel: the file has no zip end record; it looks like text",),
        evidence=("10 bytes",),
    ),
    Case("WHL001", "an archive with a comment", lambda: facts_of(WheelBuilder().build(comment=b"built by hand"))),
    Case(
        "WHL002",
        "an end record that counts one more",
        lambda: facts_of(WheelBuilder().build(end={"entries": 4})),
        ("the end record states 4 entries, but the central directory has 3",),
    ),
    Case(
        "WHL002",
        "a stored member of two sizes",
        lambda: demo("demo/a.bin", b"four", method=0, directory={"size": 4_000_000_000}),
        ("'demo/a.bin' is stored in 4 bytes but claims 4,000,000,000",),
        member="demo/a.bin",
    ),
    Case(
        "WHL002",
        "more than deflate can make",
        lambda: demo("demo/a.bin", payload=bytes(10), directory={"size": 10_321}),
        ("'demo/a.bin' claims 10,321 bytes, to which 10 cannot inflate",),
        member="demo/a.bin",
    ),
    Case(
        "WHL002",
        "as much as deflate can make",
        lambda: demo("demo/a.bin", payload=bytes(10), directory={"size": 10_320}),
    ),
    Case("WHL002", "zeros, as well packed as can be", lambda: demo("demo/a.bin", bytes(50 * MIB))),
    Case("WHL002", "a zip64 end record", lambda: facts_of(WheelBuilder().build(zip64=True))),
    Case(
        "WHL003",
        "two members at one offset",
        lambda: facts_of(
            WheelBuilder().add("demo/a.py", b"x" * 50).add("demo/b.py", b"x" * 50, directory={"header_offset": 0})
        ),
        ("demo/a.py and demo/b.py share bytes",),
        member="demo/a.py",
    ),
    Case("WHL003", "an empty member", lambda: facts_of(WheelBuilder().add("demo/a.py", b"").add("demo/b.py", b""))),
    Case(
        "WHL004",
        "another name in the local header",
        lambda: demo("demo/version.py", local={"name": b"demo/evasion.py"}),
        (
            "the local header of demo/version.py contradicts the central directory: name 'demo/evasion.py', but the "
            "directory says 'demo/version.py'",
        ),
        member="demo/version.py",
    ),
    Case(
        "WHL004",
        "sizes in a data descriptor",
        lambda: demo("demo/version.py", flags=0x8, local={"crc32": 0, "compressed_size": 0, "size": 0}),
    ),
    Case(
        "WHL005",
        "zstd and encryption",
        lambda: facts_of(WheelBuilder().add("demo/a.bin", b"x", method=93).encrypted("demo/b.bin")),
        ("demo/a.bin uses compression method 93; installers support only 0 and 8", "demo/b.bin is encrypted"),
        member="demo/a.bin",
    ),
    Case("WHL005", "a stored member", lambda: demo("demo/a.bin", method=0)),
    Case(
        "WHL006",
        "a checksum that differs",
        lambda: demo("demo/version.py", b"x = 1\n", local={"crc32": 1}, directory={"crc32": 1}),
        ("'demo/version.py' has CRC-32 8bf6893b; expected 00000001",),
        member="demo/version.py",
    ),
    Case(
        "WHL006",
        "a checksum that differs in a member that is not read",
        lambda: demo("demo/other.py", b"x = 1\n", local={"crc32": 1}, directory={"crc32": 1}),
    ),
    Case(
        "WHL007",
        "a ratio just above 400",
        lambda: demo("demo/zeros.bin", payload=bytes(170_000), directory={"size": 68_000_001}),
        ("demo/zeros.bin inflates 170,000 bytes to 68,000,001",),
        member="demo/zeros.bin",
    ),
    Case(
        "WHL007",
        "a ratio of 400",
        lambda: demo("demo/zeros.bin", payload=bytes(170_000), directory={"size": 68_000_000}),
    ),
    Case(
        "WHL007",
        "many members that are no bomb alone",
        lambda: many(24, 66_000, 63 * MIB),
        ("24 members inflate 1,584,000 bytes to 1,585,446,912",),
        evidence=("66,000 bytes to 66,060,288",),
    ),
    Case(
        "WHL007",
        "many small members",
        lambda: many(300, 1_000, 1_000_000),
        ("300 members inflate 300,000 bytes to 300,000,000",),
        evidence=("1,000 bytes to 1,000,000",),
    ),
    Case("WHL007", "a ratio of 100 in all of 480 MiB", lambda: many(24, MIB // 5 + 1, 20 * MIB)),
    Case("WHL007", "256 MiB from next to nothing", lambda: many(4, 66_000, 64 * MIB)),
    Case("WHL007", "64 MiB from nothing", lambda: demo("demo/zeros.bin", payload=b"", directory={"size": 64 * MIB})),
    Case(
        "WHL008",
        "another digest on the index",
        lambda: listed_as("0" * 64),
        ("the file is not the one that the index lists",),
        evidence=(f"sha256={'0' * 64}",),
    ),
    Case("WHL008", "the same digest in capitals", lambda: listed_as("")),
    Case(
        "WHL010",
        "a member that climbs out",
        lambda: demo("demo/../../evil.py"),
        ("the member name 'demo/../../evil.py' leads outside the install folder with '..'",),
        member="demo/../../evil.py",
        evidence=("'demo/../../evil.py'",),
    ),
    Case(
        "WHL010",
        "an absolute path",
        lambda: demo("/etc/passwd"),
        ("the member name '/etc/passwd' is an absolute path",),
        member="/etc/passwd",
    ),
    Case("WHL010", "a drive", lambda: demo("C:evil.py"), ("the member name 'C:evil.py' is an absolute path",)),
    Case(
        "WHL010",
        "backslashes",
        lambda: demo("demo\\a.py"),
        (r"the member name 'demo\\a.py' contains a backslash, which Windows treats as a separator",),
    ),
    Case(
        "WHL010",
        "a line break",
        lambda: demo("demo/a\n.py"),
        (r"the member name 'demo/a\n.py' contains invisible or control characters",),
    ),
    Case(
        "WHL010",
        "text that is shown backwards",
        lambda: demo("demo/\u202eyp.so"),
        (r"the member name 'demo/\u202eyp.so' contains invisible or control characters",),
    ),
    Case(
        "WHL010",
        "a NUL",
        lambda: demo(b"demo/a.py\0.txt"),
        (r"the member name 'demo/a.py\x00.txt' contains a NUL, at which some readers cut the name",),
    ),
    Case(
        "WHL010",
        "a needless dot",
        lambda: demo("demo/./a.py"),
        ("the member name 'demo/./a.py' is not a plain relative path",),
    ),
    Case(
        "WHL010",
        "dots, spaces, accents, colons and folders that only look so",
        lambda: facts_of(
            WheelBuilder()
            .add("demo/..data/a..b")
            .add("demo/.../x")
            .add("demo/na\u00efve file.txt")
            .add("demo/a:b")
            .add("demo/")
        ),
    ),
    Case(
        "WHL011",
        "a member twice",
        lambda: facts_of(WheelBuilder().add("demo/a.py", b"1").add("demo/a.py", b"2")),
        ("demo/a.py occurs 2 times in the archive",),
        member="demo/a.py",
    ),
    Case(
        "WHL011",
        "names that differ in case",
        lambda: facts_of(WheelBuilder().add("Data/a.txt").add("data/a.txt")),
        ("Data/a.txt and data/a.txt collide on file systems that ignore case or Unicode form",),
        WARNING,
        member="Data/a.txt",
    ),
    Case("WHL011", "one name in two folders", lambda: facts_of(WheelBuilder().add("a/x.py").add("b/x.py"))),
    Case(
        "WHL012",
        "a link",
        lambda: facts_of(WheelBuilder().symlink("demo/lib.so", "lib.so.1")),
        ("demo/lib.so is a symbolic link",),
        member="demo/lib.so",
    ),
    Case("WHL012", "an executable", lambda: demo("demo/tool", mode=0o100755)),
    Case(
        "WHL012", "a link's mode from a creator without modes", lambda: demo("demo/a", mode=0o120777, create_system=0)
    ),
    Case(
        "WHL020",
        "egg-info folders without a version, without PKG-INFO, and not in UTF-8",
        lambda: facts_of(
            WheelBuilder()
            .add("a.egg-info/PKG-INFO", "Metadata-Version: 1.1\nName: a\n")
            .add("b.egg-info/top_level.txt", "b\n")
            .add("demo-1.0.data/purelib/c.egg-info/PKG-INFO", b"Name: c\nVersion: 1\nAuthor: \xe9\n")
            .add("d-1.egg-info", "Name: d\nVersion: two\n")
        ),
        (
            "pip cannot read a.egg-info: its PKG-INFO has no Version",
            "pip cannot read b.egg-info: it has no PKG-INFO",
            "pip cannot read demo-1.0.data/purelib/c.egg-info: its PKG-INFO is not UTF-8",
            "pip cannot read d-1.egg-info: its PKG-INFO has the version 'two'",
        ),
        member="a.egg-info",
    ),
    Case(
        "WHL020",
        "more of them than are read",
        lambda: facts_of(many_eggs(17)),
        ("not proven that pip can read 16.egg-info: 16 others were read",),
        undecided=True,
    ),
    Case(
        "WHL020",
        "a sound one, and one that no installer looks for",
        lambda: facts_of(
            WheelBuilder()
            .add("demo.egg-info/PKG-INFO", "Metadata-Version: 1.1\nName: demo\nVersion: 1.0\n")
            .add("demo/_vendor/x.egg-info/PKG-INFO", "x")
        ),
    ),
    Case(
        "WHL013",
        "the folder of another version",
        lambda: facts_of(WheelBuilder("demo", "1.0", dist_info="demo-0.9.dist-info")),
        ("the wheel is named demo 1.0, but its folder is demo-0.9.dist-info",),
        evidence=("demo-0.9.dist-info",),
    ),
    Case(
        "WHL013",
        "a second folder",
        lambda: demo("demo-0.9.dist-info/METADATA"),
        ("the wheel has 2 dist-info folders; expected one",),
        evidence=("demo-0.9.dist-info", "demo-1.0.dist-info"),
    ),
    Case(
        "WHL013",
        "no folder",
        lambda: facts_of(WheelBuilder(dist_info="demo")),
        ("the wheel has no dist-info folders; expected one",),
    ),
    Case(
        "WHL013",
        "another spelling of name and version",
        lambda: facts_of(WheelBuilder("Demo.Pkg", "1.0", dist_info="demo_pkg-1.0.0.dist-info")),
    ),
    Case("WHL013", "a vendored folder further down", lambda: demo("demo/_vendor/x-1.dist-info/METADATA")),
]
