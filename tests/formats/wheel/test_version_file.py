"""``version.py``, which is never executed."""

from __future__ import annotations

import ast
import sys

import pytest

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.version_file import MAX_SIZE, parse_version_file

TORCH = b"""\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.11.0+cu130'
debug = False
cuda: Optional[str] = '13.0'
hip: Optional[str] = None
"""


def values(data: bytes) -> dict[str, object]:
    return dict(parse_version_file("demo/version.py", data).values)


def test_torch() -> None:
    assert values(TORCH) == {"__version__": "2.11.0+cu130", "debug": False, "cuda": "13.0", "hip": None}


def test_a_parser_that_miscounts_once_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, parse = [], ast.parse

    def miscounts_once(data: bytes) -> ast.Module:
        calls.append(data)
        if len(calls) == 1:
            raise SystemError("AST constructor recursion depth mismatch (before=75, after=73)")
        return parse(data)

    monkeypatch.setattr(ast, "parse", miscounts_once)
    assert values(TORCH)["cuda"] == "13.0"
    assert calls == [TORCH, TORCH]


def test_only_plain_literals_at_the_top_level_count() -> None:
    text = (
        b"a = b = '1'\nc = f()\nd.e = '2'\nf: str\ng = b'x'\nh, i = 1, 2\nif True:\n    j = 3\nk = 1.5\nl = 2\nl = 3\n"
    )
    assert values(text) == {"a": "1", "b": "1", "k": 1.5, "l": 3}


def test_nothing_is_executed() -> None:
    assert values(b"raise SystemExit\n__version__ = '1'\n") == {"__version__": "1"}


def test_values_that_json_cannot_hold_are_left_out() -> None:
    huge = b"a = 0x" + b"f" * 100 + b"\nb = 1e999\nc = '\\ud800'\nd = '" + b"x" * 2000 + b"'\ne = 1j\nf = ...\ng = 1\n"
    assert values(huge) == {"g": 1}


def test_a_stray_backslash_is_not_our_business() -> None:
    # The parser warns, and warnings are errors in these tests.
    assert values(b"a = '\\d'\n") == {"a": "\\d"}


@pytest.mark.parametrize("data", [b"a = " + b"1+" * 10_000 + b"1", b"a = b" + b".c" * 10_000])
def test_what_only_newer_pythons_can_parse_is_no_value_or_one_sentence(data: bytes) -> None:
    if sys.version_info >= (3, 14):
        assert values(data) == {}
    else:
        with pytest.raises(FormatError, match=r"^demo/version\.py cannot be parsed as Python \(.+\); expected plain"):
            values(data)


@pytest.mark.parametrize(
    "data",
    [
        b"__version__ = ",
        b"a = '\0'",
        b"\xff\xfe",
        b"# coding: klingon\n",
        b"a = " + b"9" * 5000,
        b"a = " + b"(" * 90 + b"1",
        b"a = " + b"-" * 20_000 + b"1",
        b"lambda:" * 4_000,
        b"<!DOCTYPE html>",
    ],
)
def test_what_python_cannot_parse_is_one_sentence(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"^demo/version\.py cannot be parsed as Python \(.+\); expected plain"):
        values(data)


def test_a_large_file_is_refused() -> None:
    with pytest.raises(FormatError, match=r"demo/version\.py has 32769 bytes; expected at most 32768"):
        values(b" " * (MAX_SIZE + 1))
