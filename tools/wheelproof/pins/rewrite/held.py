"""A tree that one run holds: its lock, its journal, and its files, reached from its open root without any link."""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError
from wheel_checks.sources.regular_file import real_path
from wheelproof.pins.atomic import Folder, open_folder
from wheelproof.pins.documents.source import LARGEST
from wheelproof.pins.rewrite.journal import JournalFile, Record
from wheelproof.pins.rewrite.lock import WAIT, only_run
from wheelproof.pins.rewrite.state import open_state


@dataclass(frozen=True, slots=True)
class HeldTree:
    """A tree and its journal; only :func:`hold` makes one, so whoever has it is alone in the tree."""

    root: Folder
    journal: JournalFile

    def read(self, path: str) -> bytes | None:
        """The content of a file of the tree; None when it is not present. Raises SourceError where a link is."""
        return read_below(self.root, path)

    def put(self, record: Record, content: bytes, expected: str | None) -> None:
        """Replace a file of the tree, durably, if the sha256 of what it holds now is ``expected`` (None: no file).

        Raises SourceError when it holds something else, or cannot be written.
        """
        with self.folder_of(record.path) as folder:
            folder.remove(record.temporary)
            folder.write(record.temporary, content, like=record.name)
            self.exchange(folder, record, expected)

    def exchange(self, folder: Folder, record: Record, expected: str | None) -> None:
        """Rename the temporary file of a record over its file in ``folder``, as :meth:`put` does."""
        present = folder.read(record.name, LARGEST)
        if expected != (None if present is None else hashlib.sha256(present).hexdigest()):
            raise ChangedMeanwhileError(
                f"{self.root.path / record.path} changed during this run, and was left as it is", hint="run it again"
            )
        folder.replace(record.temporary, record.name)

    def clean(self, record: Record) -> None:
        """Remove what a run left next to a file when it died. Raises SourceError."""
        with contextlib.suppress(NotFoundError), self.folder_of(record.path) as folder:
            folder.remove(record.temporary)

    def folder_of(self, path: str) -> contextlib.AbstractContextManager[Folder]:
        """The open folder of a file of the tree. Raises NotFoundError, and SourceError where a link is."""
        return _folder_below(self.root, path)


LOCK = "lock"


class ChangedMeanwhileError(SourceError):
    """A file is not what it was when the run began."""


def read_below(root: Folder, path: str) -> bytes | None:
    """The content of the file at a path relative to ``root``; None when it is not present.

    Raises SourceError where a link is.
    """
    try:
        with _folder_below(root, path) as folder:
            return folder.read(path.rpartition("/")[2], LARGEST)
    except NotFoundError:
        return None


@contextlib.contextmanager
def _folder_below(root: Folder, path: str) -> Iterator[Folder]:
    """The folder of a file, entered step by step, so that no link leads elsewhere."""
    with contextlib.ExitStack() as stack:
        folder = root
        for part in path.split("/")[:-1]:
            folder = stack.enter_context(folder.enter(part))
        yield folder


@contextlib.contextmanager
def hold(
    root: Path,
    journal: Path | None = None,
    *,
    wait: float = WAIT,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[HeldTree]:
    """Hold the tree at the real path ``root``, with the journal in the file ``journal`` or in the state folder.

    Another run in the tree, in one above it or in one below it is waited for, ``wait`` seconds; ``on_wait`` is called
    once when there is one. Raises DeadlineError then, and SourceError when the state folder or the journal's cannot be
    used, before anything is changed.
    """
    with contextlib.ExitStack() as stack:
        if journal is None:
            folder = lock_folder = stack.enter_context(open_state())
            name, lock = journal_name(root), LOCK
        else:
            folder = lock_folder = stack.enter_context(open_folder(real_path(journal.parent)))
            name, lock = journal.name, f"{journal.name}.{LOCK}"
            with contextlib.suppress(SourceError):  # with a journal that is named, the state folder is not needed
                lock_folder, lock = stack.enter_context(open_state()), LOCK
        file = JournalFile(folder, name)
        shared = [parent for parent in root.parents if parent != file.path]
        stack.enter_context(only_run(lock_folder, lock, (root, file.path), shared, wait, on_wait))
        file.sweep()
        yield HeldTree(stack.enter_context(open_folder(root)), file)


def journal_name(root: Path) -> str:
    """The name of a tree's journal in the state folder: readable, and another one for each path."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", root.name)[:40].lstrip(".") or "tree"
    return f"{readable}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.jsonl"
