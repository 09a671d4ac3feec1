"""The effect of ``.pth`` and ``.start`` files in site-packages on Python's ``site``: paths added, code run.

Sources: Lib/site.py of CPython 3.12 to 3.15 (addpackage), PEP 829 (``.start`` files, since 3.15).
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.formats.python_syntax import parse

MAX_SIZE = 64 * 1024
"""Bytes of a file; distutils-precedence.pth has 151."""

MAX_LINES = 1_000
"""Lines of a file; real ones have up to five."""

_LONGEST_PARSED = 4_000  # characters of a line that is parsed as Python
_PADDED = re.compile(r"\s{40,}\S")  # text that an editor shows outside its window
# Modules and functions that fetch, unpack or run code that a reviewer does not see.
_NAMES = frozenset(
    {
        "Popen", "Request", "__builtins__", "a85decode", "b32decode", "b64decode", "b85decode", "base64",
        "binascii", "builtins", "chr", "codecs", "compile", "ctypes", "decompress", "eval", "exec", "execv",
        "execve", "execvp", "fromhex", "http", "httpx", "loads", "marshal", "pickle", "popen", "requests",
        "run_path", "runpy", "socket", "spawnl", "spawnv", "subprocess", "system", "unhexlify", "urllib",
        "urllib2", "urlopen", "urlretrieve", "zlib",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StartupLine:
    """A line that has an effect, ``number`` from 1: code or an entry point that runs (``runs``), or a path.

    ``suspect`` are the names in the code that fetch, unpack or run other code.
    """

    number: int
    text: str
    runs: bool
    suspect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartupFile:
    """One file, by the name of its member in the wheel."""

    member: str
    lines: tuple[StartupLine, ...]

    @property
    def code(self) -> tuple[StartupLine, ...]:
        """The lines that Python runs whenever it starts."""
        return tuple(line for line in self.lines if line.runs)


def parse_startup_file(member: str, data: bytes) -> StartupFile:
    """The lines with an effect. Raises FormatError for a file that is too large, or has too many lines."""
    if len(data) > MAX_SIZE:
        raise FormatError(f"it has {len(data):,} bytes", expected=f"at most {MAX_SIZE:,}")
    text = data.decode("utf-8-sig", "replace")
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        raise FormatError(f"it has {len(lines):,} lines", expected=f"at most {MAX_LINES:,}")
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        runs = member.endswith(".start") or line.startswith(("import ", "import\t"))
        found.append(StartupLine(number, line.rstrip(), runs, suspect_names(line) if runs else ()))
    return StartupFile(member, tuple(found))


def suspect_names(code: str) -> tuple[str, ...]:
    """The names in one line of Python that fetch, unpack or run other code, or hide it from view."""
    hidden = ["40 spaces in a row"] if _PADDED.search(code) else []
    if len(code) > _LONGEST_PARSED:
        return (*hidden, f"{len(code):,} characters in a line")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse(code.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return tuple(hidden)  # Python reports it, and runs nothing
    names: set[str] = set()
    for node in ast.walk(tree):
        names |= _names_of(node)
    return (*hidden, *sorted(names & _NAMES))


def _names_of(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}  # getattr(os, "system"), __import__("socket")
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {(node.module or "").partition(".")[0], *(alias.name for alias in node.names)}
    return set()
