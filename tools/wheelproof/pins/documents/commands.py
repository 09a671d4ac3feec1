"""Dockerfiles and shell scripts: the requirements in their ``pip install`` lines, which are reported, not rewritten."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document, Notice, Place

_INSTALL = re.compile(r"\b(?:pip[0-9.]*|uv[ \t]+pip)[ \t]+(?:-\S+[ \t]+){0,20}install\b|\buv[ \t]+add\b")
LONGEST = 10_000  # characters of a command
_END = re.compile(r"(?:&&|\|\||[;|&])")
# Options of pip and uv that take the next word.
_TAKING = {
    *("-r", "-c", "-e", "-i", "-f", "-t", "--requirement", "--constraint", "--editable", "--index-url", "--target"),
    *("--extra-index-url", "--find-links", "--python", "--prefix", "--root", "--torch-backend", "--platform", "-p"),
    *("--trusted-host", "--cache-dir", "--build-constraint", "--override", "--excludes", "--default-index", "--index"),
}


def read(source: Source) -> Document:
    """A notice for every requirement in a ``pip install``, ``uv pip install`` or ``uv add`` of the file."""
    return Document("commands", source, notices=tuple(_notices(source)), rewritable=False)


def _notices(source: Source) -> Iterator[Notice]:
    # Continuations are blanked, so that a command is one line, and every offset stays.
    text = re.sub(r"\\[ \t]*\r?\n(?:[ \t]*#[^\n]*\n)*", lambda match: " " * len(match[0]), source.text)
    line = end = 0
    while install := _INSTALL.search(text, end):
        line = text.rfind("\n", end, install.start()) + 1 or line
        start, end = install.end(), _end_of_command(text, install.end())
        if text[line : install.start()].lstrip(" \t").startswith("#"):
            continue
        command = text[start : min(end, start + LONGEST)]
        try:
            words = shlex.split(command, comments=True)
        except ValueError:  # a quote that is not closed
            words = command.split()
        for word in _requirements(words):
            if name := project_of(word):
                offset = max(source.text.find(word, start, end), install.start())
                message = f"`pip install {word}` in {source.path.name} is not rewritten"
                yield Notice("install-command", message, Place(source.path, *source.position(offset)), about=(name,))


def _end_of_command(text: str, start: int) -> int:
    """Where the command ends: at an operator outside quotes, and with the line."""
    quote, at = "", start
    while at < len(text):
        character = text[at]
        if character == "\n":
            return at
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif _END.match(text, at):
            return at
        at += 1
    return at


def _requirements(words: list[str]) -> Iterator[str]:
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in _TAKING
        else:
            yield word
