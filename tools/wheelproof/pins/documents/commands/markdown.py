"""README files: the commands in their blocks of code, in Markdown and reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheelproof.pins.documents.commands.cells import cell_script
from wheelproof.pins.documents.commands.dockerfile import dockerfile_scripts
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.lexer import Dialect
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.model import Document, Source

_FENCE = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)])?[ \t]*(`{3,}(?=[^`\n]*$)|~{3,})[ \t]*\{?\.?([\w+.#-]*)", re.MULTILINE)
_DIRECTIVE = re.compile(r"([ \t]*)\.\. +(?:code-block|code|sourcecode|prompt)::[ \t]*(\w*)[ \t]*")
_PROMPT = re.compile(
    r"([ \t>]*)(?:\([\w.-]+\)[ \t]*)?"
    r"(?:[\w.@~/:-]*[ \t]?[$%]|[\w.-]+@[\w.~/:-]+#|PS [^>\n]*>|[A-Z]:\\[^>\n]*>|>)[ \t]+(?=\S)"
)
_LEAD = re.compile(r"[ \t]*>?[ \t]*")
_INSTALLER = re.compile(
    r"(?:!|%)?(?:[A-Za-z_]\w*=\S*\s+)*(?:cd\s+\S+\s*(?:&&|;)\s*)?(?:sudo\s+)?(?:python[\d.]*\s+-m\s+)?"
    r"(?:pip[\d.]*|uv|conda|mamba|poetry|pdm|pixi)\s+\S"
)
_SHELL = {
    "bash",
    "sh",
    "shell",
    "console",
    "zsh",
    "shell-session",
    "sh-session",
    "bash-session",
    "shellscript",
    "terminal",
    "cmd",
    "bat",
    "powershell",
    "pwsh",
    "ps1",
    "fish",
    "ksh",
    "default",
    "commandline",
}
_PLAIN = {"", "text", "txt", "none", "plaintext", "plain"}
_PYTHON = {"python", "py", "ipython", "python3", "jupyter", "ipython3", "pycon"}
_DOCKER = {"dockerfile", "docker", "containerfile"}
_INDENTED = 4  # spaces before a block of code
_NOT_NEWLINE = re.compile(r"[^\r\n]")


def read(source: Source) -> Document:
    """The installations that a README shows."""
    return document(source, "markdown", of_scripts(markdown_scripts(source.text)))


def markdown_scripts(text: str) -> Iterator[Piece]:
    """The blocks of code that are commands, each at its place."""
    for language, start, block in _blocks(text):
        if language in _SHELL or language in _PLAIN:
            shown = _commands(block, plain=language in _PLAIN)
            dialect = Dialect.POWERSHELL if language in ("powershell", "pwsh", "ps1") else Dialect.SHOWN
            yield Piece(shown, ((0, start),), dialect=dialect, documentation=True)
        elif language in _PYTHON:
            shown, anchors = cell_script(block, [(0, start)])
            yield Piece(shown, anchors, dialect=Dialect.SHOWN, documentation=True)
        elif language in _DOCKER:
            for script in dockerfile_scripts(block, start):
                yield Piece(script.text, script.anchors, script.variables, script.dialect, documentation=True)


def _blocks(text: str) -> Iterator[tuple[str, int, str]]:
    """Language, offset and text of each block: fenced, of a directive, or indented after an empty line."""
    fence = language = ""
    start = offset = 0
    indent = -1  # of a directive whose block continues
    before = ""
    for line in text.splitlines(keepends=True):
        end = offset + len(line)
        goes_on = not line.strip() or _indent(line) > indent
        if fence:
            stripped = line.strip(" \t>\r\n")
            if stripped.startswith(fence) and not stripped.strip(fence[0]):
                yield language, start, text[start:offset]
                fence = ""
        elif indent < 0 or not goes_on:
            if indent >= 0:
                yield language, start, text[start:offset]
                indent = -1
            if match := _FENCE.match(line):
                fence, language, start = match[1], match[2].lower(), end
            elif opened := _directive(line):
                indent, language, start = *opened, end
            elif _is_indented_code(line, before):
                yield "", offset, line
        before = line
        offset = end
    if fence or indent >= 0:
        yield language, start, text[start:]


def _directive(line: str) -> tuple[int, str] | None:
    """The indentation and language of the block that a line of reStructuredText opens."""
    if match := _DIRECTIVE.match(line):
        return len(match[1].expandtabs()), match[2].lower()
    if line.rstrip().endswith("::") and not line.lstrip().startswith(".."):
        return _indent(line), ""
    return None


def _is_indented_code(line: str, before: str) -> bool:
    """Whether a line is a command of an indented block: after an empty line, or another one of it."""
    if _indent(line) < _INDENTED or not _INSTALLER.match(_without_prompt(line).strip()):
        return False
    return not before.strip() or (
        _indent(before) >= _INDENTED and bool(_INSTALLER.match(_without_prompt(before).strip()))
    )


def _indent(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


def _without_prompt(line: str) -> str:
    match = _PROMPT.match(line)
    return " " * match.end() + line[match.end() :] if match else line


def _commands(block: str, *, plain: bool) -> str:
    """The block without prompts; if lines have them, the others are output. A plain text has only commands."""
    lines = block.splitlines(keepends=True)
    prompted = any(match[0].strip(" \t>") for line in lines if (match := _PROMPT.match(line)))
    kept: list[str] = []
    continued = False
    for line in lines:
        match = _PROMPT.match(line)
        is_command = continued or not (prompted or plain) or match is not None
        if plain and not prompted:
            is_command = continued or bool(_INSTALLER.match(_without_prompt(line).strip()))
        lead = _LEAD.match(line)
        body = line
        if match and not continued and (match[0].strip(" \t>#") or not line.lstrip(" \t>").startswith("#")):
            body = " " * match.end() + line[match.end() :]
        elif lead and ">" in lead[0]:
            body = " " * lead.end() + line[lead.end() :]
        if is_command and body.lstrip().startswith(("!", "%")):
            body = body.replace(body.lstrip()[0], " ", 1)
        kept.append(body if is_command else _NOT_NEWLINE.sub(" ", line))
        continued = is_command and line.rstrip().endswith(("\\", "`")) and not body.lstrip().startswith("#")
    return "".join(kept)
