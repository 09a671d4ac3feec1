"""Lock files: never rewritten, since their hashes and their graph would not agree any more; only reported."""

from __future__ import annotations

import re

from wheelproof.pins.documents.names import normalized
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document, Notice, Place

_ADVICE = {
    "uv.lock": "`uv sync --inexact` with torch in exclude-dependencies, or `uv lock` after the rewriting",
    "poetry.lock": "`poetry lock` after the rewriting, then `poetry install` without --sync",
    "pdm.lock": "`pdm lock` after the rewriting",
    "pixi.lock": "`pixi lock` after the rewriting: pixi makes the environment anew",
    "pylock": "make it again after the rewriting, or install with `--excludes`",
}
_NAME = re.compile(r"""^[ \t-]*name[ \t]*[=:][ \t]*["']?([A-Za-z0-9._-]+)""", re.MULTILINE)
_CONDA = re.compile(r"/((?:pytorch|torch)[a-z-]*)-\d")  # pixi.lock: conda's packages by URL
MOST = 20  # names told of one file


def read(source: Source) -> Document:
    """A notice for every package that the file locks and that may be asked for."""
    name = source.path.name
    advice = next((text for kind, text in _ADVICE.items() if kind in name), _ADVICE["pylock"])
    found: dict[str, int] = {}
    for pattern in (_NAME, _CONDA):
        for match in pattern.finditer(source.text):
            found.setdefault(normalized(match[1]), match.start(1))
    notices = tuple(
        Notice(
            "lock-file",
            f"{name} locks {package} and is not rewritten: {advice}",
            Place(source.path, *source.position(offset)),
            about=(package,),
        )
        for package, offset in found.items()
    )
    return Document("lock", source, notices=notices, rewritable=False)
