"""Names of members, data schemes, scripts, dist-info folders and files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.support.mutants.base import DATA, FILES, INFO, Mutant, archive, entries, wheel, with_record
from tests.support.zips import ZipEntry, described, write_zip

MEMBERS = {
    "climb": ["../evil.py", "../../evil.py", "demo/../../evil.py", "demo/../other.py", "demo/../../demo/x.py", ".."],
    "absolute": ["/evil.py", "//evil.py", "/", "C:/evil.py", "c:evil.py", "\\evil.py", "//host/share/x"],
    "not plain": [
        "",
        ".",
        "./x.py",
        "demo/./x.py",
        "demo//x.py",
        "demo/.",
        "x/",
        "demo\\x.py",
        "~/x.py",
        "demo/x.py/.",
    ],
    "control characters": [
        "demo/a\nb.py",
        "demo/a\rb.py",
        "demo/a\tb.py",
        "demo/a\0b.py",
        "demo/a\x01b.py",
        "demo/\x7f.py",
    ],
    "invisible": [
        "demo/a\u200bb.py",
        "demo/a\u00adb.py",
        "demo/\ufeffx.py",
        "demo/\u202ex.py",
        "demo/a\u00a0b.py",
        "demo/\ue000.py",
    ],
    "unusual": [
        "demo/\u0378.py",
        "demo/\u2028.py",
        "demo/\U0001f308.py",
        "demo/a b.py",
        " x.py",
        "x.py ",
        "demo/x.",
        "demo/x ",
    ],
    "of Windows": [
        "demo/con.py",
        "demo/aux",
        "demo/NUL",
        "demo/a:b",
        "demo/a*b",
        "demo/a?b",
        'demo/a"b',
        "demo/a<b",
        "demo/a|b",
    ],
    "long": [
        "demo/" + "n" * 251,
        "demo/" + "n" * 255,
        "demo/" + "n" * 256,
        "n" * 300,
        "demo/" + "d" * 256 + "/x",
        "é" * 128,
        "é" * 127,
    ],
    "long paths": ["/".join(["d" * 200] * n) + "/x" for n in (2, 5, 15, 19, 20, 21)],
}


def mutants() -> Iterator[Mutant]:
    """All kinds."""
    for kind, names in MEMBERS.items():
        for name in names:
            yield wheel(f"names: {kind}", ascii(name[:60]), {**FILES, name: b"x\n" if not name.endswith("/") else b""})
            first = [ZipEntry(name, b"x\n"), *entries()]
            yield archive(f"names: {kind}", f"{name[:60]!a}, first and in no RECORD", first)
    yield from _shared()
    yield from _schemes()
    yield from _dist_infos()
    yield from _file_names()


def _shared() -> Iterator[Mutant]:
    """One name for two things."""
    kind = "names: shared"
    for what, more in {
        "file and folder": {"demo/data": b"x", "demo/data/inner.txt": b"x"},
        "folder and file": {"demo/data/inner.txt": b"x", "demo/data": b"x"},
        "folder entry and file": {"demo/data/": b"", "demo/data": b"x"},
        "file and folder entry": {"demo/data": b"x", "demo/data/": b""},
        "a file below a module": {"demo/core.py/x": b"x"},
        "case": {"demo/Core.py": b"x"},
        "case of a folder": {"Demo/other.py": b"x"},
        "Unicode forms": {"demo/\u00e9.py": b"x", "demo/e\u0301.py": b"y"},
        "RECORD in another case": {f"{INFO}/record": b"x"},
    }.items():
        yield wheel(kind, what, {**FILES, **more})
        yield wheel(kind, f"{what}, first", {**more, **FILES})
        described_all = [described(name, data) for name, data in with_record({**FILES, **more}).items()]
        yield archive(kind, f"{what}, from a pipe", described_all)
    kind = "folders"
    for what, folder in {
        "with data": ZipEntry("demo/", b"data"),
        "with stored data": ZipEntry("demo/", b"data", method=0),
        "deflated and empty": ZipEntry("demo/", b""),
        "stored and empty": ZipEntry("demo/", b"", method=0, mode=0o040755),
        "with a CRC": ZipEntry("demo/", b"", method=0, local={"crc32": 7}, directory={"crc32": 7}),
        "with a size": ZipEntry("demo/", b"", method=0, local={"size": 7}, directory={"size": 7}),
        "executable": ZipEntry("demo/", b"", method=0, mode=0o100755),
        "with a descriptor": described("demo/", b""),
        "new, with data": ZipEntry("demo/inner/", b"data"),
        "deep": ZipEntry("a/b/c/d/e/", b"", method=0),
    }.items():
        yield archive(kind, what, [folder, *entries()])
        yield archive(kind, f"{what}, last", [*entries(), folder])
        yield archive(kind, f"{what}, twice", [folder, *entries(), folder])


def _schemes() -> Iterator[Mutant]:
    kind = "data schemes"
    for path in (
        "purelib/other.py",
        "platlib/other.so",
        "headers/demo.h",
        "include/demo.h",
        "scripts/tool",
        "data/etc/demo.cfg",
        "bin/tool",
        "lib/x",
        "Data/x",
        "Scripts/x",
        "purelib",
        "scripts",
        "x",
        "unknown/x",
        "data/../../x",
        "scripts/../x",
        "scripts/folder/tool",
        "scripts/folder/",
        "data/",
        "data",
        "stdlib/x.py",
        "platstdlib/x.py",
        "/x",
        "purelib/demo/core.py",
        "scripts/demo",
        "scripts/DEMO-RUN",
        "data/bin/tool",
        "purelib/",
    ):
        yield wheel(kind, path, {**FILES, f"{DATA}/{path}": b"" if path.endswith("/") else b"x\n"})
        yield archive(
            kind,
            f"{path}, in no RECORD",
            [*entries(), ZipEntry(f"{DATA}/{path}", b"" if path.endswith("/") else b"x\n")],
        )
    for folder in (
        "other-1.0.data",
        "demo-2.0.data",
        "Demo-1.0.data",
        "demo.data",
        ".data",
        "demo-1.0.DATA",
        "x.data",
        "demo_1.0.data",
    ):
        yield wheel("data folders of others", folder, {**FILES, f"{folder}/scripts/tool": b"x\n"})
        yield wheel("data folders of others", f"{folder}, no scheme", {**FILES, f"{folder}/x": b"x\n"})
        yield wheel("data folders of others", f"{folder}, unknown", {**FILES, f"{folder}/unknown/x": b"x\n"})
        yield wheel("data folders of others", f"{folder}, below", {**FILES, f"demo/{folder}/unknown/x": b"x\n"})
    yield wheel("data folders of others", "a file x.data", {**FILES, "x.data": b"x"})
    yield wheel("data folders of others", "a folder x.data/", {**FILES, "x.data/": b""})
    for name in (
        "python",
        "python3",
        "python3.11",
        "python3.12",
        "python2",
        "python2.7",
        "pythonw",
        "Python",
        "PYTHON3",
        "python.exe",
        "pip",
        "pip3",
        "activate",
        "pypy",
        "graalpy",
        "pypy3",
        "graalpython",
        "python3.13t",
        "python3.9d",
        "uv",
        "idle",
        "activate.csh",
        "python.sh",
        "python-config",
        "python3x",
        "pythonw.exe",
        "pypy3.11",
        "pythonw3",
    ):
        yield wheel("scripts: names of data/scripts", name, {**FILES, f"{DATA}/scripts/{name}": b"#!python\n"})
        points = f"[console_scripts]\n{name} = demo.core:main\n".encode()
        yield wheel("scripts: names of entry points", name, {**FILES, f"{INFO}/entry_points.txt": points})
        points = f"[gui_scripts]\n{name} = demo.core:main\n".encode()
        yield wheel(
            "scripts: names of entry points", f"{name}, graphical", {**FILES, f"{INFO}/entry_points.txt": points}
        )
        yield wheel("scripts: names of data/data/bin", name, {**FILES, f"{DATA}/data/bin/{name}": b"#!python\n"})
    for content in (
        b"",
        b"#!python",
        b"#!pythonw\n",
        b"#!python3\n",
        b"\x7fELF",
        b"#!/usr/bin/env python\n",
        b"#!python" + b"x" * 9000,
        b"\xff\xfe",
    ):
        yield wheel("scripts: content", repr(content[:20]), {**FILES, f"{DATA}/scripts/tool": content})


def _dist_infos() -> Iterator[Mutant]:
    kind = "dist-info folders"
    for folder in (
        "other-1.0.dist-info",
        "demo-2.0.dist-info",
        "Demo-1.0.dist-info",
        "demo-1.0.0.dist-info",
        "demo-1.0-py3.dist-info",
        "demo.dist-info",
        "demo-1.dist-info",
        "DEMO-1.0.dist-info",
        "demo_x-1.0.dist-info",
        "demox-1.0.dist-info",
        "demo-01.0.dist-info",
        "demo-1.0+local.dist-info",
        ".dist-info",
        "demo-1.0.DIST-INFO",
        "demo-1.0.egg-info",
        "d-1.0.dist-info",
    ):
        moved = {name.replace(INFO, folder): data for name, data in FILES.items()}
        renamed = {name.replace(INFO, folder): data for name, data in with_record(moved).items()}
        renamed[f"{folder}/RECORD"] = renamed[f"{folder}/RECORD"].replace(INFO.encode(), folder.encode())
        members = [ZipEntry(name, data) for name, data in renamed.items()]
        yield archive(f"{kind}: another", folder, members)
        yield wheel(f"{kind}: two", folder, {**FILES, f"{folder}/METADATA": FILES[f"{INFO}/METADATA"]})
        yield wheel(f"{kind}: two", f"an empty folder {folder}", {**FILES, f"{folder}/": b""})
        yield wheel(f"{kind}: two", f"a file {folder}", {**FILES, folder: b"x"})
        yield wheel(f"{kind}: two", f"below, {folder}", {**FILES, f"demo/{folder}/METADATA": b"x"})
        yield wheel(f"{kind}: two", f"first, {folder}", {f"{folder}/METADATA": b"x", **FILES})
    none = [entry for entry in entries() if INFO not in str(entry.name)]
    yield archive(f"{kind}: another", "none", none)
    yield archive(f"{kind}: another", "no member", [])
    for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt"):
        yield archive(f"{kind}: files", f"no {name}", [entry for entry in entries() if entry.name != f"{INFO}/{name}"])
        nested = [replace(e, name=f"{INFO}/{name}/x") if e.name == f"{INFO}/{name}" else e for e in entries()]
        yield archive(f"{kind}: files", f"{name} is a folder", nested)
        small = [replace(e, name=f"{INFO}/{name.lower()}") if e.name == f"{INFO}/{name}" else e for e in entries()]
        yield archive(f"{kind}: files", f"{name} in small letters", small)
        backslash = [replace(e, name=f"{INFO}\\{name}") if e.name == f"{INFO}/{name}" else e for e in entries()]
        yield archive(f"{kind}: files", f"{name} after a backslash", backslash)
        yield archive(
            f"{kind}: files", f"{name} twice", [*entries(), *(e for e in entries() if e.name == f"{INFO}/{name}")]
        )
        link = [replace(e, mode=0o120777) if e.name == f"{INFO}/{name}" else e for e in entries()]
        yield archive(f"{kind}: files", f"{name} is a link", link)
    for more in (
        "INSTALLER",
        "REQUESTED",
        "direct_url.json",
        "RECORD.jws",
        "RECORD.p7s",
        "uv_cache.json",
        "top_level.txt",
        "licenses/LICENSE",
        "sboms/x.json",
        "METADATA.json",
    ):
        yield wheel(f"{kind}: files", f"{more} too", {**FILES, f"{INFO}/{more}": b"x\n"})
        yield archive(f"{kind}: files", f"{more} too, in no RECORD", [*entries(), ZipEntry(f"{INFO}/{more}", b"x\n")])


def _file_names() -> Iterator[Mutant]:
    sound = write_zip(entries())
    for name in (
        "demo-2.0-py3-none-any.whl",
        "other-1.0-py3-none-any.whl",
        "Demo-1.0-py3-none-any.whl",
        "demo-1.0-1-py3-none-any.whl",
        "demo-1.0-1x-py3-none-any.whl",
        "demo-1.0-x-py3-none-any.whl",
        "demo-1.0.0-py3-none-any.whl",
        "demo-1.0+local-py3-none-any.whl",
        "demo-1.0-py2.py3-none-any.whl",
        "demo-1.0-py3-none.whl",
        "demo-1.0.whl",
        "demo-1.0-py3-none-any.zip.whl",
        "demo-1.0-py3-none-any-x.whl",
        "demo-one-py3-none-any.whl",
        "demo-1.0-py3.py3-none-any.whl",
        "demo--1.0-py3-none-any.whl",
        "-1.0-py3-none-any.whl",
        "demo-v1.0-py3-none-any.whl",
        "demo-01.0-py3-none-any.whl",
        "demo-1.0_1-py3-none-any.whl",
        "demo-1_0-py3-none-any.whl",
        "de.mo-1.0-py3-none-any.whl",
        "demo-1.0-PY3-none-any.whl",
        "demo-1.0-py3-None-any.whl",
        "demo-1.0-py3--any.whl",
        "demo-1.0-py3-none-.whl",
        "demo -1.0-py3-none-any.whl",
        "demo-1.0 -py3-none-any.whl",
    ):
        yield Mutant("file names", name, sound, name)
