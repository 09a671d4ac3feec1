"""Write ``wheel_checks/data/installers.toml``: the verdicts of pip, uv and the index on each fault of an archive.

``python ci/update_installers.py [--index-checks zipfiles.py]`` crafts one wheel per fault and asks the real pip and uv,
from a file and from an index on loopback. The index is queried by its own check of archives, of which a copy is given
(``warehouse/utils/zipfiles.py`` of its source); without one its column stays as it is.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.util
import json
import re
import struct
import sys
import tempfile
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ci.mutants import ask
from ci.real_installers import Installers, index_of, versions
from tests.support.mutants.base import CODE, DATA, FILE_NAME, FILES, INFO, Mutant, archive, changed, entries, wheel
from tests.support.zips import ZipEntry, described, write_zip

TABLE = Path(__file__).parent.parent / "wheel_checks/data/installers.toml"
HEAD = """# What installers and the package index make of faults of an archive, by the name of the fault in the facts.
# Made by ci/update_installers.py, which crafts a wheel of each kind and asks pip, uv and the index's own check.
# "" means that it takes the wheel; `differ`, that those who take it write different files.

collected = "{day}"

[versions]
{versions}

[reserved_scripts]
pattern = {pattern}
source = "uv 0.13, crates/uv-install-wheel/src/wheel.rs, RESERVED_SCRIPT_NAMES_ERROR (2026-08)"
"""
RESERVED = r"pythonw?|python3|graalpy|pypy[23]?|python3\.\d{1,3}|pythonw?3\.\d{1,3}t"
_PACKED = len(ZipEntry(CODE, FILES[CODE]).compressed())
_POINTS = f"{INFO}/entry_points.txt"


def _field(identifier: int, content: bytes, length: int | None = None) -> bytes:
    return struct.pack("<HH", identifier, len(content) if length is None else length) + content


def _described(**options: bool) -> list[ZipEntry]:
    return [described(CODE, FILES[CODE], **options) if one.name == CODE else one for one in entries()]


def _with_descriptor(after: bytes) -> list[ZipEntry]:
    return [replace(one, descriptor=after) if one.name == CODE else one for one in _described()]


def crafted() -> dict[str, Mutant]:
    """One wheel for each fault."""
    right = struct.pack("<III", zlib.crc32(FILES[CODE]), _PACKED, len(FILES[CODE]))
    path = struct.pack("<BI", 1, zlib.crc32(CODE.encode())) + b"demo/other.py"
    hidden = write_zip([ZipEntry(CODE, b"import os\n", method=0)])[: 30 + len(CODE) + 10]
    sound = entries()
    files = {
        "file-and-folder": (
            "a file demo/data and a folder of that name",
            {"demo/data": b"x", "demo/data/inner.txt": b"x"},
        ),
        "long-name": ("a name of 300 bytes", {"demo/" + "n" * 300: b"x"}),
        "long-path": ("a path of 4,020 bytes", {"/".join(["d" * 200] * 20): b"x"}),
        "data-other": ("a script in the data folder of another project", {"other-1.0.data/scripts/tool": b"x"}),
        "data-scheme": ("a file of the scheme include", {f"{DATA}/include/demo.h": b"x"}),
        "scripts-folder": ("a script in a folder", {f"{DATA}/scripts/folder/tool": b"#!python\n"}),
        "reserved-script": ("an entry point python3", {_POINTS: b"[console_scripts]\npython3 = demo.core:main\n"}),
        "entry-points-file": (
            "a comment after a semicolon",
            {_POINTS: b"[console_scripts]\n; tools\na = demo.core:main\n"},
        ),
        "script-without-object": ("an entry point without an object", {_POINTS: b"[console_scripts]\na = demo.core\n"}),
    }
    archives = {
        "gap-first": ("bytes before the first member", [replace(sound[0], before=b"#!/bin/sh\n"), *sound[1:]]),
        "gap": ("bytes between two members", changed(CODE, before=b"not of the archive")),
        "hidden-member": ("a member that the directory does not list", changed(CODE, before=hidden)),
        "headers-differ": ("another name in the local header", changed(CODE, local={"name": b"demo/evil.py"})),
        "descriptor-right": ("a data descriptor", _described()),
        "descriptor-missing": ("no data descriptor where one is announced", _with_descriptor(b"")),
        "descriptor-wrong": (
            "a data descriptor with another CRC-32",
            _with_descriptor(b"PK\7\x08" + bytes(4) + right[4:]),
        ),
        "descriptor-form": ("a data descriptor with sizes of eight bytes", _described(zip64=True)),
        "descriptor-unannounced": (
            "a data descriptor that no header announces",
            changed(CODE, descriptor=b"PK\7\x08" + right),
        ),
        "version": ("version 9.9 of the format", changed(CODE, local={"version": 99}, directory={"version": 99})),
        "extra-twice": ("an extra field twice", changed(CODE, extra=_field(0xCAFE, b"abcd") * 2)),
        "extra-overrun": ("an extra field that overruns", changed(CODE, local={"extra": _field(0xCAFE, b"abcd", 9)})),
        "extra-short": ("a Unicode path that is cut off", changed(CODE, extra=_field(0x7075, b"\1\0\0"))),
        "extra-rest": ("a byte after the extra fields", changed(CODE, extra=b"\0")),
        "zip64-length": (
            "a zip64 field that is too long",
            changed(CODE, local=_wide(bytes(8)), directory=_wide(bytes(8))),
        ),
        "zip64-unneeded": (
            "a zip64 field that is not needed",
            changed(CODE, extra=_field(1, struct.pack("<QQ", 5, 5))),
        ),
        "unicode-path": ("a Unicode path that renames a member", changed(CODE, extra=_field(0x7075, path))),
        "comment-member": ("an archive in the comment of a member", changed(CODE, comment=write_zip([ZipEntry("a")]))),
        "comment-harmless": ("a comment of a member", changed(CODE, comment=b"text")),
        "folder-data": ("a folder with data", [ZipEntry("demo/", b"data"), *sound]),
    }
    found = {name: wheel(name, what, {**FILES, **more}) for name, (what, more) in files.items()}
    found |= {name: archive(name, what, members) for name, (what, members) in archives.items()}
    inner = write_zip([ZipEntry("a")]) + b" and text"
    found["comment-archive"] = archive("comment-archive", "an archive in the comment", entries(), comment=inner)
    return dict(sorted(found.items()))


def _wide(more: bytes) -> dict[str, object]:
    sizes = struct.pack("<QQ", len(FILES[CODE]), _PACKED)
    return {"extra": _field(1, sizes + more), "size": 0xFFFFFFFF, "compressed_size": 0xFFFFFFFF}


def index_checks(source: Path | None) -> Callable[[Path], str] | None:
    """The index's own function, from a copy of its source."""
    if source is None:
        return None
    spec = importlib.util.spec_from_file_location("index_checks", source)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{source} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def check(path: Path) -> str:
        try:
            accepted, reason = module.validate_zipfile(str(path))
        except NotImplementedError as error:  # of zipfile
            return str(error)
        return "" if accepted else str(reason)

    return check


