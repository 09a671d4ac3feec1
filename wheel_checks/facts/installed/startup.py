"""What an environment runs when its Python starts, and the programs by which things are installed into it."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.security.known import program_owners
from wheel_checks.formats.native_signature import native_kind
from wheel_checks.formats.wheel.startup_file import MAX_SIZE, StartupFile, parse_startup_file
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.file_tree import FileTree

MOST_FILES = 100
"""Start-up files of one environment that are read."""

_LARGEST_SCRIPT = 64 * 1024  # bytes; those that installers write have 300
_CUSTOM = re.compile(r"(?:sitecustomize|usercustomize)(?:\.[^/]+)?")
_OF_ENVIRONMENT = re.compile(r"activate(?:[._].*)?|deactivate(?:\..*)?")  # which venv, virtualenv and uv write
_IMPORT = re.compile(r"from (?P<module>[\w.]+) import (?P<name>\w+)")
_CALL = re.compile(r"    (?:sys\.exit|raise SystemExit)\((?P<name>\w+)\(\)\)")
_PYTHON = r"python[\d.]*t?"
_WRITTEN = (  # the other lines of what pip, distlib and uv write for an entry point
    r"",
    rf"#!(?:\S*/{_PYTHON}|/bin/sh|/usr/bin/env {_PYTHON})",
    rf"'''exec' (?:\"[^\"$`]*/{_PYTHON}\"|[^\s;&|$`\"]*/{_PYTHON}) \"\$0\" \"\$@\"",  # a shebang would be too long
    rf"'''exec' \"\$\(dirname -- \"\$\(realpath -- \"\$0\"\)\"\)\"/'{_PYTHON}' \"\$0\" \"\$@\"",  # uv, relocatable
    r"' '''",
    r"# -\*- coding: utf-8 -\*-",
    r"import (?:re|sys)",
    r"if __name__ == ['\"]__main__['\"]:",
    r"    sys\.argv\[0\] = re\.sub\(r?['\"]\(-script\\?\.pyw\??\|\\?\.exe\)\?\$['\"], ['\"]{2}, sys\.argv\[0\]\)",
    r"    sys\.argv\[0\] = sys\.argv\[0\]\.removesuffix\(['\"]\.exe['\"]\)",
    r"    (?:el)?if sys\.argv\[0\]\.endswith\(['\"](?:-script\.pyw|\.exe)['\"]\):",
    r"        sys\.argv\[0\] = sys\.argv\[0\]\[:-(?:11|4)\]",
)
_OTHER_LINES = re.compile("|".join(_WRITTEN))


@dataclass(frozen=True, slots=True)
class Program:
    """A program that people and tools start by its name. ``native`` is "ELF", "PE", "Mach-O" or "" for a script.

    ``module`` is what a script imports and calls, and nothing else, as installers write it for an entry point; "" for
    any other script.
    """

    path: str
    kind: str
    projects: tuple[str, ...]
    native: str
    module: str


@dataclass(frozen=True, slots=True)
class EnvironmentStartup:
    """``files`` are the ``.pth`` and ``.start`` files, by absolute paths, ``unread`` those that were not read, with the
    reason. ``customize`` are modules that ``site`` imports by name; ``programs`` are those of a virtual environment.
    """

    files: tuple[StartupFile, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    customize: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()


def read_startup(environment: Environment) -> EnvironmentStartup:
    """What the folders of imports and the folder of programs have. Raises SourceError for a folder without access."""
    paths = [(entry.path, name) for entry in environment.entries for name in entry.names]
    customize = tuple(f"{folder}/{name}" for folder, name in paths if _CUSTOM.fullmatch(name))
    named = [f"{folder}/{name}" for folder, name in paths if name.endswith((".pth", ".start"))]
    files: list[StartupFile] = []
    unread = [(path, f"at most {MOST_FILES} files are read") for path in named[MOST_FILES:]]
    for path in named[:MOST_FILES]:
        try:
            files.append(parse_startup_file(path, environment.tree.read(path, MAX_SIZE) or b""))
        except (FormatError, SourceError) as error:
            unread.append((path, str(error)))
    return EnvironmentStartup(tuple(files), tuple(unread), customize, tuple(_programs(environment)))


def _programs(environment: Environment) -> Iterator[Program]:
    """Interpreters, installers, shells and programs of the system in a virtual environment."""
    if environment.kind != "venv":
        return
    folder = f"{environment.path}/bin"
    for name in environment.tree.names(folder):
        known = program_owners(name)
        if known is None or known[1] == "tool" or _OF_ENVIRONMENT.fullmatch(name):
            continue
        data = _start(environment.tree, f"{folder}/{name}")
        if data is not None:
            native = native_kind(data)
            yield Program(posixpath.join(folder, name), known[1], known[2], native, called_module(data))


def _start(tree: FileTree, path: str) -> bytes | None:
    try:
        return tree.read(path, _LARGEST_SCRIPT)
    except SourceError:
        return b""


def called_module(script: bytes) -> str:
    """The module whose function a script calls, where it does nothing else; "" for any other script."""
    if len(script) > _LARGEST_SCRIPT:
        return ""
    lines = [line.rstrip() for line in script.decode("utf-8", "replace").splitlines()]
    imported = [found for line in lines if (found := _IMPORT.fullmatch(line))]
    called = [found for line in lines if (found := _CALL.fullmatch(line))]
    others = sum(_OTHER_LINES.fullmatch(line) is not None for line in lines)
    if len(imported) != 1 or len(called) != 1 or others + 2 != len(lines) or imported[0]["name"] != called[0]["name"]:
        return ""
    return imported[0]["module"]
