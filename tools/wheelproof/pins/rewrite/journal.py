"""The journal: the content of every file before a rewrite, saved before the first one is changed.

A journal is a stack of transactions. Each file of a transaction has, at any moment, its old or its new content;
their hashes distinguish them. So a process may die anywhere.

It is a file of lines: a header with the tree, then one JSON array for each transaction. Its paths are relative to the
tree, and never lead out of it, through links, or into folders of version control. An older version wrote one JSON
object, with paths relative to the folder of the journal.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.sources.repository import VERSION_CONTROL
from wheelproof.pins.atomic import Folder
from wheelproof.pins.documents.source import LARGEST
from wheelproof.pins.model import Edit, apply
from wheelproof.pins.rewrite.state import check_own

SCHEMA, FIRST_SCHEMA = "wheelproof.pins-journal/2", "wheelproof.pins-journal/1"
LARGEST_JOURNAL = 32 * 1024 * 1024  # bytes
_MOST_VALUES = 1_000_000  # of JSON
_MOST_CONTENT = 128 * 1024 * 1024  # bytes of originals, which a small compressed journal may contain
_ABOUT = "what `wheelproof pins rewrite` changed; `wheelproof pins restore` gives it back"
TEMPORARY = ".wheelproof"
_TEMPORARY_NAME = re.compile(r"\.(.+)\.[0-9a-f]{16}\.wheelproof", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Record:
    """A file of a transaction: its content before, the edits, the sha256 of the result.

    ``path`` is relative to the tree. ``temporary`` is the name, in the same folder, under which new content is written.
    """

    path: str
    original: bytes
    edits: tuple[Edit, ...]
    rewritten: str
    temporary: str

    @property
    def original_digest(self) -> str:
        """The sha256 of the content before."""
        return digest(self.original)

    @property
    def name(self) -> str:
        """The name of the file in its folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Journal:
    """The transactions, first to last, in the tree whose real path was ``tree`` then.

    ``first`` says that it is of the first version, which did not note its tree.
    """

    tree: Path
    transactions: tuple[tuple[Record, ...], ...] = ()
    first: bool = False

    @property
    def records(self) -> dict[str, list[Record]]:
        """The records of each file, first to last."""
        found: dict[str, list[Record]] = {}
        for transaction in self.transactions:
            for record in transaction:
                found.setdefault(record.path, []).append(record)
        return found


@dataclass(frozen=True, slots=True)
class JournalFile:
    """The place of a journal: the open folder, and the name in it."""

    folder: Folder
    name: str

    @property
    def path(self) -> Path:
        """For people."""
        return self.folder.path / self.name

    def read(self, root: Path) -> Journal | None:
        """The journal, for the tree at ``root``; None when it does not exist.

        Raises SourceError when it cannot be read, when another user owns it or may write it, and FormatError when it is
        no journal, or names a file outside of the tree.
        """
        data = self.folder.read(self.name, LARGEST_JOURNAL, lambda status: check_own(status, self.path))
        return None if data is None else parse_journal(data, self.path, root)

    def sweep(self) -> None:
        """Remove the incomplete journal of a run that died. Raises SourceError."""
        self.folder.remove(f"{self.name}{TEMPORARY}")

    def write(self, journal: Journal) -> None:
        """Replace the journal, durably; remove it when nothing is left in it. Raises SourceError, FormatError."""
        if not journal.transactions:
            self.folder.remove(self.name)
            self.folder.sync()
            return
        data = b"".join(_lines(journal))
        temporary = f"{self.name}{TEMPORARY}"
        self.folder.remove(temporary)
        try:
            self.folder.write(temporary, data)
            written = self.folder.read(temporary, LARGEST_JOURNAL, lambda status: check_own(status, self.path))
            self._check(
                written == data and parse_journal(data, self.path, journal.tree) == replace(journal, first=False)
            )
            self.folder.replace(temporary, self.name)
        except BaseException:
            self.folder.remove(temporary)
            raise

    def _check(self, read_back: bool) -> None:
        if not read_back:
            raise SourceError(f"the journal {self.path} could not be read back; nothing was changed")


