"""``*/version.py`` as text: the assignments of plain literals. The file is parsed, never executed."""

from __future__ import annotations

import ast
import math
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from wheel_checks.errors import FormatError
from wheel_checks.formats.python_syntax import parse

# The parser takes quadratic time for some inputs (a dotted import of 200 KB: half a minute). Real ones are below 25 KB.
MAX_SIZE = 32 * 1024
_MAX_TEXT = 1_000
_WARNING_FILTERS = threading.Lock()

Literal = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class VersionFile:
    """Top-level assignments of a string, number, bool or None, by name.

    torch has ``__version__``, ``cuda``, ``hip``, ``xpu``. Of two assignments of a name the last counts.
    """

    member: str
    values: Mapping[str, Literal]


def parse_version_file(member: str, data: bytes) -> VersionFile:
    """The literals that the module ``member`` assigns to names at its top level, annotated or not.

    Texts of more than 1,000 characters and numbers that JSON cannot represent are omitted. Raises FormatError when the
    file is larger than ``MAX_SIZE``, or not Python as the running Python reads it.
    """
    if len(data) > MAX_SIZE:
        raise FormatError(f"{member} has {len(data)} bytes", expected=f"at most {MAX_SIZE}")
    try:
        # Warnings of the parser (a stray backslash) are not printed. The filters are global to the process.
        with _WARNING_FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deeply"
        raise FormatError(f"{member} cannot be parsed as Python ({reason})", expected="plain assignments") from None
    return VersionFile(member, dict(_assignments(tree)))


def _parse(data: bytes) -> ast.Module:
    try:
        return parse(data)
    except SystemError:  # "AST constructor recursion depth mismatch", by chance next to threads: python/cpython#106905
        return parse(data)


def _assignments(tree: ast.Module) -> Iterator[tuple[str, Literal]]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        if isinstance(statement.value, ast.Constant) and _is_plain(value := statement.value.value):
            yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))


def _is_plain(value: object) -> TypeGuard[Literal]:
    if isinstance(value, str):
        return len(value) <= _MAX_TEXT and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) < 2**63)
