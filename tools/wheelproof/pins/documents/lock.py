"""Lock files: never rewritten, since their hashes and their graph would not agree any more; only reported."""

from __future__ import annotations

import re

from wheelproof.pins.documents.names import normalized
from wheelproof.pins.model import Document, FoundRequirement, Notice, Place, Role, Source

_ADVICE = {
    "uv.lock": "`uv sync --inexact` with torch in exclude-dependencies, or `uv lock` after the rewrite",
    "poetry.lock": "`poetry lock` after the rewrite, then `poetry install` without --sync",
    "pdm.lock": "`pdm lock` after the rewriting",
    "pixi.lock": "`pixi lock` after the rewrite: pixi recreates the environment",
    "pylock": "regenerate it after the rewrite, or install with `--excludes`",
}
_NAME = re.compile(r"""^[ \t-]*name[ \t]*[=:][ \t]*["']?([A-Za-z0-9._-]+)""", re.MULTILINE)
_VERSION = re.compile(r"""["']?[ \t]*\r?\n[ \t]*version[ \t]*[=:][ \t]*["']?([A-Za-z0-9.+!_-]+)""")  # on the next line
_CONDA = re.compile(r"/((?:pytorch|torch)[a-z-]*)-\d")  # pixi.lock: conda's packages by URL
MOST = 20  # names said of one file


def read(source: Source) -> Document:
    """A notice for every package that the file locks and that may be requested, and the versions that it locks."""
    name = source.path.name
    advice = next((text for kind, text in _ADVICE.items() if kind in name), _ADVICE["pylock"])
    found: dict[str, int] = {}
    versions: dict[str, list[str]] = {}
    for pattern in (_NAME, _CONDA):
        for match in pattern.finditer(source.text):
            found.setdefault(normalized(match[1]), match.start(1))
            if version := _VERSION.match(source.text, match.end()):
                versions.setdefault(normalized(match[1]), []).append(version[1])
    notices = tuple(
        Notice(
            "lock-file",
            f"{name} locks {package} and is not rewritten: {advice}",
            Place(source.path, *source.position(offset)),
            about=(package,),
        )
        for package, offset in found.items()
    )
    requirements = tuple(
        FoundRequirement(name, f"{name}=={version}", Role.LOCK, Place(source.path, *source.position(found[name])))
        for name, locked in versions.items()
        for version in dict.fromkeys(locked)
    )
    return Document("lock", source, requirements, notices, rewritable=False)
