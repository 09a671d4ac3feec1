"""A TOML document read key by key: faults have the key, the line, and what was expected."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.toml_table import LARGEST, LONGEST, TomlTable, read_toml

DOCUMENT = """\
name = "demo"
many = ["a", "b"]
open = true
bound = 1.5
until = 2027-06-30

[[row]]
key = "first"

[[row]]
key = "second"
mixed = ["3.12", { python = "3.13t", versions = ">=2" }]

[table]
"a key" = "x"
"""


READ: dict[str, Callable[[TomlTable, str], Any]] = {
    "text": lambda table, key: table.text(key),
    "texts": lambda table, key: table.texts(key),
    "flag": lambda table, key: table.flag(key, default=False),
    "ratio": lambda table, key: table.ratio(key),
    "day": lambda table, key: table.day(key),
    "tables": lambda table, key: table.tables(key),
    "rows": lambda table, key: table.rows(key, "python"),
}


def faults(text: str, *reads: tuple[str, str]) -> str:
    """What is said of a document after these keys were read as these kinds."""
    table = read_toml(text, "file.toml")
    for kind, key in reads:
        READ[kind](table, key)
    with pytest.raises(FormatError) as caught:
        table.finish("file.toml")
    return caught.value.what


def test_every_kind_of_value() -> None:
    document = read_toml(DOCUMENT, "file.toml")

    assert document.text("name") == "demo"
    assert document.texts("many") == ("a", "b")
    assert document.flag("open", default=False) is True
    assert document.ratio("bound") == 1.5
    assert document.day("until") == date(2027, 6, 30)
    assert [row.text("key") for row in document.tables("row")] == ["first", "second"]
    mixed = document.tables("row")[1].rows("mixed", "python")
    assert [(row.text("python"), row.text("versions")) for row in mixed] == [("3.12", ""), ("3.13t", ">=2")]
    assert list(document.table("table")) == ["a key"]


def test_what_is_absent_has_the_default() -> None:
    document = read_toml("", "file.toml")

    assert document.text("a", "x") == "x"
    assert document.texts("b", ("y",)) == ("y",)
    assert document.flag("c", default=True) is True
    assert document.ratio("d") is None
    assert document.tables("e") == []
    assert document.parsed("f", int, 7) == 7
    document.finish("file.toml")


@pytest.mark.parametrize(
    ("text", "reads", "said"),
    [
        ("name = 1", [("text", "name")], "file.toml: name (line 1) is 1; expected a string"),
        ("\nmany = 'a'", [("texts", "many")], "file.toml: many (line 2) is 'a'; expected a list of strings"),
        ("many = [1]", [("texts", "many")], "many (line 1) holds something else than strings"),
        ("open = 'yes'", [("flag", "open")], "open (line 1) is 'yes'; expected true or false"),
        ("bound = 0.5", [("ratio", "bound")], "bound (line 1) is 0.5; expected a number of at least 1, such as 1.2"),
        ("bound = nan", [("ratio", "bound")], "bound (line 1) is nan"),
        ("bound = true", [("ratio", "bound")], "bound (line 1) is True"),
        ("", [("day", "until")], "until is missing; expected a date such as 2027-06-30, unquoted"),
        ("until = '2027-06-30'", [("day", "until")], "until (line 1) is '2027-06-30'; expected a date"),
        ("row = 1", [("tables", "row")], "row (line 1) is 1; expected tables, each headed [[row]]"),
        ("row = [1]", [("tables", "row")], "row (line 1) holds something else than tables"),
        ("rows = [1]", [("rows", "rows")], "rows (line 1) holds something else than strings and tables"),
        ("nam = 1", [("text", "name")], "nam (line 1) is no key that is known here; expected name"),
        (f"name = '{'x' * (LONGEST + 1)}'", [("text", "name")], "name (line 1) has 1,001 characters"),
    ],
)
def test_what_is_wrong(text: str, reads: list[tuple[str, str]], said: str) -> None:
    assert said in faults(text, *reads)


def test_all_faults_are_told_at_once() -> None:
    said = faults("b = 1\na = 2", ("text", "b"), ("text", "a"))

    assert said == "file.toml: 2 faults: b (line 1) is 1; expected a string; a (line 2) is 2; expected a string"


def test_the_line_is_that_of_the_key_in_its_own_table() -> None:
    document = read_toml(DOCUMENT, "file.toml")
    row = document.tables("row")[1]
    row.fault("key", "is wrong")
    row.fault("absent", "is missing")
    row.rows("mixed", "python")[1].fault("versions", "is wrong")
    document.table("table").fault("a key", "is wrong")

    with pytest.raises(FormatError) as caught:
        document.finish("file.toml")

    told = caught.value.what.split("; ")
    assert told[0].endswith("row 2, key (line 11) is wrong")
    assert told[1:4] == [
        "row 2, absent (line 10) is missing",
        "row 2, mixed 2, versions (line 12) is wrong",
        "table, a key (line 15) is wrong",
    ]


def test_an_error_of_a_parser_is_a_fault() -> None:
    def parse(text: str) -> int:
        raise UsageError(f"{text!r} is nothing", expected="something")

    document = read_toml("a = 'x'", "file.toml")

    assert document.parsed("a", parse, 7) == 7
    with pytest.raises(FormatError, match=r"a \(line 1\) is wrong: 'x' is nothing; expected something"):
        document.finish("file.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "file.toml is not valid TOML: Invalid value (at line 1, column 5)"),
        ("a = " + "[" * 100_000, "file.toml is not valid TOML"),
        ("#" * (LARGEST + 1), "file.toml has 1,048,577 characters"),
    ],
    ids=["no value", "deep", "large"],
)
def test_what_is_no_document(text: str, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_toml(text, "file.toml")

    assert caught.value.what.startswith(said)


@settings(max_examples=200)
@given(st.text(st.sampled_from("[]{}=.,\"'#\n ab1-"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(FormatError):
        document = read_toml(text, "file.toml")
        assert isinstance(document.text("a"), str)
        assert all(isinstance(table, TomlTable) for table in (*document.tables("b"), document.table("ab")))
        document.finish("file.toml")
