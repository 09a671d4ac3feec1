"""Writes the files of a plan, all or none, and gives back what was there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheel_checks.errors import FormatError, NotFoundError, SourceError, WheelproofError
from wheelproof.pins import atomic
from wheelproof.pins.documents.reading import read_bytes
from wheelproof.pins.model import Edit, Plan
from wheelproof.pins.rewrite.journal import (
    Journal,
    Record,
    digest,
    read_journal,
    sweep,
    temporary_beside,
    write_journal,
)

CONTEXT = 400  # bytes on each side by which a place is found again, at most


class ChangedSinceError(WheelproofError):
    """Files are not as the rewriting left them."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restoration did: the files that were given back, those merged into, and those that needed nothing."""

    restored: tuple[Path, ...] = ()
    merged: tuple[Path, ...] = ()
    untouched: tuple[Path, ...] = ()


def write(plan: Plan, journal_path: Path) -> None:
    """Replace the files that a plan changes, all or none, after noting their contents in the journal.

    A link is followed, and stays. Mode and owner stay. Raises SourceError, with every file as it was, when one cannot
    be written, or has changed since it was read.
    """
    records = tuple(
        Record(file.target, file.original, file.edits, digest(file.rewritten), temporary_beside(file.target))
        for file in plan.changed
    )
    if not records:
        return
    journal = _open(journal_path)
    _clean(record for transaction in journal.transactions for record in transaction)
    contents = [file.rewritten for file in plan.changed]
    write_journal(replace(journal, transactions=(*journal.transactions, records)))
    done: list[Record] = []
    try:
        for record, content in zip(records, contents, strict=True):
            atomic.write_beside(record.path, record.temporary, content)
        for record in records:
            _check_unchanged(record)
            atomic.replace(record.temporary, record.path)
            done.append(record)
    except BaseException:
        for record in done:
            _put_back(record, record.original)
        _clean(records)
        write_journal(journal)
        raise


def restore(journal_path: Path, *, force: bool = False) -> Restored:
    """Give every file the bytes that it had before the first rewriting, and remove the journal.

    Raises NotFoundError without a journal, and ChangedSinceError, with nothing written, when a file has been changed
    since; with ``force`` what was removed is put back into it where its surroundings are still there.
    """
    sweep(journal_path)
    journal = read_journal(journal_path)
    if not force:
        _check_all(journal)
    restored: dict[Path, None] = {}
    combined: dict[Path, None] = {}
    untouched: dict[Path, None] = {}
    while journal.transactions:
        records = journal.transactions[-1]
        _clean(records)
        planned: list[tuple[Record, bytes]] = []
        for record in records:
            content = _content(record.path)
            if content is not None and digest(content) == record.original_digest:
                untouched[record.path] = None
            elif content is not None and digest(content) != record.rewritten:
                planned.append((record, _merged(record.path, content, record.original, record.edits)))
                combined[record.path] = None
            else:
                planned.append((record, record.original))
                restored[record.path] = None
        for record, content in planned:
            _put_back(record, content)
        journal = replace(journal, transactions=journal.transactions[:-1])
        write_journal(journal)
    return Restored(tuple(restored), tuple(combined), tuple(p for p in untouched if p not in {*restored, *combined}))


def _merged(path: Path, content: bytes, original: bytes, edits: Sequence[Edit]) -> bytes:
    """``content`` with every edit undone. Raises FormatError when a place is not there any more, or not only once."""
    found: list[tuple[int, int, bytes]] = []
    for index, edit in enumerate(edits):
        lower = max(edits[index - 1].end if index else 0, edit.start - CONTEXT)
        upper = min(edits[index + 1].start if index + 1 < len(edits) else len(original), edit.end + CONTEXT)
        at = _find(content, original[lower : edit.start], edit.replacement, original[edit.end : upper])
        if at is None:
            line = original.count(b"\n", 0, edit.start) + 1
            raise FormatError(
                f"{path} has changed around its former line {line}: what was removed there cannot be put back",
                hint="restore that file by hand, or from version control; nothing was written to it",
            )
        found.append((at, at + len(edit.replacement), original[edit.start : edit.end]))
    for start, end, text in sorted(found, reverse=True):
        content = content[:start] + text + content[end:]
    return content


def _find(content: bytes, before: bytes, replacement: bytes, after: bytes) -> int | None:
    """Where the edit is now: by the most context that is still there, halved until it matches or is no context."""
    size = max(len(before), len(after))
    while True:
        head, tail = before[len(before) - min(size, len(before)) :], after[:size]
        wanted = head + replacement + tail
        if wanted and content.count(wanted) == 1:
            return content.index(wanted) + len(head)
        if size <= 4:
            return None
        size //= 2


def _open(path: Path) -> Journal:
    try:
        return read_journal(path)
    except NotFoundError:
        return Journal(path)


def _check_unchanged(record: Record) -> None:
    if read_bytes(record.path) != record.original:
        raise SourceError(
            f"{record.path} changed while it was being rewritten; nothing was written", hint="run it again"
        )


def _check_all(journal: Journal) -> None:
    """Raise when a file is neither as a transaction found it nor as it left it, going back through all of them."""
    now: dict[Path, str] = {}
    changed: dict[Path, None] = {}
    for transaction in reversed(journal.transactions):
        for record in transaction:
            if record.path not in now:
                content = _content(record.path)
                now[record.path] = "" if content is None else digest(content)
            if now[record.path] not in {record.rewritten, record.original_digest}:
                changed[record.path] = None
            now[record.path] = record.original_digest
    if changed:
        names = ", ".join(map(str, changed))
        raise ChangedSinceError(
            f"changed since it was rewritten: {names}; nothing was restored",
            hint="--force puts what was removed back where its surroundings are still there",
        )


def _content(path: Path) -> bytes | None:
    try:
        return read_bytes(path)
    except NotFoundError:
        return None


def _put_back(record: Record, content: bytes) -> None:
    atomic.write_beside(record.path, record.temporary, content)
    atomic.replace(record.temporary, record.path)


def _clean(records: Iterable[Record]) -> None:
    """Remove what a process left beside the files when it died."""
    for record in records:
        atomic.remove(record.temporary)
