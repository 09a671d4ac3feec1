"""Writes the files of a plan, all or none, after noting in the journal what was there."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wheel_checks.errors import FormatError, SourceError, WheelproofError
from wheel_checks.phrases import summarised
from wheelproof.pins.model import FilePlan, Plan
from wheelproof.pins.rewrite.held import HeldTree
from wheelproof.pins.rewrite.journal import Journal, Record, confined, digest, temporary_for


def write(plan: Plan, tree: HeldTree) -> None:
    """Replace the files that a plan changes, all or none, after noting their contents in the journal.

    A link inside the tree is followed, and stays. Mode and owner stay. Raises SourceError, with every file as it was,
    when one cannot be written, or has changed since it was read, and FormatError when the journal is another tree's.
    """
    files = plan.changed
    if not files:
        return
    root = tree.root.path
    records = [_record(file, root) for file in files]
    journal = tree.journal.read(root) or Journal(root)
    if journal.tree != root:
        raise FormatError(
            f"{tree.journal.path} is the journal of the tree {journal.tree}; nothing was changed",
            expected=f"one of {root}",
            hint="give that tree back with `wheelproof pins restore`, or name another journal",
        )
    for record in (record for earlier in journal.transactions for record in earlier):
        tree.clean(record)
    tree.journal.write(replace(journal, transactions=(*journal.transactions, tuple(records))))
    done: list[Record] = []
    try:
        for record, file in zip(records, files, strict=True):
            with tree.folder_of(record.path) as folder:
                folder.write(record.temporary, file.rewritten, like=record.name)
        for record in records:
            with tree.folder_of(record.path) as folder:
                tree.exchange(folder, record, record.original_digest)
            done.append(record)
    except BaseException as error:
        _take_back(tree, journal, records, done, error)
        raise


def _record(file: FilePlan, root: Path) -> Record:
    path = confined(str(file.target), root, root)
    return Record(path, file.original, file.edits, digest(file.rewritten), temporary_for(file.target.name))


def _take_back(
    tree: HeldTree, journal: Journal, records: Sequence[Record], done: Sequence[Record], error: BaseException
) -> None:
    """Undo what was done of a transaction, and forget it, but for files with which that is not possible any more."""
    left = tuple(record for record in records if not _is_taken_back(tree, record, done=record in done))
    for record in records:
        with contextlib.suppress(WheelproofError):
            tree.clean(record)
    tree.journal.write(replace(journal, transactions=(*journal.transactions, *([left] if left else []))))
    if left:
        names = summarised([record.path for record in left], 5)
        raise SourceError(
            f"{error}; written before, and not as it was again: {names}",
            hint="the journal has what was there: `wheelproof pins restore`",
        ) from error


def _is_taken_back(tree: HeldTree, record: Record, *, done: bool) -> bool:
    """Whether a file holds what was there, or was never written; what someone has edited since is left alone."""
    written = done
    try:
        content = tree.read(record.path)
        written = content is not None and digest(content) == record.rewritten
        if written:
            tree.put(record, record.original, record.rewritten)
            return True
    except WheelproofError:
        return not written
    return content == record.original or not done
