"""Shell text as simple commands: words with their places, variables that are known put in, nothing run.

What a shell would only know at run time is :data:`UNKNOWN` in a word. A variable that is set to several literal values
(in branches, by a loop, by a matrix) gives the command once for each of them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.commands.lexer import UNKNOWN, Dialect, Lexer, Part, Raw

MOST_VALUES = 32  # of one variable
DEEPEST = 8  # scripts in scripts
LONGEST = 1 << 20  # characters of one script
_LONGEST_VALUE = 1 << 14  # characters of a variable: A=$A$A doubles

Values = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the command gets it, as it is written, and where."""

    text: str
    raw: str
    at: int


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command. ``body`` is that of a here-document, with its place, and ``target`` where output goes.

    ``environment`` are the variables that the script exports before it, or sets only for it.
    """

    words: tuple[Word, ...]
    at: int
    body: str = ""
    body_at: int = 0
    target: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Pending:
    """What the lexer has of the current command."""

    words: list[Raw] = field(default_factory=list)
    heredocs: list[tuple[str, bool]] = field(default_factory=list)
    target: Raw | None = None


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=", re.ASCII)
_REFERENCE = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)+", re.ASCII)
_LITERAL = re.compile(r"(==|!=)?\s*'((?:[^']|'')*)'\s*(==|!=)?")
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([^']*)'|\"([^\"]*)\"|\\?([^\s;|&<>()'\"]+))")
_REDIRECT = re.compile(r"(?:[0-9]*|&)(?:>>|>\||>&|<&|<>|<<<|>|<)")
_OPERATORS = re.compile(r"&&|\|\||;;&?|;&|\|&|[;|&()]")
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "time"})
_DECLARING = frozenset({"export", "local", "readonly", "declare", "typeset", "set"})
_EXPORTING = frozenset({"export", "set"})  # set: that of cmd.exe


def commands(text: str, variables: Values | None = None, dialect: Dialect = Dialect.SH) -> list[Command]:
    """The simple commands of a script in order, those in substitutions included, without what is commented out.

    Raises FormatError for a script that is too long.
    """
    if len(text) > LONGEST:
        raise FormatError(f"a script of {len(text):,} characters is not read", expected=f"at most {LONGEST:,}")
    return list(_Shell(text, dict(variables or {}), dialect, 0).run())


def assigned(text: str, variables: Values, dialect: Dialect = Dialect.SH) -> dict[str, tuple[str, ...]]:
    """The variables after the assignments of a script; as they were for one that is too long."""
    if len(text) > LONGEST:
        return dict(variables)
    shell = _Shell(text, dict(variables), dialect, 0)
    for _ in shell.run():
        pass
    return shell.variables


def limited(values: Iterable[str]) -> tuple[str, ...]:
    """Values, each once; where there are too many, or they are too long, what is omitted is UNKNOWN."""
    found = tuple(dict.fromkeys(value if len(value) <= _LONGEST_VALUE else UNKNOWN for value in values))
    return found if len(found) <= MOST_VALUES else (*found[: MOST_VALUES - 1], UNKNOWN)


def split(text: str, at: int, variables: Values | None = None, dialect: Dialect = Dialect.SH) -> list[Command]:
    """The commands of a piece of text that is at ``at`` of a larger one."""
    return [moved(command, at) for command in commands(text, variables, dialect)]


def moved(command: Command, by: int) -> Command:
    """The command, so many characters later."""
    words = tuple(replace(word, at=word.at + by) for word in command.words)
    return replace(command, words=words, at=command.at + by, body_at=command.body_at + by)


class _Shell(Lexer):
    def __init__(self, text: str, variables: dict[str, tuple[str, ...]], dialect: Dialect, depth: int) -> None:
        super().__init__(text, dialect)
        self.variables, self.depth = variables, depth
        self.nested: list[Command] = []
        self.pending = _Pending()
        self.exported: set[str] = set()

    def run(self) -> Iterator[Command]:
        text = self.text
        while self.at < len(text):
            character = text[self.at]
            if character in " \t\r\v\f":
                self.at += 1
            elif self.continues():
                continue
            elif character == "\n":
                self.at += 1
                yield from self.finish()
            elif character == "#" and self.dialect is not Dialect.CMD:
                end = text.find("\n", self.at)  # a backslash at its end continues nothing
                self.at = len(text) if end < 0 else end
            elif self.shell and (match := _HEREDOC.match(text, self.at)) and not text.startswith("<<<", self.at):
                self.pending.heredocs.append((match[2] or match[3] or match[4] or "", bool(match[1])))
                self.at = match.end()
            elif self.shell and self.redirection():
                continue
            elif self.shell and (match := _OPERATORS.match(text, self.at)):
                self.at = match.end()
                yield from self.finish(keep_heredocs=True)
            else:
                self.pending.words.append(self.word())
        yield from self.finish()

    def redirection(self) -> bool:
        """Whether output or input is redirected here; it is passed."""
        match = _REDIRECT.match(self.text, self.at)
        if match is None or not match[0].strip("0123456789") or self.is_shown():
            return False
        self.at = match.end()
        self.redirect(match[0])
        return True

    def redirect(self, operator: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in "\r\n;|&()":
            target = self.word()
            if ">" in operator:
                self.pending.target = target

    def within(self, start: int, end: int) -> None:
        """Read the script of a substitution."""
        if self.depth < DEEPEST:
            inner = _Shell(self.text[start:end], self.variables, self.dialect, self.depth + 1)
            inner.exported = self.exported
            self.nested += [moved(command, start) for command in inner.run()]

    def finish(self, *, keep_heredocs: bool = False) -> Iterator[Command]:
        """The command that ends here, once for each of its variants; the line's here-documents are passed."""
        pending, self.pending = self.pending, _Pending()
        yield from self.nested
        self.nested = []
        body, body_at = "", 0
        if keep_heredocs:
            self.pending.heredocs = pending.heredocs  # `cat <<EOF | sh`: the script is the next command's, too
            body, body_at = self.heredoc_ahead(pending.heredocs)
        else:
            for delimiter, dashed in pending.heredocs:
                body, body_at = self.heredoc(delimiter, dashed=dashed)
        words = pending.words
        while words and _plain(words[0]) in _KEYWORDS:
            words = words[1:]
        if len(words) > 2 and _plain(words[0]) == "for" and _plain(words[2]) == "in":
            self.assign(_plain(words[1]), [self.expand(word, 0) for word in words[3:]], several=True)
            return
        words, own = self.take_assignments(words)
        exported = {name: _one(self.variables.get(name, ())) for name in sorted(self.exported)}
        if not words and not body:
            return
        variants = min(MOST_VALUES, max((self.variants(word) for word in words), default=1))
        seen: set[tuple[str, ...]] = set()
        for variant in range(variants):
            found = tuple(item for word in words for item in self.fields(word, variant))
            texts = tuple(item.text for item in found)
            if texts not in seen and (found or body):
                seen.add(texts)
                target = self.expand(pending.target, 0) if pending.target else ""
                at = words[0].at if words else body_at
                yield Command(found, at, body, body_at, target, {**exported, **own})

    def heredoc_ahead(self, heredocs: list[tuple[str, bool]]) -> tuple[str, int]:
        """The last here-document of the line, which begins after the line; nothing is passed."""
        here, end = self.at, self.text.find("\n", self.at)
        body, body_at = "", 0
        if heredocs and end >= 0:
            self.at = end + 1
            for delimiter, dashed in heredocs:
                body, body_at = self.heredoc(delimiter, dashed=dashed)
            self.at = here
        return body, body_at

    def heredoc(self, delimiter: str, *, dashed: bool) -> tuple[str, int]:
        start = at = self.at
        while at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            line = self.text[at:end].rstrip("\r")
            if (line.lstrip("\t ") if dashed else line.strip()) == delimiter:
                self.at = min(end + 1, len(self.text))
                return self.text[start:at], start
            at = end + 1
        self.at = len(self.text)
        return self.text[start:], start

    def take_assignments(self, words: list[Raw]) -> tuple[list[Raw], dict[str, str]]:
        """The words after the assignments, and those that are only for this command.

        Without a command, or after ``export`` and its like, they count from here on.
        """
        rest = list(words)
        declaring = _plain(rest[0]) if rest and _plain(rest[0]) in _DECLARING else ""
        if declaring:
            exports = declaring in _EXPORTING or any(_plain(word).startswith("-x") for word in rest)
            rest = [word for word in rest[1:] if not _plain(word).startswith("-")]
            if exports:
                self.exported |= {match[0] for word in rest if (match := _NAME.match(_plain(word) or _lead(word)))}
        count = 0
        while count < len(rest) and _assignment(rest[count]):
            count += 1
        if count < len(rest) and not declaring:
            pairs = [(match, word) for word in rest[:count] if (match := _assignment(word))]
            return rest[count:], {m[1]: self.expand(_without_name(word, m.end()), 0) for m, word in pairs}
        for word in rest[:count]:
            match = _assignment(word)
            if match is None:
                continue
            if word.items is not None:
                value = " ".join(item.text for part in word.items for item in self.fields(part, 0))
            else:
                value = self.expand(_without_name(word, match.end()), 0)
            self.assign(match[1], [value], append=bool(match[2]), array=word.items is not None)
        return [] if declaring or count == len(rest) else rest[count:], {}

    def assign(
        self, name: str, values: list[str], *, append: bool = False, several: bool = False, array: bool = False
    ) -> None:
        before = self.variables.get(name, ())
        if append:
            joiner = " " if array else ""
            new = tuple(f"{old}{joiner}{value}" for old in before or ("",) for value in values)
            self.variables[name] = limited((*new, *before))
        else:
            new = tuple(value for value in values if value or not before)
            self.variables[name] = limited((*new, *(() if several else before)))

    def variants(self, word: Raw) -> int:
        return max((len(self.values(part)) for part in word.parts if part.variable), default=1)

    def values(self, part: Part) -> tuple[str, ...]:
        """What a variable may be; an unknown one is :data:`UNKNOWN`, unless a value for that case is written."""
        if part.variable.startswith("{{"):
            return _expression(part.variable[2:], self.variables)
        known = self.variables.get(part.variable, ())
        if part.default is not None and (not known or all(UNKNOWN in value for value in known)):
            return (self.expand(_literal(part.default), 0),)
        return known or (UNKNOWN,)

    def value(self, part: Part, variant: int) -> str:
        values = self.values(part)
        return values[min(variant, len(values) - 1)]

    def expand(self, word: Raw, variant: int) -> str:
        """The word as one text."""
        return "".join(self.value(part, variant) if part.variable else part.text for part in word.parts)

    def fields(self, word: Raw, variant: int) -> list[Word]:
        """The words that a word becomes: a variable that is not quoted is split at white space."""
        texts: list[list[str]] = [[]]  # of each word the pieces
        alone = False
        for part in word.parts:
            if not part.variable:
                texts[-1].append(part.text)
                alone = alone or part.quoted or bool(part.text)
                continue
            value = self.value(part, variant)
            if (part.quoted and not part.spread) or not re.search(r"\s", value):
                texts[-1].append(value)
                alone = alone or part.quoted or bool(value)
                continue
            pieces = value.split()
            if not pieces:
                continue
            if value[:1].isspace() and any(texts[-1]):
                texts.append([])
            texts[-1].append(pieces[0])
            texts += [[piece] for piece in pieces[1:]]
            alone = True
        raw = self.text[word.at : word.end]
        joined = ("".join(pieces) for pieces in texts)
        return [Word(text, raw, word.at) for text in joined if text or alone]


