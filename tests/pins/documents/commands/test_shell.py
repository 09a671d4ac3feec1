"""Scripts of a shell: which words a command gets."""

from __future__ import annotations

import pytest

from wheelproof.pins.documents.commands.lexer import UNKNOWN, Dialect
from wheelproof.pins.documents.commands.shell import commands


def words(text: str, dialect: Dialect = Dialect.SH) -> list[list[str]]:
    return [[word.text for word in command.words] for command in commands(text, dialect=dialect)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b \\\n  c\n", [["a", "b", "c"]]),
        ("# a comment that continues \\\nb\n", [["b"]]),
        ("a # b \\\nc\n", [["a"], ["c"]]),
        ("a '#b' \"c d\" e#f\n", [["a", "#b", "c d", "e#f"]]),
        ("a && b || c; d | e & f\n", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("if a; then b; else c; fi\n", [["a"], ["b"], ["c"]]),
        ("a >x 2>&1 </dev/null b\n", [["a", "b"]]),
        ("a torch>=2.7\n", [["a", "torch"]]),  # the shell writes a file called =2.7
        ("X=1\na $X ${X} \"$X\" '$X'\n", [["a", "1", "1", "1", "$X"]]),
        ("X='b c'\na $X \"$X\"\n", [["a", "b", "c", "b c"]]),
        ("a ${X:-b} ${Y}\n", [["a", "b", UNKNOWN]]),
        ("a ${1:-b} $2 $@\n", [["a", "b", UNKNOWN, UNKNOWN]]),
        ("X=1\nX=2\na $X\n", [["a", "2"], ["a", "1"]]),
        ("for x in b c; do a $x; done\n", [["a", "b"], ["a", "c"]]),
        ('X=(b "c d")\nX+=(e)\na "${X[@]}"\n', [["a", "b", "c", "d", "e"], ["a", "b", "c", "d"]]),
        ("X=1 a b\n", [["a", "b"]]),
        ("export X=1 Y=2\na $X$Y\n", [["a", "12"]]),
        ("a $(b c) `d`\n", [["b", "c"], ["d"], ["a", UNKNOWN, UNKNOWN]]),
        ("cat <<EOF\nb\nEOF\nc\n", [["cat"], ["c"]]),
    ],
)
def test_words(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


def test_words_stand_where_they_say() -> None:
    text = "x=1\nfoo  'b ar' \\\n  \"$x\"\n"
    (command,) = commands(text)
    assert [(text[w.at :][: len(w.raw)], w.raw) for w in command.words] == [(w.raw, w.raw) for w in command.words]
    assert [w.raw for w in command.words] == ["foo", "'b ar'", '"$x"']


def test_dialects() -> None:
    assert words("a b ^\r\n c %X%\r\n", Dialect.CMD) == [["a", "b", "c", UNKNOWN]]
    assert words("a b `\n c\n", Dialect.POWERSHELL) == [["a", "b", "c"]]
    assert words("a torch >= 2 <name>\n", Dialect.SHOWN) == [["a", "torch", ">=", "2", UNKNOWN]]
    assert words("a b>=2 && c\n", Dialect.WORDS) == [["a", "b>=2", "&&", "c"]]
