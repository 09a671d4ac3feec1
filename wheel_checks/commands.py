"""Commands as data: what a fix asks for is a vector of arguments, and one renderer quotes it for a shell.

A rule builds its commands with :func:`run`, from constant words and from values that it was given. Such a value is
always one argument, and never an option: :func:`path`, :func:`package`, :func:`requirement` and :func:`option` make
words of values, and ``operands`` come after ``--`` when they start with a dash. What cannot be passed safely becomes a
:class:`NoCommand` with the reason, so that no rule fails on a hostile name.
"""

import itertools
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from wheel_checks.decode import Policy, decode
from wheel_checks.errors import FormatError
from wheel_checks.phrases import abbreviated

CHECK_TORCH = 'import torch; print(torch.__version__, torch.ones(2, device="cuda").sum().item())'
SHOW_TORCH = "import torch; print(torch.__file__)"
IMPORT_TORCH, IMPORT_TRITON = "import torch", "import triton"
SHOW_PTXAS = 'import sysconfig; print(sysconfig.get_path("purelib") + "/nvidia/cu13/bin/ptxas")'
IMPORT_ARGUMENT = "import importlib, sys; importlib.import_module(sys.argv[1])"

CHECK_XPU = CHECK_TORCH.replace('"cuda"', '"xpu"')
PYTHON_SOURCES = {CHECK_TORCH, CHECK_XPU, SHOW_TORCH, IMPORT_TORCH, IMPORT_TRITON, SHOW_PTXAS, IMPORT_ARGUMENT, "pass"}
"""What may follow ``python -c``: constants only. A value reaches them as an argument (``sys.argv``)."""

