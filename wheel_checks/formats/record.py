"""RECORD (recording installed projects specification): one row per member with hash and size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One row. ``algorithm`` and ``digest`` (urlsafe base64, no padding) are "" when absent, ``size`` None when absent."""

    path: str
    algorithm: str
    digest: str
    size: int | None
    line: int


@dataclass(frozen=True, slots=True)
class Record:
    """The rows that parse, and a sentence (with its line number) for each that does not."""

    rows: tuple[RecordRow, ...]
    faults: tuple[tuple[int, str], ...]
