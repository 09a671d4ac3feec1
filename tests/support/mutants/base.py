"""The sound wheel that is changed, as files and as the members of an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.support.wheels import record_row
from tests.support.zips import STORED, ZipEntry, described, write_zip

INFO, DATA = "demo-1.0.dist-info", "demo-1.0.data"
FILE_NAME = "demo-1.0-py3-none-any.whl"

FILES: Mapping[str, bytes] = {
    "demo/__init__.py": b"from demo.core import main\n",
    "demo/core.py": b"def main():\n    print('demo')\n" + b"# a line that deflate makes small\n" * 40,
    "demo/data.bin": bytes(range(200)),
    f"{DATA}/scripts/demo-run": b"#!python\nimport demo\n",
    f"{DATA}/data/share/demo/readme.txt": b"read me\n",
    f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\nA demonstration.\n",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests (1.0)\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": b"[console_scripts]\ndemo = demo.core:main\n",
}
CODE, STORED_MEMBER = "demo/core.py", "demo/data.bin"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wheel: the kind of its change, a description of the change, and its bytes."""

    kind: str
    what: str
    data: bytes
    file_name: str = FILE_NAME


def with_record(files: Mapping[str, bytes], rows: Callable[[list[str]], Iterable[str]] = list) -> dict[str, bytes]:
    """The files and their RECORD, whose lines ``rows`` may change."""
    own = f"{INFO}/RECORD"
    if own in files:
        return dict(files)
    lines = [record_row(path, data) for path, data in files.items() if not path.endswith("/")]
    return {**files, own: "".join(f"{line}\n" for line in rows([*lines, f"{own},,"])).encode()}


def entries(files: Mapping[str, bytes] = FILES, **options: Any) -> list[ZipEntry]:
    """The members, in order, with RECORD; ``options`` are passed to each :class:`ZipEntry`."""
    whole = with_record(files)
    return [
        ZipEntry(name, data, method=STORED if name == STORED_MEMBER else 8, **options) for name, data in whole.items()
    ]


def changed(member: str, **options: Any) -> list[ZipEntry]:
    """The members, one of them with other ``options``."""
    return [replace(entry, **options) if entry.name == member else entry for entry in entries()]


def from_a_pipe(**options: Any) -> list[ZipEntry]:
    """The members with data descriptors; ``options`` are passed to :func:`described`."""
    return [described(name, data, **options) for name, data in with_record(FILES).items()]


def wheel(kind: str, what: str, files: Mapping[str, bytes], file_name: str = FILE_NAME) -> Mutant:
    """A sound archive of other files."""
    return Mutant(kind, what, write_zip(entries(files)), file_name)


def archive(kind: str, what: str, members: Iterable[ZipEntry], **options: Any) -> Mutant:
    """A wheel of these members; ``options`` are passed to :func:`write_zip`."""
    return Mutant(kind, what, write_zip(members, **options))
