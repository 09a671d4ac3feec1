"""Refuses possessive quantifiers and atomic groups, which CPython before 3.11.5 matches wrongly (gh-100061, gh-106052).

usage: python3 ci/regular_expressions.py [FILE ...]

Without files, reads every string in the product's modules and data tables. ``X*`` matches the same as ``X*+`` in linear
time if the rest cannot begin with ``X``; ``a*(?:b a*)*`` the same as ``(?:a++|b)*+``. The exit code is 1 when an
expression has such a part.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("tools", "wheel_checks", "kernels_smoke")
_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_PART = re.compile(
    rf"(?P<refused>\(\?>|[*?}}]\+|(?:\\.|{_CLASS}|[^\\\[A-Za-z+])\+\+)"  # after a letter it is C++ or g++
    rf"|\\.|{_CLASS}|.",
    re.DOTALL,
)


def refused(text: str) -> str:
    """The first possessive quantifier or atomic group of an expression with its context, "" if it has none."""
    found = next((part for part in _PART.finditer(text) if part["refused"]), None)
    return text[max(0, found.start() - 20) : found.end() + 20] if found else ""


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that are not docstrings, or the lines of a table, with their line numbers."""
    if path.suffix != ".py":
        yield from enumerate(path.read_text().splitlines(), 1)
        return
    tree = ast.parse(path.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in alone:
            yield node.lineno, node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def main() -> int:
    """Print each refused expression; 1 if there are any."""
    paths = [Path(argument) for argument in sys.argv[1:]]
    for folder in () if paths else PRODUCT:
        paths += sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".toml"})
    found = [f"{path}:{line}: {part}" for path in paths for line, text in strings(path) if (part := refused(text))]
    for place in found:
        print(f"{place}: possessive quantifiers and atomic groups match wrongly before CPython 3.11.5")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