def _plain(word: Raw) -> str:
    """The text of a word that is written without quotes and variables; "" else."""
    if any(part.variable or part.quoted for part in word.parts):
        return ""
    return "".join(part.text for part in word.parts)


def _assignment(word: Raw) -> re.Match[str] | None:
    return _ASSIGN.match(_lead(word))


def _lead(word: Raw) -> str:
    """What is written in a word in front of the first quote or variable."""
    lead = ""
    for part in word.parts:
        if part.variable or part.quoted:
            break
        lead += part.text
    return lead


def _one(values: tuple[str, ...]) -> str:
    return values[0] if len(values) == 1 else UNKNOWN


def _without_name(word: Raw, count: int) -> Raw:
    parts: list[Part] = []
    for part in word.parts:
        if count > 0:
            text = part.text[count:]
            count -= len(part.text)
            if text:
                parts.append(replace(part, text=text))
        else:
            parts.append(part)
    return Raw(parts, word.at, word.end)


def _literal(text: str) -> Raw:
    """The default of a variable, variables in it put in."""
    inner = _Shell(text.strip("\"'"), {}, Dialect.SH, DEEPEST)
    return inner.word() if text and not re.search(r"[\s;|&()<>]", text) else Raw([Part(text.strip("\"'"))], 0, 0)


def _expression(text: str, variables: Values) -> tuple[str, ...]:
    """What an expression of a workflow may be: its references that are known, and the literals that it chooses from."""
    found: list[str] = []
    compared: list[str] = []
    for match in _REFERENCE.finditer(text):
        before, after = text[: match.start()].rstrip()[-2:], text[match.end() :].lstrip()[:2]
        if before in ("==", "!=") or after in ("==", "!=", "&&") or text[match.end() :].startswith("("):
            compared.append(match[0])
            continue
        found += variables.get(match[0], (UNKNOWN,))
    for match in _LITERAL.finditer(text):
        function = re.search(r"[A-Za-z]\w*\([^()]*$", text[: match.start()])
        if not (match[1] or match[3] or function):
            found.append(match[2])
    known = [value for value in found if UNKNOWN not in value]
    return limited(known if known and len(found) > 1 else found) or (UNKNOWN,)