def main() -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--index-checks", type=Path, help="a copy of the index's check of archives")
    parser.add_argument("--index-version", default="", help="where that copy is from, and its date")
    options = parser.parse_args()
    old = tomllib.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {"case": [], "versions": {}}
    known = {row["name"]: row.get("index") for row in old["case"]}
    check = index_checks(options.index_checks)
    current = {**versions(), "index": options.index_version or old["versions"].get("index", "")}
    day = dt.datetime.now(tz=dt.UTC).date()
    lines = "\n".join(f"{name} = {json.dumps(version)}" for name, version in current.items())
    text = HEAD.format(day=day, versions=lines, pattern=f"'{RESERVED}'")
    with Installers() as installers, tempfile.TemporaryDirectory() as folder:
        for name, mutant in crafted().items():
            path = Path(folder) / name / FILE_NAME
            path.parent.mkdir()
            path.write_bytes(mutant.data)
            with index_of(FILE_NAME, mutant.data) as (index, requirement, _):
                verdicts = ask(installers, path, index, requirement)
            row = {"name": name, "what": mutant.what}
            row |= {source.replace(", ", "_"): _plain(answer) for source, answer in verdicts.says.items()}
            at_index = check(path) if check else known.get(name)
            row |= {} if at_index is None else {"index": at_index}
            text += "\n[[case]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in row.items())
            text += f"differ = {json.dumps(verdicts.differ)}\n"
            print(name, file=sys.stderr)
    if not TABLE.exists() or TABLE.read_text(encoding="utf-8") != text:
        TABLE.write_text(text, encoding="utf-8")
    return 0


def _plain(answer: str) -> str:
    """A refusal without parts that change on every run."""
    return re.sub(r"\s+", " ", re.sub(r"n{20,}|(?:d{20,}/?)+", "...", answer)).strip()[:160]


if __name__ == "__main__":
    sys.exit(main())
