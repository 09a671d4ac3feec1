"""Report install commands of Makefiles, justfiles, noxfile.py and tox, which are not read."""

from __future__ import annotations

import re

from wheelproof.pins.model import Document, Notice, Place, Source

_TOOL = re.compile(r"\b(?:pip[\d.]*|uv|conda|mamba|micromamba|poetry|pdm|pixi|rye|pipenv)\b", re.IGNORECASE)
_VERB = re.compile(r"\b(?:install|add|create|sync|update)\b|\s--with\b")
_SESSION = re.compile(r"\.\w*install\(|[\"']install[\"']")  # nox


def read(source: Source) -> Document:
    """A document without requirements, with a notice if it names an install command."""
    return Document("unread", source, notices=unread_commands(source), rewritable=False)


def unread_commands(source: Source) -> tuple[Notice, ...]:
    """A notice at the first install command of a file whose commands are not read; empty if it names none."""
    at = 0
    for line in source.text.replace("\\\n", "  ").splitlines(keepends=True):
        code = line.partition("#")[0]
        tool = _TOOL.search(code)
        if (tool and _VERB.search(code, tool.end())) or _SESSION.search(code):
            message = "not read: the install commands of a Makefile, justfile, noxfile.py or tox file"
            return (Notice("not-read", message, Place(source.path, *source.position(at))),)
        at += len(line)
    return ()
