"""METADATA, WHEEL, RECORD and entry_points.txt that say less, more, or something else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from tests.support.mutants.base import CODE, DATA, FILES, INFO, Mutant, archive, wheel, with_record
from tests.support.zips import ZipEntry

METADATA, WHEEL, RECORD, POINTS = (f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt"))

ENTRY_POINTS = {
    "climbs": "../../evil = demo.core:main",
    "climbs into scripts": "../x = demo.core:main",
    "climbs and comes back": "x/../y = demo.core:main",
    "absolute": "/tmp/evil = demo.core:main",
    "in a folder": "sub/tool = demo.core:main",
    "dot": ". = demo.core:main",
    "dots": ".. = demo.core:main",
    "backslash": "a\\b = demo.core:main",
    "no name": "= demo.core:main",
    "spaces": "my tool = demo.core:main",
    "a colon in the name": "a:b = demo.core:main",
    "no value": "tool",
    "empty value": "tool =",
    "no object": "tool = demo.core",
    "code": "tool = os:system('id')",
    "code in the module": "tool = __import__('os'):x",
    "semicolon": "tool = demo.core:main;import os",
    "a dash": "tool = demo-core:main",
    "a dash in the object": "tool = demo.core:ma-in",
    "digits first": "tool = 1demo:main",
    "two colons": "tool = demo:core:main",
    "spaces inside": "tool = demo .core : main",
    "a keyword": "tool = class:def",
    "extras": "tool = demo.core:main [extra]",
    "bad extras": "tool = demo.core:main [",
    "empty extras": "tool = demo.core:main []",
    "extras, list": "tool = demo.core:main [a, b,c]",
    "a comment behind": "tool = demo.core:main # comment",
    "a comment after a semicolon": "tool = demo.core:main ; comment",
    "dots at the ends": "tool = .demo.:.main.",
    "unicode": "tööl = demo.core:mäin",
    "unicode object": "tool = démo:main",
    "an invisible name": "a\u200bb = demo.core:main",
    "a control character": "a\x01b = demo.core:main",
    "a dollar": "$x = demo.core:main",
    "a quote": "a'b = demo.core:main",
    "a long name": "n" * 256 + " = demo.core:main",
    "twice": "tool = demo.core:main\ntool = demo.core:other",
    "twice in other case": "tool = demo.core:main\nTOOL = demo.core:other",
    "a colon for a delimiter": "tool : demo.core:main",
    "a continued line": "tool = demo.core:\n  main",
    "a percent": "tool = demo.core:main%s",
    "name.py": "tool.py = demo.core:main",
    "name.exe": "tool.exe = demo.core:main",
    "a parenthesis": "tool = demo.core:main()",
    "index": "tool = demo.core:a[0]",
    "newline in value": "tool = demo.core:main\n x",
    "equals": "tool == demo.core:main",
    "hidden": ".tool = demo.core:main",
    "leading dash": "-tool = demo.core:main",
}
ENTRY_FILES = {
    "no section": b"tool = demo.core:main\n",
    "an unclosed section": b"[console_scripts\ntool = demo.core:main\n",
    "sections twice": b"[console_scripts]\na = demo:a\n[console_scripts]\nb = demo:b\n",
    "no UTF-8": b"[console_scripts]\n\xff = demo:a\n",
    "UTF-16": "[console_scripts]\na = demo:a\n".encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf[console_scripts]\na = demo:a\n",
    "empty": b"",
    "NUL": b"[console_scripts]\na = demo:a\0\n",
    "CRLF": b"[console_scripts]\r\na = demo.core:main\r\n",
    "another group": b"[my.plugins]\nx = os:system('id')\n",
    "another group climbs": b"[my.plugins]\n../x = demo.core:main\n",
    "garbage": b"\0\1\2",
    "a line first": b"garbage\n[console_scripts]\na = demo:a\n",
    "spaces in the group": b"[ console_scripts ]\na = demo:a\n",
    "case of the group": b"[Console_Scripts]\na = demo:a\n",
    "an empty group": b"[]\na = demo:a\n",
    "indented": b"[console_scripts]\n  a = demo:a\n",
    "a comment": b"# x\n[console_scripts]\n; y\na = demo:a\n",
    "CR": b"[console_scripts]\ra = demo:a\r",
    "interpolation": b"[console_scripts]\na = %(b)s:c\n",
}
METADATAS = {
    "empty": b"",
    "no name": b"Metadata-Version: 2.1\nVersion: 1.0\n",
    "no version": b"Metadata-Version: 2.1\nName: demo\n",
    "no metadata version": b"Name: demo\nVersion: 1.0\n",
    "another name": b"Metadata-Version: 2.1\nName: other\nVersion: 1.0\n",
    "another version": b"Metadata-Version: 2.1\nName: demo\nVersion: 2.0\n",
    "an equal version": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n",
    "an equal name": b"Metadata-Version: 2.1\nName: DEMO\nVersion: 1.0\n",
    "no version at all": b"Metadata-Version: 2.1\nName: demo\nVersion: one\n",
    "a local version": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0+local\n",
    "v1.0": b"Metadata-Version: 2.1\nName: demo\nVersion: v1.0\n",
    "name twice": b"Metadata-Version: 2.1\nName: demo\nName: other\nVersion: 1.0\n",
    "version twice": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nVersion: 2.0\n",
    "a name with spaces": b"Metadata-Version: 2.1\nName: de mo\nVersion: 1.0\n",
    "no UTF-8": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nSummary: \xff\xfe\n",
    "UTF-16": "Name: demo".encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbfMetadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    "version 9.9": b"Metadata-Version: 9.9\nName: demo\nVersion: 1.0\n",
    "version x": b"Metadata-Version: x\nName: demo\nVersion: 1.0\n",
    "version 1.0": b"Metadata-Version: 1.0\nName: demo\nVersion: 1.0\n",
    "version 2.0": b"Metadata-Version: 2.0\nName: demo\nVersion: 1.0\n",
    "version 3.0": b"Metadata-Version: 3.0\nName: demo\nVersion: 1.0\n",
    "CRLF": b"Metadata-Version: 2.1\r\nName: demo\r\nVersion: 1.0\r\n",
    "a blank line first": b"\nMetadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    "garbage": b"\0\1\2\3",
    "a line without a colon": b"Metadata-Version: 2.1\nName: demo\ngarbage\nVersion: 1.0\n",
    "spaces before colons": b"Metadata-Version : 2.1\nName : demo\nVersion : 1.0\n",
    "folded": b"Metadata-Version: 2.1\nName:\n demo\nVersion: 1.0\n",
    "small letters": b"metadata-version: 2.1\nname: demo\nversion: 1.0\n",
    "NUL": b"Metadata-Version: 2.1\nName: demo\0\nVersion: 1.0\n",
    "From first": b"From demo\nMetadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    "bytes of control": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nSummary: \x01\x02\n",
}
EGG_INFOS = {
    "sound": b"Metadata-Version: 1.1\nName: other\nVersion: 2.0\n",
    "without a version": b"Metadata-Version: 1.1\nName: other\n",
    "without a name": b"Metadata-Version: 1.1\nVersion: 2.0\n",
    "of an invalid version": b"Metadata-Version: 1.1\nName: other\nVersion: two\n",
    "in Latin-1": b"Metadata-Version: 1.1\nName: other\nVersion: 2.0\nAuthor: \xe9\n",
    "of nothing": b"",
}
METADATA_FIELDS = [
    "Requires-Dist: other",
    "Requires-Dist: other (>=1.0)",
    "Requires-Dist: other >=",
    "Requires-Dist: other ==1.0.*; python_version",
    "Requires-Dist: ",
    "Requires-Dist: other @ file:///x",
    "Requires-Dist: -r x",
    "Requires-Dist: other>=1.0 <2",
    "Requires-Dist: other[",
    "Requires-Dist: other; extra == 'x'",
    "Requires-Dist: other>=1.0.*",
    "Requires-Dist: other~=1",
    "Requires-Dist: other==1.0-bad",
    "Requires-Dist: ../x",
    "Requires-Dist: other ; foo == 'x'",
    "Requires-Python: >=3.8",
    "Requires-Python: >=4",
    "Requires-Python: 3",
    "Requires-Python: >=3.6.*",
    "Requires-Python: garbage",
    "Requires-Python: ",
    "Requires-Python: >=3.8,",
    "Requires-Python: >= 3.8 <4",
    "Provides-Extra: bad extra!",
    "Provides-Extra: x",
    "Dynamic: Name",
    "License-Expression: garbage",
    "License-File: missing",
    "Project-URL: x",
    "Classifier: Private :: No",
    "Obsoletes-Dist: ???",
    "Import-Name: x",
    "Requires-Dist: demo",
    "Requires-Dist: demo[x]==1.0",
]
WHEELS = {
    "empty": b"",
    "no version": b"Root-Is-Purelib: true\nTag: py3-none-any\n",
    "2.0": b"Wheel-Version: 2.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1.1": b"Wheel-Version: 1.1\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1.9": b"Wheel-Version: 1.9\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "0.1": b"Wheel-Version: 0.1\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "0.9": b"Wheel-Version: 0.9\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1": b"Wheel-Version: 1\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1.0.0": b"Wheel-Version: 1.0.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "x": b"Wheel-Version: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "01.0": b"Wheel-Version: 01.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1.x": b"Wheel-Version: 1.x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1. 0": b"Wheel-Version: 1. 0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "-1.0": b"Wheel-Version: -1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1.0 with spaces": b"Wheel-Version:    1.0  \nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "twice": b"Wheel-Version: 1.0\nWheel-Version: 2.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "twice, 2.0 first": b"Wheel-Version: 2.0\nWheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "empty version": b"Wheel-Version: \nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "no purelib": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
    "purelib false": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
    "purelib TRUE": b"Wheel-Version: 1.0\nRoot-Is-Purelib: TRUE\nTag: py3-none-any\n",
    "purelib x": b"Wheel-Version: 1.0\nRoot-Is-Purelib: x\nTag: py3-none-any\n",
    "no tag": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\n",
    "another tag": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: cp39-cp39-win32\n",
    "a bad tag": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3\n",
    "no UTF-8": b"Wheel-Version: 1.0\nGenerator: \xff\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "UTF-16": "Wheel-Version: 1.0\n".encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbfWheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "garbage": b"\0\1\2\3",
    "a line without a colon": b"garbage\nWheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "a blank line first": b"\nWheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "small letters": b"wheel-version: 1.0\nroot-is-purelib: true\ntag: py3-none-any\n",
    "CRLF": b"Wheel-Version: 1.0\r\nRoot-Is-Purelib: true\r\nTag: py3-none-any\r\n",
    "a build": b"Wheel-Version: 1.0\nBuild: 1\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "NUL": b"Wheel-Version: 1.0\0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "1_0.0": b"Wheel-Version: 1_0.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "+1.0": b"Wheel-Version: +1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def mutants() -> Iterator[Mutant]:
    """All kinds."""
    for what, line in ENTRY_POINTS.items():
        yield wheel("entry points", what, {**FILES, POINTS: f"[console_scripts]\n{line}\n".encode()})
        yield wheel("entry points", f"{what}, graphical", {**FILES, POINTS: f"[gui_scripts]\n{line}\n".encode()})
        yield wheel("entry points: other groups", what, {**FILES, POINTS: f"[my.plugins]\n{line}\n".encode()})
    for what, content in ENTRY_FILES.items():
        yield wheel("entry points: file", what, {**FILES, POINTS: content})
    for what, content in METADATAS.items():
        yield wheel("METADATA", what, {**FILES, METADATA: content})
    for line in METADATA_FIELDS:
        yield wheel(
            "METADATA: fields", line, {**FILES, METADATA: FILES[METADATA].replace(b"\n\n", f"\n{line}\n\n".encode())}
        )
    for what, content in WHEELS.items():
        yield wheel("WHEEL", what, {**FILES, WHEEL: content})
    yield from _egg_infos()
    yield from _rows()
    yield from _records()


def _egg_infos() -> Iterator[Mutant]:
    """An egg-info folder or file of another project, at the top and in a scheme."""
    for place in ("", f"{DATA}/purelib/", f"{DATA}/platlib/", "demo/_vendor/"):
        for what, content in EGG_INFOS.items():
            yield wheel(
                "egg-info", f"{what} in {place or 'the top'}", {**FILES, f"{place}other.egg-info/PKG-INFO": content}
            )
        yield wheel(
            "egg-info", f"none in {place or 'the top'}", {**FILES, f"{place}other.egg-info/top_level.txt": b"x"}
        )
        yield wheel("egg-info", f"a file in {place or 'the top'}", {**FILES, f"{place}other-1.egg-info": b"x"})


def _rows() -> Iterator[Mutant]:
    """One row of RECORD, for a module, a script, a file of data, METADATA and RECORD itself."""
    lines = with_record(FILES)[RECORD].decode().splitlines()
    for path in (CODE, f"{DATA}/scripts/demo-run", f"{DATA}/data/share/demo/readme.txt", METADATA, RECORD):
        row = next(line for line in lines if line.startswith(f"{path},"))
        data = FILES.get(path, b"")
        md5 = base64.urlsafe_b64encode(hashlib.md5(data).digest()).rstrip(b"=").decode()
        sha512 = base64.urlsafe_b64encode(hashlib.sha512(data).digest()).rstrip(b"=").decode()
        for what, new in {
            "missing": None,
            "twice": f"{row}\n{row}",
            "wrong hash": f"{path},sha256={'A' * 43},{len(data)}",
            "wrong size": row.rpartition(",")[0] + ",999",
            "no hash": f"{path},,",
            "no size": row.rpartition(",")[0] + ",",
            "size x": row.rpartition(",")[0] + ",x",
            "size -1": row.rpartition(",")[0] + ",-1",
            "one column": path,
            "two columns": f"{path},",
            "four columns": f"{row},x",
            "md5": f"{path},md5={md5},{len(data)}",
            "sha512": f"{path},sha512={sha512},{len(data)}",
            "unknown hash": f"{path},foo=abc,{len(data)}",
            "hash without a name": f"{path},abc,{len(data)}",
            "spaces": row.replace(",", " , "),
            "quoted": f'"{path}"{row[len(path) :]}',
            "an unclosed quote": f'"{row}',
            "a quote inside": f'a"b{row}',
            "./": f"./{row}",
            "backslashes": row.replace("/", "\\"),
            "absolute": f"/{row}",
            "capitals": row.replace("demo", "DEMO"),
            "padding": row.rpartition(",")[0] + f"=,{len(data)}",
            "hexadecimal": f"{path},sha256={hashlib.sha256(data).hexdigest()},{len(data)}",
            "a tab": row.replace(",", "\t"),
            "../": f"../{row}",
            "doubled slash": row.replace("/", "//", 1),
        }.items():
            changed = [line if line != row else new for line in lines]
            text = "".join(f"{line}\n" for line in changed if line is not None).encode()
            yield wheel(f"RECORD: {what}", path, {**FILES, RECORD: text})


def _records() -> Iterator[Mutant]:
    text = with_record(FILES)[RECORD]
    for what, content in {
        "empty": b"",
        "CRLF": text.replace(b"\n", b"\r\n"),
        "CR": text.replace(b"\n", b"\r"),
        "blank lines": text.replace(b"\n", b"\n\n"),
        "no UTF-8": text + b"\xff,,\n",
        "no UTF-8 in the middle": b"\xff,,\n" + text,
        "UTF-16": text.decode().encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + text,
        "garbage": b"\0\1\2\3",
        "a file that is not present": text + b"demo/none.py,sha256=abc,3\n",
        "a file outside": text + b"../../../etc/passwd,sha256=abc,3\n",
        "an absolute file": text + b"/etc/passwd,,\n",
        "a header": b"path,hash,size\n" + text,
        "only RECORD": f"{RECORD},,\n".encode(),
        "NUL": text + b"a\0b,,\n",
        "an unclosed quote at the end": text + b'"x,,\n',
        "semicolons": text.replace(b",", b";"),
        "reversed": b"\n".join(text.splitlines()[::-1]) + b"\n",
        "no newline at the end": text.rstrip(b"\n"),
        "a folder": text + b"demo/,,\n",
        "a comment": b"# comment\n" + text,
        "an empty path": text + b",,\n",
        "a row of commas": text + b",,,,\n",
        "a long row": text + b"x" * 200_000 + b",,\n",
        "RECORD.jws": text + f"{INFO}/RECORD.jws,,\n".encode(),
    }.items():
        yield wheel("RECORD: file", what, {**FILES, RECORD: content})
    first = list(with_record(FILES).items())
    yield archive("RECORD: file", "RECORD first", [ZipEntry(name, data) for name, data in [first[-1], *first[:-1]]])
