"""The words of the project are counted where people read them, and not in code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci import plain_english
from ci.plain_english import most, prose


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("told = 1  # nobody is told\n", ["nobody", "told"]),
        ('def tell() -> None:\n    """Tells\n    anew."""\n', ["Tells", "anew"]),
        ('print(f"{told}, beside {told:>3}")\n', ["beside"]),
        ("beside = told\n", []),
    ],
)
def test_strings_and_comments_are_read_and_code_is_not(source: str, seen: list[str]) -> None:
    text = " ".join(line for _, line, _ in prose(source))
    assert re.findall(r"nobody|told|Tells|anew|beside", text) == seen


def test_a_line_has_its_number() -> None:
    assert [number for number, _, _ in prose('a = 1\n"""b\nc"""\n')] == [2, 3]


def test_docstrings_and_comments_are_known_from_other_strings() -> None:
    source = '"""Of a module."""\n\n\ndef f() -> None:\n    """Of a function."""\n    g("text")  # a comment\n'
    assert [line for _, line, explained in prose(source) if not explained] == ['"text"']
    assert len(list(prose(source))) == 4


def test_a_word_that_the_packages_never_have_may_be_rare() -> None:
    assert 0 < most(0) < most(1) == 3


def test_names_with_such_words_are_found_where_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.py").write_text("def f(told: int) -> None:\n    SAID_TWICE = told\n    kept_asked = 1\n")
    monkeypatch.setattr(plain_english, "ROOT", tmp_path)
    found = list(plain_english.identifiers(frozenset({"told", "said", "asked"}), {"kept_asked": "a field"}))
    assert found == ["tools/a.py:1: told", "tools/a.py:2: SAID_TWICE"]