def digest(data: bytes) -> str:
    """The sha256 of a content, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def temporary_for(name: str) -> str:
    """An unused name for the new content of the file ``name``."""
    return f".{name[:50]}.{os.urandom(8).hex()}{TEMPORARY}"  # 255 bytes at most, in any characters


def parse_journal(data: bytes, path: Path, root: Path) -> Journal:
    """The journal in the bytes of the file ``path``, for the tree at ``root``. Raises FormatError.

    The tree of a journal of the first version is ``root``.
    """
    if len(data) > LARGEST_JOURNAL:
        raise FormatError(f"the journal {path} has more than {LARGEST_JOURNAL:,} bytes")
    if sum(map(data.count, (b"{", b"[", b","))) > _MOST_VALUES:
        raise FormatError(f"the journal {path} has more than {_MOST_VALUES:,} values")
    try:
        first, *lines = data.splitlines()
        header = _object(first) if lines else {}
        if header.get("schema") == SCHEMA:
            tree, documents, base = Path(str(header["tree"])), [json.loads(line) for line in lines], root
        else:
            header = _object(data)
            tree, documents, base = root, header["transactions"], path.parent
        left = _MOST_CONTENT
        transactions = []
        for document in documents:
            records = []
            for file in document:
                records.append(_record(file, base, root, left))
                left -= len(records[-1].original)
            transactions.append(tuple(records))
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, zlib.error) as error:
        reason = str(error)[:200] or type(error).__name__
        raise FormatError(f"{path} is not a journal of `wheelproof pins rewrite`: {reason}") from None
    if header.get("schema") not in (SCHEMA, FIRST_SCHEMA):
        raise FormatError(f"{path} is a journal of another wheelproof", expected=SCHEMA)
    return Journal(tree, tuple(transactions), first=header.get("schema") == FIRST_SCHEMA)


def _object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {}


def _lines(journal: Journal) -> Iterator[bytes]:
    """The file, line by line. Raises FormatError for more than could be read again."""
    size = 0
    header = {"schema": SCHEMA, "about": _ABOUT, "tree": str(journal.tree)}
    content = sum(len(record.original) for transaction in journal.transactions for record in transaction)
    for document in (header, *(list(map(_as_json, transaction)) for transaction in journal.transactions)):
        line = json.dumps(document).encode() + b"\n"
        size += len(line)
        if size > LARGEST_JOURNAL or content > _MOST_CONTENT:
            raise FormatError(
                "the journal would become too large; nothing was changed",
                expected=f"{LARGEST_JOURNAL:,} bytes at most, for {_MOST_CONTENT:,} of originals",
                hint="`wheelproof pins restore` first, or take fewer files at a time, with a --journal for each run",
            )
        yield line


def _as_json(record: Record) -> dict[str, Any]:
    return {
        "path": record.path,
        "original": base64.b64encode(zlib.compress(record.original)).decode(),
        "original_size": len(record.original),
        "edits": [[e.start, e.end, base64.b64encode(e.replacement).decode()] for e in record.edits],
        "rewritten": record.rewritten,
        "temporary": record.temporary,
    }


def _record(document: dict[str, Any], base: Path, root: Path, left: int) -> Record:
    path = confined(document["path"], base, root)
    inflater = zlib.decompressobj()
    limit = min(LARGEST, left) + 1  # 0 would be no limit
    original = inflater.decompress(base64.b64decode(document["original"], validate=True), limit)
    if len(original) != document["original_size"] or len(original) == limit or not inflater.eof:
        raise ValueError(f"the content of {path!r} is damaged, or too large")
    edits = tuple(_edits(document["edits"]))
    rewritten = document["rewritten"]
    if digest(apply(original, edits)) != rewritten:
        raise ValueError(f"the edits of {path!r} do not make what the journal says")
    name, temporary = path.rpartition("/")[2], document["temporary"]
    matched = _TEMPORARY_NAME.fullmatch(temporary)
    if matched is None or not name.startswith(matched[1]):
        raise ValueError(f"{temporary!r} is not a valid temporary file name")
    return Record(path, original, edits, rewritten, temporary)


def _edits(documents: Iterable[tuple[int, int, str]]) -> Iterator[Edit]:
    for start, end, text in documents:
        if type(start) is not int or type(end) is not int:
            raise ValueError("a place of an edit is not a number")
        yield Edit(start, end, base64.b64decode(text, validate=True))


def confined(name: object, base: Path, root: Path) -> str:
    """The path of a record, relative to the tree at ``root``; ``base`` is the folder of the journal's paths.

    Raises FormatError when it leads out of the tree, or into a folder of version control.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise FormatError(f"the journal names {str(name)[:200]!r}, which is not a path")
    whole = Path(os.path.normpath(base / name))
    parts = whole.relative_to(root).parts if whole.is_relative_to(root) else ()
    if not parts or any(part.lower() in VERSION_CONTROL for part in parts):
        raise FormatError(
            f"the journal names {name[:200]!r}, which is outside of the tree {root}; nothing was changed",
            expected="files of the tree, and none of version control",
        )
    return "/".join(parts)
