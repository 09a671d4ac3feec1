"""Parses Python source, one text at a time.

CPython 3.11 and 3.12.0 count the depth of all threads that parse in one place: two at once end in "SystemError: AST
constructor recursion depth mismatch" (gh-106905), and wheels are read by several threads.
"""

from __future__ import annotations

import ast
import threading

_LOCK = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """The syntax tree of a module. Raises what :func:`ast.parse` raises, such as SyntaxError and RecursionError."""
    with _LOCK:
        return ast.parse(source)