_SHELLS = frozenset({"sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "pwsh", "tcsh", "zsh", "busybox"})
_BUILTINS = frozenset({".", "alias", "builtin", "cd", "command", "eval", "exec", "export", "set", "source", "unset"})
# Programs that start the program that follows, with those of their options that take a value as another word.
_STARTERS = {
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "nice": frozenset({"-n"}),
    "nohup": frozenset[str](),
    "sudo": frozenset({"-u", "--user", "-g", "--group"}),
    "xargs": frozenset({"-n", "-I", "-P", "-d", "-L"}),
}
_KNOW_DASHES = frozenset({"apt-get", "auditwheel", "chmod", "conda", "ln", "python", "rm", "uv", "wheelproof"})
_PYTHON = re.compile(r"(python|pypy)[0-9.t]*(\.exe)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROJECT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
# A note is in a comment behind a "#", which an interactive zsh does not take for one.
_NOTE = re.compile(r"[\w ,.:/=+@%-]*", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


class UnsafeCommandError(FormatError):
    """Something that no command may hold: a shell within a vector, a NUL, a variable that is not a name."""


@dataclass(frozen=True, slots=True)
class Command:
    """One program with its arguments, as execve takes them; ``note`` says when or why, in our own words.

    With ``folder`` it runs there. Raises UnsafeCommandError for an empty vector, a NUL or a lone surrogate, and a
    program that would read an argument as code of a shell or, unless it is of ``PYTHON_SOURCES``, of Python.
    """

    kind: ClassVar[str] = "command"
    argv: tuple[str, ...]
    note: str = ""
    folder: str = ""

    def __post_init__(self) -> None:
        _check_vector(self.argv)
        _check_texts((self.folder,))
        _check_note(self.note)


@dataclass(frozen=True, slots=True)
class Export:
    """A variable of the shell: set to ``value``, or to what the program of a vector prints."""

    kind: ClassVar[str] = "export"
    name: str
    value: str | tuple[str, ...]
    note: str = ""

    def __post_init__(self) -> None:
        _check_variable(self.name)
        if isinstance(self.value, str):
            _check_texts((self.value,))
        else:
            _check_vector(self.value)
        _check_note(self.note)


@dataclass(frozen=True, slots=True)
class Unset:
    """Variables of the shell to remove."""

    kind: ClassVar[str] = "unset"
    names: tuple[str, ...]
    note: str = ""

    def __post_init__(self) -> None:
        if not self.names:
            raise UnsafeCommandError("no variable was given")
        for name in self.names:
            _check_variable(name)
        _check_note(self.note)


@dataclass(frozen=True, slots=True)
class Pipe:
    """Programs that each read what the one before prints."""

    kind: ClassVar[str] = "pipe"
    commands: tuple[tuple[str, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        if len(self.commands) < 2:  # a pipe has two ends
            raise UnsafeCommandError("a pipe of fewer than two programs")
        for argv in self.commands:
            _check_vector(argv)
        _check_note(self.note)


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A file with these lines and no others; what was in it goes."""

    kind: ClassVar[str] = "write-file"
    path: str
    lines: tuple[str, ...]
    note: str = ""
    as_root: bool = False

    def __post_init__(self) -> None:
        _check_texts((self.path, *self.lines))
        if not self.path.startswith(("/", "./")) or any("\n" in line for line in self.lines):
            raise UnsafeCommandError("a file without a path that starts with / or ./, or two on one line")
        _check_note(self.note)


@dataclass(frozen=True, slots=True)
class Options:
    """Options to add to a command that the reader has: not a command to run, and shown as words."""

    kind: ClassVar[str] = "options"
    program: tuple[str, ...]
    options: tuple[str, ...]
    note: str = ""

    def __post_init__(self) -> None:
        _check_vector(self.program)
        _check_texts(self.options)
        _check_note(self.note)


@dataclass(frozen=True, slots=True)
class NoCommand:
    """There is no command that can be run as it is, and ``why``. The others of its fix must not be run on their own."""

    kind: ClassVar[str] = "no-command"
    why: str


Runnable: TypeAlias = Command | Export | Unset | Pipe | WriteFile
Step: TypeAlias = Runnable | Options | NoCommand
Word: TypeAlias = str | tuple[str, ...] | NoCommand


@dataclass(frozen=True, slots=True)
class _Held:
    step: Step


_WHOLE = Policy(unknown_keys=True, longest=10_000, most=1_000)  # nothing is cut: a part of a command is another command


def run(*words: Word, operands: Iterable[Word] = (), note: str = "", folder: str = "") -> Command | NoCommand:
    """The command of these words: our own, and those that :func:`path`, :func:`option` and the others made of values.

    ``operands`` are values that the program takes for names or files. When one starts with a dash, ``--`` precedes
    them; for a program that does not know it there is no command, but the reason.
    """
    argv: list[str] = []
    for word in words:
        if isinstance(word, NoCommand):
            return word
        argv += [word] if isinstance(word, str) else word
    last: list[str] = []
    for operand in operands:
        if isinstance(operand, NoCommand):
            return operand
        last += [operand] if isinstance(operand, str) else operand
    if dashed := next((operand for operand in last if operand.startswith("-")), ""):
        program = _name(argv[_program(argv)])
        if program not in _KNOW_DASHES:
            return NoCommand(f"{_shown(dashed)} starts with a dash, and {program} would take it for an option")
        last.insert(0, "--")
    try:
        return Command((*argv, *last), note, folder)
    except UnsafeCommandError as error:
        return NoCommand(error.what)


def export(name: str, value: str, note: str = "") -> Export | NoCommand:
    """The setting of a variable to a value that others chose; the reason where none exists."""
    try:
        return Export(name, value, note)
    except UnsafeCommandError as error:
        return NoCommand(error.what)


def unset(*names: str, note: str = "") -> Unset | NoCommand:
    """The removal of variables whose names others chose; the reason where none exists."""
    try:
        return Unset(names, note)
    except UnsafeCommandError as error:
        return NoCommand(error.what)


def path(text: str) -> Word:
    """A file or folder as an argument: one whose name starts with a dash is preceded by ``./``."""
    if not text:
        return NoCommand("the path is unknown")
    return f"./{text}" if text.startswith("-") else text


def member(name: str) -> Word:
    """A member of an archive, unpacked in the current folder; one that leads out of it gives no command."""
    if name.startswith("/") or ".." in name.split("/"):
        return NoCommand(f"{_shown(name)} leads out of the folder")
    return path(name)


def package(name: str, version: str = "") -> Word:
    """``name``, or ``name==version``, for an installer; only what is a name and a version, never an address."""
    if not _PROJECT.fullmatch(name):
        return NoCommand(f"{_shown(name)} is not the name of a package")
    if not version:
        return name
    from wheel_checks.parsing import version_or_none

    if version_or_none(version) is None:
        return NoCommand(f"{_shown(version)}, the version of {name}, is not one that an installer could be requested")
    return f"{name}=={version.strip()}"


def requirement(text: str) -> Word:
    """A requirement by name and version, for an installer; one that names an address gives no command."""
    from wheel_checks.parsing import requirement_or_none

    parsed = requirement_or_none(text)
    if parsed is None:
        return NoCommand(f"{_shown(text)} is not a requirement")
    if parsed.url:
        return NoCommand(f"{_shown(text)} names a URL, which only the user can choose to trust")
    return text.strip()


def option(name: str, value: str) -> Word:
    """An option with its value; ``--name=value`` in one word where the value could be taken for another option."""
    if not value.startswith("-"):
        return name, value
    if name.startswith("--"):
        return f"{name}={value}"
    return NoCommand(f"{_shown(value)} starts with a dash, and {name} cannot be given such a value")


def shell(step: Runnable) -> str:
    """The step as a POSIX shell reads it, without its note: every argument is quoted as far as it must be."""
    if isinstance(step, Command):
        text = shlex.join(step.argv)
        return f"(cd {shlex.quote(step.folder)} && {text})" if step.folder else text
    if isinstance(step, Export):
        value = shlex.quote(step.value) if isinstance(step.value, str) else f'"$({shlex.join(step.value)})"'
        return f"export {step.name}={value}"
    if isinstance(step, Unset):
        return f"unset {' '.join(step.names)}"
    if isinstance(step, Pipe):
        return " | ".join(map(shlex.join, step.commands))
    return shell(Pipe((("printf", "%s\\n", *step.lines), (*["sudo"] * step.as_root, "tee", step.path))))


def commented(step: Runnable) -> str:
    """The step for a shell, with its note as a comment at the end of the line."""
    return f"{shell(step)}  # {step.note}" if step.note else shell(step)


def decoded(value: Any) -> Step:
    """The step that a document of another program holds; a NoCommand with the reason for any other or unsafe one."""
    try:
        return decode(_Held, {"step": value}, _WHOLE).step
    except FormatError as error:
        return NoCommand(error.what)


def in_words(step: Step) -> str:
    """The step as one line for people: what can be run as :func:`commented` gives it, the rest as a sentence."""
    if isinstance(step, NoCommand):
        return f"no command: {step.why}"
    if isinstance(step, Options):
        note = f" ({step.note})" if step.note else ""
        return f"add to `{shlex.join(step.program)}`: {shlex.join(step.options)}{note}"
    return commented(step)


def _name(program: str) -> str:
    name = program.rpartition("/")[2]
    return "python" if _PYTHON.fullmatch(name) else name


def _program(argv: Iterable[str]) -> int:
    """The index of the program that is started in the end: after ``sudo``, ``env A=B`` and the like."""
    words = list(argv)
    index = 0
    while (starter := _STARTERS.get(_name(words[index]))) is not None:
        index += 1
        while index < len(words) and (words[index].startswith("-") or _ASSIGNMENT.match(words[index])):
            if words[index].startswith(("-S", "--split-string")):
                raise UnsafeCommandError("env would split an argument into words")
            index += 2 if words[index] in starter else 1
        if index >= len(words):
            raise UnsafeCommandError("a command without a program")
    return index


def _check_vector(argv: tuple[str, ...]) -> None:
    if not argv or not argv[0]:
        raise UnsafeCommandError("a command without a program")
    _check_texts(argv)
    at = _program(argv)
    program, arguments = _name(argv[at]), argv[at + 1 :]
    if program in _SHELLS or program in _BUILTINS or program.startswith("-"):
        raise UnsafeCommandError(f"{program} would run its arguments as code")
    for word, following in itertools.pairwise(argv[at:]):
        if _name(word) in _SHELLS and re.fullmatch("-[a-z]*c", following):
            raise UnsafeCommandError(f"{_name(word)} would run an argument as code")
    if program == "python":
        _check_python(arguments)


def _check_python(arguments: tuple[str, ...]) -> None:
    """Refuses code that is not a constant; what follows a script or ``-m MODULE`` is not Python's."""
    for index, word in enumerate(arguments):
        if not word.startswith("-") or word == "-m":
            return
        if word.startswith("-c") or (not word.startswith("--") and "c" in word):
            if word != "-c" or arguments[index + 1 : index + 2] not in [(source,) for source in PYTHON_SOURCES]:
                raise UnsafeCommandError("Python would run an argument as code")
            return


def _check_texts(texts: Iterable[str]) -> None:
    for text in texts:
        if "\0" in text:
            raise UnsafeCommandError("an argument cannot contain NUL")
        if _SURROGATE.search(text):
            raise UnsafeCommandError(f"{_shown(text)} is not text in UTF-8, and cannot be shown exactly")


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise UnsafeCommandError(f"{_shown(name)} is not the name of a variable")


def _check_note(note: str) -> None:
    if not _NOTE.fullmatch(note):
        raise UnsafeCommandError("a note of a command contains more than plain words")


def _shown(text: str) -> str:
    return ascii(abbreviated(text))
