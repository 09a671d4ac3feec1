"""The receipt: the files that the guard wrote, with their hashes, and their originals."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = "wheelproof.guard/1"


@dataclass(frozen=True)
class Entry:
    """A file of the guard. ``kept`` is the place of the original, "" without one.

    ``role`` is "front", "hook", "program", "text", "pip.conf", "record" or "uv.toml"; ``record`` the RECORD whose row
    for the path was changed, "" if none.
    """

    path: str
    role: str
    sha256: str
    kept: str = ""
    record: str = ""


@dataclass(frozen=True)
class Receipt:
    """``packages`` are the held versions by name, ``made`` the new folders, outermost first."""

    prefix: str
    python: str
    packages: dict[str, str]
    files: Sequence[Entry]
    made: Sequence[str] = field(default_factory=tuple)

    def find(self, path: str) -> Entry | None:
        """The entry of a path."""
        return next((entry for entry in self.files if entry.path == path), None)


def digest(data: bytes) -> str:
    """The sha256 of ``data`` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of(path: str) -> str:
    """The sha256 of a file, "" when it cannot be read."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    except OSError:
        return ""
    return found.hexdigest()


def read(path: str) -> Receipt | None:
    """The receipt in a file; None when it is missing or is not one."""
    document = read_json(path)
    if document.get("schema") != SCHEMA:
        return None
    try:
        files = [Entry(**entry) for entry in document["files"]]
        return Receipt(document["prefix"], document["python"], document["packages"], files, document["made"])
    except (KeyError, TypeError):
        return None


def write(path: str, receipt: Receipt) -> None:
    """Write a receipt."""
    write_json(path, {"schema": SCHEMA, **asdict(receipt)})


def read_json(path: str) -> dict[str, Any]:
    """The object in a JSON file; empty when the file is missing."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def write_json(path: str, document: dict[str, Any]) -> None:
    """Write an object as JSON, in one step."""
    replace(path, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode(), 0o644)


def replace(path: str, data: bytes, mode: int) -> None:
    """Write a file under another name and rename it over ``path``: a hard link of the old one keeps its bytes."""
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
