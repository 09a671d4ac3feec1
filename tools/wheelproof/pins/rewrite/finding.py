"""Find the journal of a folder: of its tree, or of a tree that was moved here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError, UsageError, WheelproofError
from wheel_checks.fixes.commands import in_words, option, run
from wheel_checks.phrases import plural, summarised
from wheel_checks.sources.regular_file import real_path
from wheel_checks.sources.repository import repository_of
from wheelproof.pins.atomic import Folder, open_folder
from wheelproof.pins.rewrite.files.discovery import ALWAYS_SKIPPED
from wheelproof.pins.rewrite.files.tree import ancestors, holds_home, tree_of
from wheelproof.pins.rewrite.held import journal_name, read_below
from wheelproof.pins.rewrite.journal import TEMPORARY, Journal, JournalFile, digest, parse_journal
from wheelproof.pins.rewrite.state import existing_state

OLD_NAME = ".wheelproof-pins.json"  # of a journal that an older version left in the tree
_LARGEST_SHOWN = 4 * 1024 * 1024  # bytes of a journal that is shown but not used
_MOST_FOLDERS = 20_000  # in which one is searched for
_SHOWN = 10  # files of one


@dataclass(frozen=True, slots=True)
class FoundJournal:
    """The real path of a tree to restore, and the file of its journal; None for its own in the state folder."""

    root: Path
    journal: Path | None = None


def find_journal(path: Path, named: Path | None = None) -> FoundJournal:
    """The journal for a file or folder of a tree: ``named``, else of the nearest parent folder with one.

    Without either, the journal of a tree that no longer exists, if its files are here unchanged. Raises NotFoundError
    when there is no such journal, or more than one; SourceError when the state folder or ``named`` is not this user's;
    FormatError and UsageError if ``named`` is no journal of this tree.
    """
    folder = real_path(path) if path.is_dir() else real_path(path.parent)
    if named is not None:
        return _named(folder, named)
    with existing_state() as state:
        names = [] if state is None else state.names()
        for root in ancestors(folder):
            name = journal_name(root)
            if name in names or f"{name}{TEMPORARY}" in names:  # the latter: a run died before anything was changed
                return FoundJournal(root)
        known = [] if state is None else list(_journals(state, names))
    here = [(file, journal, place) for file, journal in known if (place := _root_with(journal, folder))]
    moved = [FoundJournal(place, file) for file, journal, place in here if not journal.tree.exists()]
    if len(moved) == 1:
        return moved[0]
    below = [str(journal.tree) for _, journal in known if journal.tree.is_relative_to(folder)]
    commands = [restore_command(file, place) for file, _, place in here]
    hint = "nothing was rewritten here"
    if commands:
        hint = f"for a copy of a tree: {' or '.join(commands)}" if not moved else f"name one: {' or '.join(commands)}"
    elif below:
        hint = f"name one of the trees below it: {summarised(below, 5)}"
    raise NotFoundError(f"there is no journal of {folder} or a folder above it", hint=hint)


def _named(folder: Path, named: Path) -> FoundJournal:
    """A journal that the user names, for the tree in which ``folder`` is.

    The first version does not record its tree: in a nested tree, a journal belongs to that tree.
    """
    root = tree_of([folder]).root
    place = real_path(named.parent)
    with open_folder(place) as opened:
        file = JournalFile(opened, named.name)
        journal = file.read(root)
        if journal is None:
            raise NotFoundError(f"there is no journal {named}")
        if journal.first and tree_of([place]).root.is_relative_to(root):
            root = tree_of([place]).root
            file.read(root)  # confined to that
    if journal.first or journal.tree == root:
        found = root
    elif journal.tree in ancestors(folder) and (journal.tree.is_relative_to(root) or _is_state(place)):
        found = journal.tree
    elif _is_rewritten(journal, root):
        found = root
    else:
        raise UsageError(
            f"{named} is the journal of the tree {journal.tree}, and {folder} is not in it, nor a copy of it",
            hint=f"name the tree: {restore_command(named, journal.tree)}",
        )
    if repository_of(found) is None and holds_home(found):
        raise UsageError(f"{found} is not a tree, but holds your home", hint="name the tree after the journal")
    return FoundJournal(found, place / named.name)


def _is_state(folder: Path) -> bool:
    with existing_state() as state:
        return state is not None and os.path.samestat(folder.stat(), state.status)


def _journals(state: Folder, names: list[str]) -> Iterator[tuple[Path, Journal]]:
    """Every journal in the state folder that can be read."""
    for name in names:
        file = JournalFile(state, name)
        try:
            journal = file.read(Path("/")) if name.endswith(".jsonl") else None
        except WheelproofError:
            continue  # it is for another tree, whose restoration will say so
        if journal is not None:
            yield file.path, journal


def _root_with(journal: Journal, folder: Path) -> Path | None:
    """The nearest parent folder with each file of a journal in its old or new state, and one in the new."""
    chains = journal.records
    for root in ancestors(folder):
        if all(os.path.lexists(root / path) for path in chains):
            found = _digests(journal, root)
            known = all(d in {x for r in chains[path] for x in (r.rewritten, r.original_digest)} for path, d in found)
            if known and _is_rewritten(journal, root):
                return root
    return None


def _is_rewritten(journal: Journal, root: Path) -> bool:
    """Whether one of the files of a journal is, below ``root``, as it became."""
    chains = journal.records
    return any(found in {record.rewritten for record in chains[path]} for path, found in _digests(journal, root))


def _digests(journal: Journal, root: Path) -> Iterator[tuple[str, str]]:
    """The sha256 of each file of a journal, below ``root``; "" for a missing or unreadable file."""
    with contextlib.suppress(SourceError), open_folder(root) as opened:
        for path in journal.records:
            try:
                content = read_below(opened, path)
            except SourceError:
                content = None
            yield path, "" if content is None else digest(content)


def restore_command(journal: Path | None, root: Path | None) -> str:
    """The command that restores a tree, in backticks; None if it finds the value itself."""
    named = [option("--journal", str(journal))] if journal else []
    return f"`{in_words(run('wheelproof', 'pins', 'restore', *named, operands=[str(root)] if root else []))}`"


# --- journals of older versions, which are in the tree, where anyone may have put them


def old_journals(path: Path, *, below: bool) -> Iterator[Path]:
    """The journals of an older version in the tree of ``path``: upwards from there and, with ``below``, downwards."""
    folder = real_path(path) if path.is_dir() else real_path(path.parent)
    root = tree_of([folder]).root
    yield from (
        parent / OLD_NAME
        for parent in ancestors(folder)
        if parent.is_relative_to(root) and os.path.lexists(parent / OLD_NAME)
    )
    for count, (name, folders, files) in enumerate(os.walk(folder) if below else ()):
        folders[:] = sorted(set(folders) - ALWAYS_SKIPPED) if count < _MOST_FOLDERS else []
        if OLD_NAME in files and Path(name) != folder:
            yield Path(name, OLD_NAME)


def as_shown(journal: Path) -> Iterator[str]:
    """The files that a journal in the tree would restore, in sentences; nothing is restored."""
    yield f"{journal} is in the tree, where anyone may have put it: it is ignored"
    root = tree_of([journal.parent]).root
    try:
        with open_folder(journal.parent) as opened:
            data = opened.read(journal.name, _LARGEST_SHOWN) or b""
        if len(data) > _LARGEST_SHOWN:
            raise SourceError(f"it has more than {_LARGEST_SHOWN:,} bytes")
        chains = parse_journal(data, journal, root).records
    except WheelproofError as error:
        yield f"nor could it be: {error.what}"
        return
    names = [f"{path!r} ({plural(len(chain[0].original), 'byte')})" for path, chain in chains.items()]
    yield f"it would restore, in {root}: {summarised(names, _SHOWN)}"
    yield f"if it is yours: {restore_command(journal, root)}"
