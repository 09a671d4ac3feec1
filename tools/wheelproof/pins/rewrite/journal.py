"""The journal: what every file held before it was rewritten, durable before the first of them is touched.

A journal is a stack of transactions. Each file of a transaction is, at any moment, what it was before or what it
became; which of the two, its hash tells. So a process may die anywhere, and nothing needs to be noted afterwards.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheel_checks.errors import FormatError, NotFoundError, SourceError
from wheel_checks.sources.regular_file import read_start
from wheelproof.pins import atomic
from wheelproof.pins.documents.source import LARGEST
from wheelproof.pins.model import Edit

NAME = ".wheelproof-pins.json"
SCHEMA = "wheelproof.pins-journal/1"
_LARGEST_JOURNAL = 256 * 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Record:
    """A file of a transaction: its content before, the edits, the sha256 of what they made of it.

    ``temporary`` is the name beside it under which new content is written.
    """

    path: Path
    original: bytes
    edits: tuple[Edit, ...]
    rewritten: str
    temporary: Path

    @property
    def original_digest(self) -> str:
        """The sha256 of the content before."""
        return digest(self.original)


@dataclass(frozen=True, slots=True)
class Journal:
    """The transactions, first to last, of the journal at ``path``."""

    path: Path
    transactions: tuple[tuple[Record, ...], ...] = ()


def digest(data: bytes) -> str:
    """The sha256 of a content, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def temporary_beside(target: Path) -> Path:
    """A name beside a file that nobody uses."""
    return target.with_name(f".{target.name[:200]}.{os.urandom(8).hex()}.wheelproof")


def read_journal(path: Path) -> Journal:
    """The journal at ``path``. Raises NotFoundError when there is none, FormatError when it is none of ours."""
    try:
        data = read_start(path, _LARGEST_JOURNAL + 1)
    except FileNotFoundError:
        raise NotFoundError(f"there is no journal {path}", hint="nothing was rewritten here; see --journal") from None
    except OSError as error:
        raise SourceError(f"the journal {path} cannot be read: {error.strerror or error}") from error
    if len(data) > _LARGEST_JOURNAL:
        raise FormatError(f"the journal {path} has more than {_LARGEST_JOURNAL:,} bytes")
    try:
        document = json.loads(data)
        known = document["schema"] == SCHEMA
        transactions = tuple(
            tuple(_record(path.parent, file) for file in transaction) for transaction in document["transactions"]
        )
    except (ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise FormatError(f"{path} is no journal of `wheelproof pins rewrite`: {str(error)[:200]}") from None
    if not known:
        raise FormatError(f"{path} is a journal of another wheelproof", expected=SCHEMA)
    return Journal(path, transactions)


def write_journal(journal: Journal) -> None:
    """Replace the journal, durably; remove it when nothing is left in it. Raises SourceError."""
    if not journal.transactions:
        atomic.remove(journal.path)
        atomic.sync_folder(journal.path.parent)
        return
    document = {
        "schema": SCHEMA,
        "about": "what `wheelproof pins rewrite` changed; `wheelproof pins restore` gives it back",
        "transactions": [
            [_as_json(journal.path.parent, record) for record in transaction] for transaction in journal.transactions
        ],
    }
    temporary = _temporary(journal.path)
    try:
        atomic.write_beside(journal.path, temporary, json.dumps(document, indent=1).encode() + b"\n")
        atomic.replace(temporary, journal.path)
    except BaseException:
        atomic.remove(temporary)
        raise


def sweep(path: Path) -> None:
    """Remove what a process left of the journal at ``path`` that died before that was complete."""
    atomic.remove(_temporary(path))


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.name}.wheelproof")


def _as_json(folder: Path, record: Record) -> dict[str, Any]:
    return {
        "path": os.path.relpath(record.path, folder),
        "original": base64.b64encode(zlib.compress(record.original)).decode(),
        "original_size": len(record.original),
        "edits": [[e.start, e.end, base64.b64encode(e.replacement).decode()] for e in record.edits],
        "rewritten": record.rewritten,
        "temporary": record.temporary.name,
    }


def _record(folder: Path, document: dict[str, Any]) -> Record:
    path = Path(os.path.abspath(folder / document["path"]))  # noqa: PTH100  # links were followed when it was written
    inflater = zlib.decompressobj()
    original = inflater.decompress(base64.b64decode(document["original"], validate=True), LARGEST + 1)
    if len(original) != document["original_size"] or not inflater.eof:
        raise ValueError(f"the content of {document['path']} is damaged")
    edits = tuple(
        Edit(int(start), int(end), base64.b64decode(text, validate=True)) for start, end, text in document["edits"]
    )
    name = str(document["temporary"])
    if "/" in name or not name.endswith(".wheelproof"):
        raise ValueError(f"{name!r} is no name of a temporary file")
    return Record(path, original, edits, str(document["rewritten"]), path.with_name(name))


def journal_for(paths: list[Path]) -> Path:
    """Where the journal is by default: in the first folder, or beside the first file."""
    first = paths[0]
    return (first if first.is_dir() else first.parent) / NAME
