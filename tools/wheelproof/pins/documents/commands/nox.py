"""noxfile.py: what sessions install, as far as it is written; nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheelproof.pins.documents.commands.document import Found, document, of_command
from wheelproof.pins.documents.commands.lexer import UNKNOWN
from wheelproof.pins.documents.commands.shell import Command, Word
from wheelproof.pins.documents.python_names import Literals, parse
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document

_VERBS = {
    "install": ("pip", "install"),
    "conda_install": ("conda", "install"),
    "run": (),
    "run_always": (),
    "run_install": (),
}


def read(source: Source) -> Document:
    """The installations of the sessions. Raises FormatError, with the line, when it does not parse."""
    return document(source, "nox", _found(source))


def _found(source: Source) -> Iterator[Found]:
    tree = parse(source, source.text)
    literals = Literals(source, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VERBS:
            at = literals.offset(node.lineno, node.col_offset)
            words = [Word(text, text, at) for text in _VERBS[node.func.attr]]
            words += [word for argument in node.args for word in _words(literals, argument)]
            yield from of_command(Command(tuple(words), at))


def _words(literals: Literals, node: ast.expr) -> Iterator[Word]:
    """The words that an argument is: a text, a list that is starred, a name of one; else one that is unknown."""
    at = literals.offset(node.lineno, node.col_offset)
    raw = " ".join(ast.unparse(node).split())
    value = literals.value(node)
    if isinstance(value, ast.Starred):
        inner = literals.value(value.value)
        if isinstance(inner, (ast.List, ast.Tuple)):
            for element in inner.elts:
                yield from _words(literals, element)
            return
        yield Word(UNKNOWN, raw, at)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield Word(value.value, raw, at)
    elif isinstance(value, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else UNKNOWN for v in value.values]
        yield Word("".join(parts), raw, at)
    else:
        yield Word(UNKNOWN, raw, at)
