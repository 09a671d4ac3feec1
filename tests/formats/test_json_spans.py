"""Spans of a document's values: the values are those that json.loads gives, and finding them builds nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.growth import assert_at_most_doubles, cost_of
from wheel_checks.formats import json_spans
from wheel_checks.formats.index.page import MOST_FILES
from wheel_checks.formats.json_spans import MOST_KEYS, elements, members, value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_values_are_those_of_json(document: dict[str, object], indent: int | str | None, ascii_only: bool) -> None:
    data = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    if "\ud800" <= max(data.decode("utf-8", "replace"), default="") <= "\udfff":
        return
    found = {key: value(data, span) for key, span in members(data).items()}
    assert found == json.loads(data.decode("utf-8", "replace"))


@settings(max_examples=40)
@given(st.lists(VALUES), st.sampled_from([None, 2]))
def test_elements_are_those_of_the_list(items: list[object], indent: int | None) -> None:
    data = json.dumps({"items": items}, indent=indent).encode()
    assert [value(data, span) for span in elements(data, members(data)["items"])] == items


@given(st.binary() | st.text(alphabet='{}[]",:\\ 1a').map(str.encode))
def test_other_bytes_are_refused_or_read(data: bytes) -> None:
    try:
        spans = members(data)
    except ValueError:
        return
    assert all(0 <= start < end <= len(data) for start, end in spans.values())


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":[}', '{"a" 1}', "{1:2}"]
)
def test_what_is_cut_off_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        members(text.encode())


def test_of_equal_keys_the_last_counts() -> None:
    data = b'{"a": 1, "a": [2]}'
    assert value(data, members(data)["a"]) == [2]


def test_dense_documents_are_refused_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert members(b'{"a":[' + b'{"b":{"c":1}},' * MOST_FILES + b"0]}")  # as on a page of an index
    monkeypatch.setattr(json_spans, "MOST_PARTS", 1_000)
    assert members(b'{"a":' + b"[" * 500 + b"]" * 500 + b"}")
    for dense in (b"[" * 501 + b"]" * 501, b"[" + b"[[[[]]]]," * 500 + b"[]]"):
        with pytest.raises(ValueError, match="more than 1,000 parts of one value"):
            members(b'{"a":' + dense + b"}")
    with pytest.raises(ValueError, match="more than 1,000 keys"):
        members(b"{" + b",".join(b'"%d":1' % number for number in range(MOST_KEYS + 1)) + b"}")


def test_a_long_line_takes_no_memory() -> None:
    line = b'{"a": "' + b"\\n" * 5_000_000 + b'"}'
    assert cost_of(lambda: members(line)).peak < 100_000


@pytest.mark.parametrize(
    "make",
    [
        lambda size: b'{"a":' + b"[" * size + b"]" * size + b"}",
        lambda size: b'{"a":[' + b"[]," * size + b"1]}",
        lambda size: b'{"a":["' + b'","' * size + b'"]}',
        lambda size: b'{"a":"' + b'\\"' * size + b'"}',
        lambda size: b'{"a":"' + b'\\"' * size,
        lambda size: b'{"a":["' + b'\\"' * size + b'"]}',
        lambda size: b'{"a":["' + b'\\"' * size,
    ],
    ids=[
        "nested",
        "small lists",
        "strings",
        "escapes",
        "an open string",
        "escapes in a list",
        "an open string in a list",
    ],
)
def test_the_cost_is_linear(make: object) -> None:
    def run(data: bytes) -> None:
        try:
            members(data)
        except ValueError as error:
            assert "expected" in str(error)  # noqa: PT017  # one document of these is cut off

    assert assert_at_most_doubles(make, run, 10_000).peak < 100_000  # type: ignore[arg-type]  # a function of the table
