"""Documents are parsed within bounds; a fault in a user's document has the line of its key."""

from __future__ import annotations

import contextlib
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheel_checks.decode import DecodeError, Fault, Filled, Made
from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.documents import LARGEST, LONGEST, Ratio, parse_json, parse_toml, read_toml

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

# The error of Python's own JSON reader: since 3.14 by the stack that is used.
TOO_DEEP = "Stack overflow" if sys.version_info >= (3, 14) else "maximum recursion depth exceeded"


def _refused(text: str) -> str:
    raise UsageError(f"{text!r} is nothing", expected="something")


@dataclass(frozen=True, slots=True)
class Version:
    python: str
    versions: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    key: str = ""
    mixed: tuple[str | Version, ...] = ()


@dataclass(frozen=True, slots=True)
class File:
    name: Filled = "none"
    many: tuple[str, ...] = ()
    open: bool = False
    bound: Ratio | None = None
    until: date = date.max
    row: tuple[Row, ...] = ()
    table: Mapping[str, str] = ()  # type: ignore[assignment]  # never missing where it is inspected
    wrong: Annotated[str, Made(_refused)] = ""


def read(text: str) -> File:
    return read_toml(text.encode(), "file.toml", File, lambda file: file)


def test_every_kind_of_value() -> None:
    file = read(DOCUMENT)

    assert (file.name, file.many, file.open, file.bound) == ("demo", ("a", "b"), True, 1.5)
    assert (file.until, file.table) == (date(2027, 6, 30), {"a key": "x"})
    assert file.row == (Row("first"), Row("second", ("3.12", Version("3.13t", ">=2"))))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = 1", "file.toml: name (line 1) is 1; expected a string"),
        ("name = ''", "file.toml: name (line 1) is ''; expected a string that is not empty"),
        ("\nmany = 'a'", "file.toml: many (line 2) is 'a'; expected a list of strings"),
        ("many = ['a', 1]", "file.toml: many[1] (line 1) is 1; expected a string"),
        ("open = 'yes'", "file.toml: open (line 1) is 'yes'; expected true or false"),
        ("bound = 0.5", "file.toml: bound (line 1) is 0.5; expected a number of at least 1, such as 1.2"),
        ("bound = nan", "file.toml: bound (line 1) is nan; expected a number of at least 1"),
        ("bound = true", "file.toml: bound (line 1) is true; expected a number"),
        ("bound = 0x" + "f" * 9999, "file.toml: bound (line 1) is a number with many digits; expected a number"),
        ("until = '2027-06-30'", "file.toml: until (line 1) is '2027-06-30'; expected a date such as 2027-06-30"),
        ("until = 2027-06-30 09:00:00", "file.toml: until (line 1) is 2027-06-30 09:00:00; expected a date"),
        ("row = 1", "file.toml: row (line 1) is 1; expected a list of tables"),
        ("row = [1]", "file.toml: row[0] (line 1) is 1; expected a table"),
        ("row = [{ mixed = [1] }]", "file.toml: row[0].mixed[0] (line 1) is 1; expected a string or a table"),
        ("row = [{ mixed = [{}] }]", "file.toml: row[0].mixed[0].python (line 1) is missing; expected a string"),
        ("nam = 1", "file.toml: nam (line 1) is not a known key; expected name"),
        ("wrong = 'x'", "file.toml: wrong (line 1) is wrong: 'x' is nothing; expected something"),
        (f"name = '{'x' * (LONGEST + 1)}'", "file.toml: name (line 1) has 1,001 characters; expected at most 1,000"),
        ("open = 1\nmany = 2", "file.toml: 2 faults: many (line 2) is 2; expected a list of strings; open (line 1) is"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(text)

    assert str(caught.value).startswith(said)


def test_the_line_is_that_of_the_key_in_its_own_table() -> None:
    paths = [("row", 1, "key"), ("row", 1, "absent"), ("row", 1, "mixed", 1, "versions"), ("table", "a key")]

    def refuse(_file: File) -> None:
        raise DecodeError(Fault(path, "is wrong") for path in paths)

    with pytest.raises(FormatError) as caught:
        read_toml(DOCUMENT.encode(), "file.toml", File, refuse)

    assert str(caught.value).split("; ") == [
        "file.toml: 4 faults: row[1].key (line 11) is wrong",
        "row[1].absent (line 10) is wrong",
        "row[1].mixed[1].versions (line 12) is wrong",
        "table.'a key' (line 15) is wrong",
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a = \n", "file.toml is not valid TOML: Invalid value (at line 1, column 5)"),
        (b"a = " + b"[" * 100_000, "file.toml is not valid TOML: maximum recursion depth exceeded"),
        (b"a = 1\n# caf\xe9", "file.toml is not valid TOML: it is not UTF-8 (line 2)"),
        (b"#" * (LARGEST + 1), "file.toml has more than 1,048,576 bytes"),
        (b"x = 1\na" + b".a" * 50_000 + b" = 1", "file.toml is not valid TOML: a key has more than 32 parts (line 2)"),
        (b"[a" + b' . "b"' * 40 + b"]", "file.toml is not valid TOML: a key has more than 32 parts (line 1)"),
        (b"a.a.a.a.a.a.a.a.a.a.b\n" * 10_001, "file.toml is not valid TOML: a key has too many parts"),
        (b'"\\"".' * 40 + b"a = 1", "file.toml is not valid TOML: a key has more than 32 parts (line 1)"),
        (b"x = {'\"'" + b".'\"'" * 40 + b" = 1}", "file.toml is not valid TOML: a key has more than 32 parts (line 1)"),
        (
            b"x = ''' # \"\"\"\n'''\ny = 'a.a.a.a.a.a.a.a.a.a.a.\"'\n[a" + b'.""' * 40 + b"]",
            "file.toml is not valid TOML: a key has more than 32 parts (line 4)",
        ),
    ],
    ids=[
        *("no value", "deep", "latin", "large", "long key", "long header", "many long keys"),
        *("escaped quotes", "other quotes", "after strings"),
    ],
)
def test_what_is_no_document(data: bytes, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_toml(data, "file.toml", LARGEST)

    assert caught.value.what.startswith(said)


def test_keys_and_texts_with_some_dots_are_read() -> None:
    key, text = ".".join("abcdefghij" * 3), "1." * 30 + "whl"

    assert parse_toml(f"{key} = '{text}'".encode(), "file.toml", LARGEST).keys() == {"a"}


def test_dots_in_strings_and_comments_are_in_no_key() -> None:
    dots = "a." * 100
    text = f'# {dots}\na = \'{dots}\'\nb = "\\"{dots}"\nc = """\n{dots}""""\nd = \'\'\'\n{dots}\'\n\'\'\'\n'

    assert parse_toml(text, "file.toml", LARGEST) == {"a": dots, "b": f'"{dots}', "c": f'{dots}"', "d": f"{dots}'\n"}


@given(st.text(alphabet="ab.[]{}=,\"'# \n\\\t1", max_size=60))
def test_any_text_is_read_as_tomllib_reads_it(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(FormatError):
            parse_toml(text, "file.toml", LARGEST)
    else:
        assert parse_toml(text, "file.toml", LARGEST) == expected


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "file.json is not valid JSON: Expecting value"),
        (b"[" * 100_000, f"file.json is not valid JSON: {TOO_DEEP}"),
        (b"9" * 5_000, "file.json is not valid JSON: Exceeds the limit"),
        (b'{"a": "\xe9"}', "file.json is not valid JSON: it is not UTF-8 (line 1)"),
        (b" " * 10_001, "file.json has more than 10,000 bytes; expected a file"),
    ],
    ids=["nothing", "deep", "digits", "latin", "large"],
)
def test_what_is_no_json(data: bytes, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_json(data, "file.json", 10_000 if len(data) < 100_000 else LARGEST, "a file")

    assert str(caught.value).startswith(said)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("[]{}=.,\"'#\n ab1-"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(FormatError):
        assert isinstance(read(text), File)


@dataclass(frozen=True, slots=True)
class Anything:
    a: Any = None
    b: tuple[Any, ...] = ()
    ab: Mapping[str, Any] | None = None


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("[]{}=.,\"'#\n ab1-"), max_size=60))
def test_any_text_with_known_keys_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(FormatError):
        assert isinstance(read_toml(text.encode(), "file.toml", Anything, lambda file: file), Anything)
