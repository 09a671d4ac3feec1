"""Python source is parsed by several threads without a crash of the parser."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from wheel_checks.formats.python_syntax import parse

FUNCTIONS = "".join(f"def f{n}(x): return [x for x in (x, {n})]\n" for n in range(200))
DEEP = "a = " + "(" * 60 + "1" + ")" * 60 + "\n" + FUNCTIONS


def test_threads_parse_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(parse, [DEEP] * 40))
    assert {ast.dump(tree) for tree in trees} == {ast.dump(ast.parse(DEEP))}


def test_errors_are_those_of_the_parser() -> None:
    with pytest.raises(SyntaxError):
        parse(b"a = (")
