"""The documents of files and folders, and those that they include."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError, WheelproofError
from wheel_checks.sources.regular_file import real_path
from wheelproof.pins.documents.reading import kind_of, read_document
from wheelproof.pins.model import Document, Notice
from wheelproof.pins.rewrite.files.discovery import LINKED_FOLDER, find_files
from wheelproof.pins.rewrite.files.tree import tree_of
from wheelproof.pins.rewrite.notices import outside_notice


def read_all(
    paths: Sequence[Path],
    tell: Callable[[Notice], None],
    *,
    skip_vendored: bool = False,
    on_error: Callable[[Path, WheelproofError], None] | None = None,
) -> Iterator[tuple[Path, Document]]:
    """Every document, each once, whatever its names; ``tell`` hears of included files that are not present.

    With ``on_error`` a file that cannot be read is passed to it, and the others continue; else its error is raised. A
    link to a folder outside of the tree is not followed: it goes to ``on_error``, else to ``tell``.
    """
    tree = tree_of(paths)
    waiting = [(path, kind, False, False) for path, kind in find_files(paths, skip_vendored=skip_vendored)]
    seen: set[Path] = set()
    while waiting:
        path, kind, constraint, included = waiting.pop(0)
        target = real_path(path)
        if target in seen:
            continue
        seen.add(target)
        if kind == LINKED_FOLDER:
            if outside := outside_notice(path, tree, "it was not searched"):
                if on_error is None:
                    tell(outside)
                else:
                    on_error(path, SourceError(outside.message, hint=f"name {target} itself, if it is meant"))
            elif on_error is not None and not any(target.is_relative_to(real_path(named)) for named in paths):
                linked = find_files([path], skip_vendored=skip_vendored)  # only read: `pins rewrite` keeps to the paths
                waiting[:0] = [(found, kind, False, False) for found, kind in linked]
            continue
        try:
            document = read_document(path, kind, constraint=constraint)
        except WheelproofError as error:
            if isinstance(error, NotFoundError) and (included or path.is_symlink()):
                what = "is a link that leads nowhere" if path.is_symlink() else "is included, but is not there"
                tell(Notice("include-missing", f"{path} {what}"))
            elif on_error is None:
                raise
            else:
                on_error(path, error)
            continue
        waiting[:0] = [
            *((file, _kind_of_included(file), constraint, True) for file in document.includes),
            *((file, "requirements", True, True) for file in document.constraint_files),
        ]
        yield path, document


def _kind_of_included(path: Path) -> str:
    """What ``-r`` names is a requirements file of any name; uv also takes projects and scripts."""
    return (kind_of(path) if path.suffix in (".toml", ".cfg", ".py") else "") or "requirements"
