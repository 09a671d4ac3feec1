"""Parse install commands by the grammar of pip, uv, conda, poetry, pdm and others, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

from wheel_checks.data import load
from wheel_checks.sources.installers.options import Option, options_of
from wheelproof.pins.documents.commands.dockerfile import dockerfile_commands
from wheelproof.pins.documents.commands.lexer import UNKNOWN, Dialect
from wheelproof.pins.documents.commands.shell import Command, Values, Word, split

_ALIKE = 12  # characters by which a word is found again
DEEPEST = 4  # bash -c "bash -c '...'"
# Commands that print or look for their words.
SAYING = frozenset(
    [
        "echo",
        "printf",
        "print",
        "grep",
        "egrep",
        "rg",
        "sed",
        "awk",
        "cat",
        "ls",
        "test",
        "[",
        "[[",
        "man",
        "type",
        "which",
        "git",
        "die",
        "log",
        "info",
        "warn",
        "warning",
        "error",
        "Write-Host",
        "Write-Output",
        "REM",
        "rem",
        "::",
        "@echo",
        "say",
        "fail",
        "fatal",
        "comm",
        "diff",
        "read",
    ]
)
HAS_INSTALL = re.compile(
    r"\b(?:pip[\d.]*|uv|conda|mamba|micromamba|poetry|pdm|pixi|rye|pipenv)\b.*?\b(?:install|add|create|sync|run|update)\b"
)
_SHELLS = re.compile(r"(?:.*/)?(?:ba|z|k|da|a)?sh(?:\.exe)?|pwsh|powershell|ssh|su|eval|RUN|wsl|xargs")
_OPERATOR = re.compile(r"(?:[<>]=|==|~=|!=)")
_ENDINGS = (">=", "==", "~=", "<=", "!=")
_PROSE = re.compile(r"[A-Z][a-z]+[,:.]?")  # "Run pip install torch": a sentence
_PIP_VARIABLE = re.compile(r"\$[({]{0,2}\w*pip\w*\b", re.IGNORECASE)
_UV_VARIABLE = re.compile(r"\$[({]{0,2}\w*\buv\b\w*", re.IGNORECASE)
_DOCKERFILE = re.compile(r"[Dd]ockerfile[\w.-]*$")
# The fields of option values, by effect.
_KINDS = {
    "requirements": "requirements",
    "files": "files",
    "constraints": "constraints",
    "overrides": "constraints",
    "projects": "paths",
}
_HARMLESS = {"--dry-run", "--help", "-h", "--version"}


@dataclass(frozen=True, slots=True)
class Install:
    """An installation. A word with UNKNOWN is known only in part."""

    tool: str
    at: int
    form: str  # how the requirements are written
    requirements: tuple[Word, ...] = ()
    files: tuple[Word, ...] = ()
    constraints: tuple[Word, ...] = ()
    paths: tuple[Word, ...] = ()
    upgrades: bool = False  # the named packages are upgraded to the latest allowed versions
    reinstalls: bool = False  # installed packages are installed again, from the index


def installs(command: Command, dialect: Dialect = Dialect.SH, variables: Values | None = None) -> Iterator[Install]:
    """The installations of a command: its own, and those in scripts that it is given."""
    yield from _installs(command, dialect, variables, 0)


def _installs(command: Command, dialect: Dialect, variables: Values | None, depth: int) -> Iterator[Install]:
    words = command.words
    first = words[0].text.rpartition("/")[2] if words else ""
    if (first in SAYING or _PROSE.fullmatch(first)) and not _writes_script(command):
        return
    yield from _of_words(words)
    if depth < DEEPEST:
        for inner in (*_quoted(words, variables), *_of_body(command, dialect, variables)):
            yield from _installs(inner, dialect, variables, depth + 1)


def _quoted(words: tuple[Word, ...], variables: Values | None) -> Iterator[Command]:
    """The commands of words that are scripts: after a shell, or after -c of docker, ssh, srun, retry, ..."""
    after_shell = after_python = False
    for before, word in pairwise(words):
        after_shell = after_shell or bool(_SHELLS.fullmatch(before.text))
        after_python = after_python or before.text.startswith(("python", "perl"))
        flag = before.text.startswith("-") and before.text.endswith("c") and not after_python
        several = any(c in word.text for c in " \t\n")
        if (after_shell or flag) and several and HAS_INSTALL.search(word.text.replace("\n", " ")):
            for inner in split(word.text, 0, variables, Dialect.SH):
                yield replace(inner, words=tuple(_placed(part, word) for part in inner.words))


def _placed(inner: Word, outer: Word) -> Word:
    """A shell word and its offset in the enclosing quoted word."""
    found = outer.raw.find(inner.raw[:_ALIKE], inner.at)
    return replace(inner, at=outer.at + (found if found >= 0 else inner.at))


def _of_body(command: Command, dialect: Dialect, variables: Values | None) -> Iterator[Command]:
    """The commands of a here-document, if it is a script or a Dockerfile."""
    if not command.body:
        return
    if _DOCKERFILE.search(command.target):
        yield from dockerfile_commands(command.body, command.body_at, variables)
    elif _writes_script(command) or not command.words or any(_SHELLS.fullmatch(w.text) for w in command.words):
        yield from split(command.body, command.body_at, variables, dialect)


def _writes_script(command: Command) -> bool:
    return command.target.endswith((".sh", ".bash")) or bool(_DOCKERFILE.search(command.target))


def _of_words(words: tuple[Word, ...]) -> Iterator[Install]:
    at = 0
    while at < len(words):
        for row in _rows():
            parsed = _parse(row, words, at)
            if parsed is not None:
                found, end = parsed
                if found is not None:
                    yield found
                at = end - 1
                break
        at += 1


@dataclass(frozen=True, slots=True)
class _Row:
    program: tuple[re.Pattern[str], ...]
    verbs: frozenset[str]
    form: str
    positional: str
    label: str
    bare: bool


@cache
def _rows() -> tuple[_Row, ...]:
    """Of the table, those with the longest program first."""
    rows = sorted(load("install_commands")["installer"], key=lambda row: -len(row["program"]))
    return tuple(_row(row) for row in rows)


def _row(row: dict[str, Any]) -> _Row:
    program = tuple(re.compile(part) for part in row["program"])
    return _Row(program, frozenset(row["verbs"]), row["form"], row["positional"], row["name"], bool(row.get("bare")))


def _is_program(pattern: re.Pattern[str], word: Word) -> bool:
    if pattern.fullmatch(word.text.replace("\\", "/")):
        return True
    if UNKNOWN not in word.text:
        return False
    if word.text == UNKNOWN and pattern.fullmatch("pip"):
        return bool(_PIP_VARIABLE.match(word.raw))
    return word.text == UNKNOWN and bool(pattern.fullmatch("uv")) and bool(_UV_VARIABLE.match(word.raw))


def _begins(row: _Row, words: tuple[Word, ...], start: int) -> tuple[str, int] | None:
    """The command whose installation begins at a word, and the number of its first argument; None without one."""
    at = start
    for number, pattern in enumerate(row.program):
        if number:
            at = _behind_options(options_of(row.label), words, at)
        if at >= len(words) or not _is_program(pattern, words[at]):
            return None
        at += 1
    if not row.verbs:
        return row.label, at
    at = _behind_options(options_of(row.label), words, at)
    if at >= len(words) or words[at].text not in row.verbs:
        return None
    return f"{row.label} {words[at].text}", at + 1


def _parse(row: _Row, words: tuple[Word, ...], start: int) -> tuple[Install | None, int] | None:
    """The installation that begins at a word, if it installs anything, and where it ends; None when none begins."""
    begun = _begins(row, words, start)
    if begun is None:
        return None
    tool, at = begun
    options = options_of(tool)
    found: dict[str, list[Word]] = {"requirements": [], "files": [], "constraints": [], "paths": []}
    flags: set[str] = set()
    while at < len(words):
        word = words[at]
        if word.text == "--" or not word.text.startswith("-") or word.text == "-":
            if row.positional == "nothing" and (word.text == "--" or tool.endswith(" run")):
                break  # the program that is run: it may install, too
            at += 1
            if row.positional != "nothing" and word.text != "--":
                _positional(found[row.positional], word)
            continue
        option, value, at = _option(options, words, at + 1, word)
        flags.add(option)
        kind = _KINDS.get(options[option].effect) if option in options else None
        if value is not None and kind is not None:
            found[kind] += _several(value) if kind == "requirements" else [value]
    named = any(found.values())
    empty = not named and not row.bare and (row.positional == "nothing" or not row.verbs)
    if empty or flags & _HARMLESS:
        return None, at
    form = "pep508" if "--pypi" in flags else row.form
    kinds = {kind: tuple(found[kind]) for kind in found}
    effects = {options[flag].effect for flag in flags if flag in options}
    upgrades, reinstalls = "upgrade" in effects, "reinstall" in effects
    return Install(tool, words[start].at, form, **kinds, upgrades=upgrades, reinstalls=reinstalls), at


def _positional(found: list[Word], word: Word) -> None:
    """Add a word; ``torch >= 2.7`` is one requirement in three."""
    if found and (_OPERATOR.match(word.text) or found[-1].text.endswith(_ENDINGS)):
        last = found.pop()
        word = Word(f"{last.text}{word.text}", last.raw, last.at)
    found.append(word)


def _several(value: Word) -> list[Word]:
    """Split the value of uv's --with at commas, except those within brackets and versions."""
    parts = re.split(r",(?=\s*[A-Za-z])(?![^\[]*\])", value.text)
    return [Word(part.strip(), value.raw, value.at) for part in parts if part.strip()]


def _behind_options(options: Mapping[str, Option], words: tuple[Word, ...], at: int) -> int:
    """The position after the options before a program's verb."""
    while at < len(words) and words[at].text.startswith("-"):
        _, _, at = _option(options, words, at + 1, words[at])
    return at


def _option(
    options: Mapping[str, Option], words: tuple[Word, ...], at: int, word: Word
) -> tuple[str, Word | None, int]:
    """The option that a word is, its value, and where the next word is."""
    text = word.text
    name, equals, value = text.partition("=")
    if text.startswith("--") and equals:
        return name, Word(value, word.raw, word.at), at
    short = not text.startswith("--") and len(text) > len("-r")
    if short and _takes_value(options, text[:2]):  # -rFILE
        return text[:2], Word(text[2:].removeprefix("="), word.raw, word.at), at
    last = f"-{text[-1]}" if short and text[1:].isalpha() else text  # -qr FILE
    if _takes_value(options, last) and at < len(words):
        return last, words[at], at + 1
    return ("-U" if re.fullmatch(r"-[a-zA-Z]*U[a-zA-Z]*", text) else text), None, at


def _takes_value(options: Mapping[str, Option], name: str) -> bool:
    return name in options and options[name].takes_value
