"""What is in front of a command of an installer: assignments, sudo, env, and programs that run another."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wheelproof.pins.documents.commands.installs import HAS_INSTALL, SAYING

_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[0-9.]*t?")
_PIP = re.compile(r"(?:.*/)?pip[0-9.]*")
_PROGRAMS = re.compile(r"(?:.*/)?(?:uv|uvx|pipx|poetry|pdm|conda|mamba|micromamba)")
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=")
_CHANGING = frozenset(["install", "uninstall", "sync", "add", "remove", "run", "update", "upgrade", "create", "pip"])
_OF_VENV = frozenset(["venv", "virtualenv"])

_PASSING = frozenset(["command", "exec", "time", "nohup", "!", "builtin", "then", "do"])  # what follows runs as it is
_SUDO_FLAGS = frozenset(["-E", "-H", "-n", "-S", "-k", "-b", "--preserve-env", "--set-home", "--non-interactive"])
_PYTHON_FLAGS = frozenset(["-u", "-B", "-O", "-OO", "-q", "-v", "-b", "-d"])  # without effect on what pip sees
_PYTHON_WITH_VALUE = frozenset(["-W", "-X"])
# Variables by which an installer works on another environment than the one that is asked about.
_PLACES = frozenset(
    [
        *("VIRTUAL_ENV", "UV_PYTHON", "UV_PROJECT_ENVIRONMENT", "UV_SYSTEM_PYTHON", "UV_PROJECT", "PIP_PYTHON"),
        *("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE"),
    ]
)


@dataclass(frozen=True, slots=True)
class Front:
    """A command without what is in front of it.

    ``variables`` are those that are set only for it; ``by_sudo`` says that sudo looks for its program; ``unread`` is
    why what is there is not understood, "" when it is.
    """

    words: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    by_sudo: bool = False
    unread: str = ""


def behind_front(words: Sequence[str]) -> Front:
    """The command behind assignments, sudo, env, nice, timeout and the like."""
    rest, variables, by_sudo, unread = list(words), dict[str, str](), False, ""
    while rest:
        word = rest[0]
        if match := _VARIABLE.match(word):
            variables[match[1]] = word[match.end() :]
            rest = rest[1:]
        elif word in _PASSING:
            rest = rest[1:]
        elif word in ("sudo", "env", "nice", "timeout"):
            rest, obstacle = _behind_program(word, rest[1:])
            by_sudo, unread = by_sudo or word == "sudo", unread or obstacle
        else:
            break
    return Front(rest, variables, by_sudo, unread or why_another_place(variables))


def why_another_place(variables: Iterable[str]) -> str:
    """Why variables make an installer work on another environment; "" when they do not."""
    named = next((name for name in variables if name in _PLACES), "")
    return f"{named} makes it work on another environment: predict that one (--python)" if named else ""


def _behind_program(program: str, words: list[str]) -> tuple[list[str], str]:
    """The words after the options of sudo, env, nice or timeout, and which of them is not understood."""
    unread = ""
    while words and words[0].startswith("-"):
        option, words = words[0], words[1:]
        if program == "sudo" and option not in _SUDO_FLAGS and not option.startswith("--preserve-env="):
            unread = unread or f"sudo {option} runs it as another user, or elsewhere"
            words = words[1:] if option in ("-u", "-g", "-h", "-p", "-C", "-r", "-t", "-D", "-R", "-T") else words
        elif program == "env":
            unread = unread or f"env {option} removes variables from its environment"
            words = words[1:] if option in ("-u", "-C", "-S") else words
        elif program in ("nice", "timeout") and option in ("-n", "-k", "-s"):
            words = words[1:]
    return (words[1:] if program == "timeout" else words), unread


def behind_python(words: Sequence[str]) -> tuple[list[str], str] | None:
    """Behind ``python -m``: the module and its words, and which option of Python changes what it sees; None without."""
    if not words or not _PYTHON.fullmatch(words[0]):
        return None
    rest, unread = list(words[1:]), ""
    while rest and rest[0].startswith("-"):
        option, rest = rest[0], rest[1:]
        if option == "-m":
            return rest, unread
        if not option.startswith("--") and option.endswith("m"):  # -Im pip
            return rest, unread or f"its option {option} of Python changes what pip sees"
        if option in _PYTHON_WITH_VALUE:
            rest = rest[1:]
        elif option[:2] not in _PYTHON_WITH_VALUE and option not in _PYTHON_FLAGS:
            unread = unread or f"its option {option} of Python changes what pip sees"
    return None


def is_command(words: Sequence[str]) -> bool:
    """Whether words, with what may be in front, are a command of an installer."""
    return _begins(behind_front(words).words)


def _begins(words: Sequence[str]) -> bool:
    module = behind_python(words)
    named = module[0][:1] in (["pip"], ["uv"]) if module is not None else False
    return bool(words) and bool(named or _PIP.fullmatch(words[0]) or _PROGRAMS.fullmatch(words[0]))


def why_opaque(words: Sequence[str]) -> str:
    """Why a command of no installer may change an environment anyway; "" when it does not seem to.

    A program that is handed an installer with its words (xargs, docker run, retry) runs it in a way that is not
    followed; ``setup.py install`` and ``venv --clear`` change an environment by themselves.
    """
    rest = behind_front(words).words
    if not rest or rest[0].rpartition("/")[2] in SAYING:
        return ""
    module = behind_python(rest)
    venv = module[0] if module is not None else rest
    if venv and venv[0].rpartition("/")[2] in _OF_VENV and "--clear" in venv:
        return "it empties an environment"
    if any(word.endswith("setup.py") for word in rest) and {"install", "develop"} & set(rest):
        return "setup.py builds and installs: what it installs is only known by running it"
    if script := next((word for word in rest[1:] if " " in word and HAS_INSTALL.search(word.replace("\n", " "))), ""):
        return f"{rest[0]} runs {script[:60]!r} in an unsupported way"
    inner = next((tail for tail in _tails(rest) if _changes(tail)), None)
    return "" if inner is None else f"{rest[0]} runs `{' '.join(inner[:3])} ...` in an unsupported way"


def _tails(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(1, len(words)):
        yield words[at:]


def _changes(words: Sequence[str]) -> bool:
    """Whether words are a command of an installer with a verb that changes something."""
    if not _begins(words):
        return False
    module = behind_python(words)
    rest = (module[0] if module is not None else list(words))[1:]
    verb = next((word for word in rest if not word.startswith("-")), "")
    return verb in _CHANGING


def is_pip(word: str) -> bool:
    """Whether a word names pip."""
    return _PIP.fullmatch(word) is not None
