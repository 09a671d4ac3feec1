"""Gives back what was there before files were rewritten, from the journal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheel_checks.errors import FormatError, NotFoundError, SourceError, WheelproofError
from wheelproof.pins.model import Edit
from wheelproof.pins.rewrite.held import HeldTree
from wheelproof.pins.rewrite.journal import Journal, Record, digest

CONTEXT = 400  # bytes on each side by which a place is found again, at most


class ChangedSinceError(WheelproofError):
    """Files are not as the rewriting left them."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restoration did: the files that were given back, those merged into, and those that needed nothing.

    ``left`` are those that could not be read, such as after a folder that is a link now; the journal keeps them.
    """

    restored: tuple[Path, ...] = ()
    merged: tuple[Path, ...] = ()
    untouched: tuple[Path, ...] = ()
    left: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Undone:
    """A file that holds ``present`` (None: it is missing) and is to hold ``content``.

    ``changed`` says that it, or what a later rewriting found in it, is not what the one before had made of it.
    """

    record: Record
    present: bytes | None
    content: bytes | None
    changed: bool = False

    @property
    def is_written(self) -> bool:
        """Whether anything is to be done."""
        return self.content is not None and self.content != self.present

    @property
    def as_record(self) -> Record:
        """The same for a journal, as if ``present`` had been made of ``content``."""
        present, content = self.present or b"", self.content or b""
        whole = (Edit(0, len(content), present),)
        return Record(self.record.path, content, whole, digest(present), self.record.temporary)


def restore(tree: HeldTree, *, force: bool = False) -> Restored:
    """Give every file the bytes that it had before the first rewriting, and remove the journal.

    A journal of another tree, of which this one is a copy, stays. Everything is planned before the first file is
    touched. Raises NotFoundError without a journal; ChangedSinceError, with nothing written, when a file has been
    changed since; SourceError when one cannot be read or written. With ``force`` what was removed is restored into
    changed files where its surroundings are still there, else it raises FormatError; what cannot be read is left.
    """
    root = tree.root.path
    journal = tree.journal.read(root)
    if journal is None:
        raise NotFoundError(
            f"there is no journal {tree.journal.path}", hint="nothing was rewritten here; see --journal"
        )
    undone, left = _planned(tree, journal, force=force)
    changed = [root / found.record.path for found in undone if found.changed]
    if changed and not force:
        raise ChangedSinceError(
            f"changed since it was rewritten: {', '.join(map(str, changed))}; nothing was restored",
            hint="--force puts what was removed back where its surroundings are still there",
        )
    for found in undone:
        for record in journal.records[found.record.path]:
            tree.clean(record)
    writing = [found for found in undone if found.is_written]
    of_a_copy = journal.tree != root and journal.tree.exists()
    kept = tuple(tuple(chain) for chain in left)
    if changed and writing and not of_a_copy:  # what a merge makes is nowhere yet: a death now must lose nothing
        tree.journal.write(replace(journal, transactions=(*kept, tuple(found.as_record for found in writing))))
    for found in writing:
        tree.put(found.record, found.content or b"", None if found.present is None else digest(found.present))
    if not of_a_copy:
        tree.journal.write(replace(journal, transactions=kept))
    return Restored(
        tuple(root / found.record.path for found in writing if not found.changed),
        tuple(root / found.record.path for found in writing if found.changed),
        tuple(root / found.record.path for found in undone if not found.is_written),
        tuple(root / chain[0].path for chain in left),
    )


def _planned(tree: HeldTree, journal: Journal, *, force: bool) -> tuple[list[_Undone], list[list[Record]]]:
    """What the files are to hold, and with ``force`` the records of those that cannot be read."""
    undone, left = [], []
    for path, chain in journal.records.items():
        try:
            present = tree.read(path)
        except SourceError:
            if not force:
                raise
            left.append(chain)
        else:
            undone.append(_undone(chain, present, tree.root.path / path, force=force))
    return undone, left


def _undone(chain: Sequence[Record], present: bytes | None, path: Path, *, force: bool) -> _Undone:
    """What a file is to hold once its records, first to last, are undone; where nothing fits, what ``force`` makes.

    Each time the last record counts that knows the content, be it as what it made or as what it found. Those after it
    were undone by hand, or never done; if one of them found what nothing else knows, the file was changed.
    """
    content, left, changed = present, len(chain), False
    known = {record.rewritten for record in chain}
    while left:
        now = "" if content is None else digest(content)
        known.add(now)
        at = max((i for i in range(left) if now in (chain[i].rewritten, chain[i].original_digest)), default=-1)
        if at < 0:
            changed = True
            if not force:
                break
            at = left - 1
            original, edits = chain[at].original, chain[at].edits
            content = original if content is None else _merged(path, content, original, edits)
        else:
            known.add(chain[at].original_digest)
            changed = changed or any(record.original_digest not in known for record in chain[at + 1 : left])
            if now == chain[at].rewritten:
                content = chain[at].original
        left = at
    return _Undone(chain[-1], present, content, changed)


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
                f"{path} has changed around its former line {line}: what was removed there cannot be restored",
                hint="restore that file by hand, or from version control; nothing was written to it",
            )
        found.append((at, at + len(edit.replacement), original[edit.start : edit.end]))
    for start, end, text in sorted(found, reverse=True):
        content = content[:start] + text + content[end:]
    return content


def _find(content: bytes, before: bytes, replacement: bytes, after: bytes) -> int | None:
    """Where the edit is now: by the most context that is still present, halved until it matches or has no context."""
    size = max(len(before), len(after))
    while True:
        head, tail = before[len(before) - min(size, len(before)) :], after[:size]
        wanted = head + replacement + tail
        if wanted and content.count(wanted) == 1:
            return content.index(wanted) + len(head)
        if size <= 4:
            return None
        size //= 2
