"""Shell text as words: quotes, escapes, substitutions and variables, each at its place, nothing put in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

UNKNOWN = "\0"
_LONGEST_TEMPLATE = 400  # characters of {{ ... }}


class Dialect(Enum):
    """The syntax of a text: its escape character, and the meaning of a dollar."""

    SH = auto()
    CMD = auto()  # ^ continues a line, a backslash is a backslash
    POWERSHELL = auto()  # so does a backtick
    SHOWN = auto()  # text of a page: >= is no redirection, and the reader replaces <name>
    WORDS = auto()  # no shell: the exec form of a Dockerfile


_ESCAPES = {Dialect.CMD: "^", Dialect.POWERSHELL: "`"}


@dataclass(slots=True)
class Part:
    """A piece of a word: text, or a variable with its default value."""

    text: str
    quoted: bool = False
    variable: str = ""
    default: str | None = None
    spread: bool = False  # "${a[@]}": a list, though it is quoted


@dataclass(slots=True)
class Raw:
    """A word before variables are put in."""

    parts: list[Part]
    at: int
    end: int
    items: list[Raw] | None = None  # of NAME=(...)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9@*])(\[[@*]\])?(?:(:?[-=+])([^{}]*))?\}", re.ASCII)
_EXPRESSION = re.compile(r"\$\{\{(.{0,2000}?)\}\}", re.DOTALL)
_SHOWN = re.compile(r"[<>]=|<[A-Za-z][\w .-]*>")
_BRACES = re.compile(r"\$\{|\}")
_RUN = re.compile(r"[\w./:@+=,~-]+", re.ASCII)
_QUOTED_RUN = re.compile(r"[\w./:@+=,~ <>!;-]+", re.ASCII)
_PERCENT = re.compile(r"%~?[A-Za-z_*0-9][\w]*%?", re.ASCII)


class Lexer:
    """Words of a text, from ``at`` on. Substitutions are passed to :meth:`within`."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text, self.dialect = text, dialect
        self.escape = _ESCAPES.get(dialect, "\\")
        self.shell = dialect is not Dialect.WORDS
        self.at = 0
        self.closed = 1  # after the next }}

    def within(self, start: int, end: int) -> None:
        """Take note of the script of a substitution."""

    def continues(self) -> bool:
        """Whether an escaped line end is here; it is passed."""
        if not self.text.startswith(self.escape, self.at):
            return False
        match = re.compile(r"[ \t]*\r?\n").match(self.text, self.at + 1)
        if match is None:
            return False
        self.at = match.end()
        return True

    def word(self) -> Raw:
        """The word that begins here."""
        start, parts, text = self.at, list[Part](), self.text
        while self.at < len(text):
            character = text[self.at]
            if character in " \t\r\n\v\f":
                break
            shown = _SHOWN.match(text, self.at) if self.dialect is Dialect.SHOWN else None
            if shown:
                parts.append(Part(shown[0] if shown[0][-1] == "=" else UNKNOWN))
                self.at = shown.end()
                continue
            if self.shell and character in ";|&()<>":
                if character == "(" and parts and not parts[-1].variable and parts[-1].text.endswith("="):
                    return self.array(start, parts)
                break
            if not self.continues():
                self.character(parts)
        if self.at == start:  # characters that begin no word
            self.at += 1
        return Raw(parts, start, self.at)

    def is_shown(self) -> bool:
        """Whether < or > is text of a page: part of a version, or of a word in brackets."""
        return self.dialect is Dialect.SHOWN and _SHOWN.match(self.text, self.at) is not None

    def character(self, parts: list[Part]) -> None:
        """Read an escaped character, a quoted piece, a variable, or plain text."""
        text = self.text
        character = text[self.at]
        if character == self.escape and self.dialect is not Dialect.WORDS:
            parts.append(Part(text[self.at + 1 : self.at + 2], quoted=True))
            self.at += 2
        elif character == "'" and self.dialect is not Dialect.CMD:
            end = text.find("'", self.at + 1)
            end = len(text) if end < 0 else end
            parts.append(Part(text[self.at + 1 : end], quoted=True))
            self.at = end + 1
        elif character == '"':
            self.at += 1
            self.quoted(parts)
        elif not self.special(parts, quoted=False):
            match = _RUN.match(text, self.at)
            run = match[0] if match else character
            parts.append(Part(run))
            self.at += len(run)

    def quoted(self, parts: list[Part]) -> None:
        """The rest of a double-quoted piece."""
        text = self.text
        parts.append(Part("", quoted=True))  # "" is a word, too
        while self.at < len(text) and text[self.at] != '"':
            if self.continues():
                continue
            if text[self.at] == self.escape and text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`"):
                parts.append(Part(text[self.at + 1], quoted=True))
                self.at += 2
            elif not self.special(parts, quoted=True):
                match = _QUOTED_RUN.match(text, self.at)
                run = match[0] if match else text[self.at]
                parts.append(Part(run, quoted=True))
                self.at += len(run)
        self.at += 1

    def special(self, parts: list[Part], *, quoted: bool) -> bool:
        """Take a variable, a substitution or a template that begins here."""
        text, at = self.text, self.at
        if text[at] == "%" and self.dialect is Dialect.CMD and (match := _PERCENT.match(text, at)):
            parts.append(Part(UNKNOWN, quoted))
            self.at = match.end()
            return True
        if text.startswith("{{", at) and at < self.template_end(at) <= at + _LONGEST_TEMPLATE:
            parts.append(Part(UNKNOWN, quoted))
            self.at = self.closed
            return True
        if text[at] == "`" and self.dialect in (Dialect.SH, Dialect.SHOWN):
            end = text.find("`", at + 1)
            end = len(text) if end < 0 else end
            self.within(at + 1, end)
            parts.append(Part(UNKNOWN, quoted))
            self.at = end + 1
            return True
        return text[at] == "$" and self.dollar(parts, quoted=quoted)

    def template_end(self, at: int) -> int:
        """The position after the next ``}}``, searched for once; 0 without one."""
        if self.closed and self.closed < at + 4:
            self.closed = self.text.find("}}", at + 2) + 2
            self.closed = 0 if self.closed == 1 else self.closed
        return self.closed

    def dollar(self, parts: list[Part], *, quoted: bool) -> bool:
        """Read a substitution after a dollar; False if none begins there."""
        text, at = self.text, self.at
        if match := _EXPRESSION.match(text, at):
            parts.append(Part("", quoted, variable="{{" + match[1].strip()))
            self.at = match.end()
        elif text.startswith("$(", at):
            end = _closing(text, at + 1)
            self.within(at + 2, end)
            parts.append(Part(UNKNOWN, quoted))
            self.at = end + 1
        elif match := _BRACED.match(text, at):
            parts.append(_braced(match, quoted=quoted))
            self.at = match.end()
        elif text.startswith("${", at):
            parts.append(Part(UNKNOWN, quoted))
            self.at = _closing_brace(text, at)
        elif match := _NAME.match(text, at + 1):
            parts.append(Part("", quoted, variable=match[0]))
            self.at = match.end()
        elif text[at + 1 : at + 2] in ("@", "*", "#", "?", "!", "-", "$") or text[at + 1 : at + 2].isdigit():
            parts.append(Part(UNKNOWN, quoted))
            self.at += 2
        elif self.dialect in (Dialect.SH, Dialect.SHOWN) and text[at + 1 : at + 2] in ("'", '"') and not quoted:
            self.at += 1
        else:
            return False
        return True

    def array(self, start: int, parts: list[Part]) -> Raw:
        """The items of NAME=(...)."""
        self.at += 1
        items: list[Raw] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] in " \t\r\n":
                self.at += 1
            elif self.continues():
                continue
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                items.append(self.word())
        self.at += 1
        return Raw(parts, start, self.at, items)


def _braced(match: re.Match[str], *, quoted: bool) -> Part:
    """A variable in braces, with the default that it has."""
    name, every, operator, text = match.groups()
    if operator and operator.endswith("+"):
        name = f"+{name}"  # the text counts, set or not
    return Part("", quoted, name, text if operator else None, spread=every == "[@]")


def _closing(text: str, at: int) -> int:
    """The position of the parenthesis that closes the one at ``at``."""
    depth, quote = 0, ""
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    return len(text)


def _closing_brace(text: str, at: int) -> int:
    """The position after the brace that closes the ``${`` at ``at``, nested ones included."""
    depth = 0
    for match in _BRACES.finditer(text, at):
        depth += 1 if match[0] == "${" else -1
        if depth == 0:
            return match.end()
    return len(text)
