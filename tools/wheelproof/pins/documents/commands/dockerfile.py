"""Dockerfiles: what RUN, CMD and ENTRYPOINT run, with the values of ARG and ENV (Docker's reference of the format)."""

import json
import re
from collections.abc import Iterator

from wheelproof.pins.documents.commands.lexer import Dialect
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.commands.shell import Command, Values, assigned, commands, moved

_ESCAPE = re.compile(r"(?:#[ \t]*[a-z]+[ \t]*=.*\r?\n)*?#[ \t]*escape[ \t]*=[ \t]*`", re.IGNORECASE)
_INSTRUCTION = re.compile(r"[ \t]*(?:ONBUILD[ \t]+)?([A-Za-z]+)(?=[ \t])", re.IGNORECASE)
_HEREDOC = re.compile(r"<<(-?)[ \t]*[\"']?(\w+)[\"']?", re.ASCII)
_PAIR = re.compile(r"""[A-Za-z_]\w*=(?:"(?:[^"\\]|\\.)*"|'[^']*'|(?:\\.|[^\s"'\\])*)+""", re.ASCII | re.DOTALL)
_RUNNING = {"RUN", "CMD", "ENTRYPOINT"}


def dockerfile_scripts(text: str, base: int = 0) -> Iterator[Piece]:
    """A script per instruction that runs something; each is at its place, ``base`` characters later."""
    yield from (piece for word, piece in dockerfile_pieces(text, base) if word in _RUNNING)


def dockerfile_pieces(text: str, base: int = 0) -> Iterator[tuple[str, Piece]]:
    """Each FROM, and each instruction that runs something, with the text after it."""
    escape = "`" if _ESCAPE.match(text) else "\\"
    dialect = Dialect.POWERSHELL if escape == "`" else Dialect.SH
    variables: dict[str, tuple[str, ...]] = {}
    for word, start, body in _instructions(text, escape):
        if word in ("ARG", "ENV"):
            variables = _set(word, body, variables)
        elif word == "FROM" or word in _RUNNING:
            exec_form = _exec_form(body)
            if exec_form is not None:
                yield word, Piece(exec_form, ((0, base + start),), variables, Dialect.WORDS)
            else:
                yield word, Piece(body, ((0, base + start),), variables, dialect)


def _instructions(text: str, escape: str) -> Iterator[tuple[str, int, str]]:
    """Each instruction, the offset of the text after it, and that text; comments within are blank, line ends too."""
    lines = text.splitlines(keepends=True)
    number = offset = 0
    while number < len(lines):
        line = lines[number]
        match = _INSTRUCTION.match(line)
        if match is None or line.lstrip().startswith("#"):
            offset += len(line)
            number += 1
            continue
        start = offset + match.end()
        parts = [line[match.end() :]]
        offset += len(line)
        number += 1
        while number < len(lines) and _continues(parts[-1], escape):
            line = lines[number]
            if not line.strip() or line.lstrip().startswith("#"):
                parts[-1] += " " * len(line)  # a comment, or an empty line, in the middle: the command continues
            else:
                parts.append(line)
            offset += len(line)
            number += 1
        body = "".join(parts)
        for dashed, delimiter in _HEREDOC.findall(body) if match[1].upper() in ("RUN", "COPY", "ADD") else ():
            while number < len(lines):
                line = lines[number]
                body += line
                offset += len(line)
                number += 1
                if (line.strip("\t\r\n ") if dashed else line.rstrip("\r\n")) == delimiter:
                    break
        yield match[1].upper(), start, body


def _continues(line: str, escape: str) -> bool:
    return line.rstrip().endswith(escape) and not line.rstrip().endswith(escape * 2)


def _set(word: str, body: str, variables: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    text = body.strip()
    if word == "ENV" and "=" not in text.split(None, 1)[0]:
        name, _, value = text.partition(" ")
        return assigned(f'{name}="{value.strip()}"', variables)
    pairs = [match[0] for match in _PAIR.finditer(text)]
    for pair in pairs:
        name = pair.partition("=")[0]
        fresh = variables if word == "ARG" else {key: value for key, value in variables.items() if key != name}
        before = {**variables, name: ()} if word == "ENV" else variables
        values = assigned(pair, before, Dialect.WORDS).get(name, ())
        variables = {**fresh, name: tuple(dict.fromkeys((*values, *fresh.get(name, ()))))}
    return variables


def _exec_form(body: str) -> str | None:
    """The words of ``["pip", "install", "x"]``, each at its place; None for the shell form."""
    text = body.strip()
    if not text.startswith("["):
        return None
    try:
        words = json.loads(text.replace("\\\n", "  "))
    except ValueError:
        return None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    return re.sub(
        r"\\\r?\n", lambda match: " " * len(match[0]), re.sub(r"[\[\]]|(?<=\")\s*,", lambda m: " " * len(m[0]), body)
    )


def dockerfile_commands(text: str, base: int, variables: Values | None = None) -> Iterator[Command]:
    """The commands of a Dockerfile that a script writes."""
    for script in dockerfile_scripts(text, base):
        for command in commands(script.text, {**(variables or {}), **script.variables}, script.dialect):
            yield moved(command, script.anchors[0][1])
