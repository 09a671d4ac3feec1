"""JSON documents in one stream, whole, broken and cut off."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheelproof.fleet import documents
from wheelproof.fleet.documents import read_documents

A = {"schema": "wheelproof.report/1", "command": "doctor", "subjects": [{"id": 'a "{" b'}]}
B = {"schema": "wheelproof.report/1", "command": "smoke", "subjects": []}


def read(text: str | bytes, chunk: int = documents.CHUNK) -> list[Any]:
    """The documents, and messages in place of faults."""
    data = text.encode() if isinstance(text, str) else text
    return [d.what if isinstance(d, FormatError) else d for d in read_documents(io.BytesIO(data), chunk=chunk)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("between", ["", "\n", "\r\n\n", "\x1e"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_documents_one_after_another(indent: int | None, between: str, chunk: int) -> None:
    text = between.join(json.dumps(document, indent=indent) for document in (A, B, A))
    assert read(text, chunk) == [A, B, A]


def test_a_byte_order_mark_is_none_of_the_document() -> None:
    assert read(b"\xef\xbb\xbf" + json.dumps(A).encode()) == [A]


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_nothing(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize("chunk", [3, 1 << 20])
def test_a_document_that_is_cut_off_costs_no_other(chunk: int) -> None:
    cut = json.dumps(A)[:-30]
    assert read(f"{json.dumps(B)}\n{cut}\n{json.dumps(B)}", chunk)[0::2] == [B, B]
    assert read(f"{json.dumps(B)}{cut}", chunk) == [B, "it ends in the middle of a document"]


def test_words_between_documents_are_a_fault() -> None:
    assert read(f"{json.dumps(A)}\nslurmstepd: error\n{json.dumps(B)}") == [
        A,
        "it is not JSON: Expecting value",
        B,
    ]


def test_a_document_that_is_nested_too_deep() -> None:
    assert read("[" * 200_000 + json.dumps(B)) == ["it is not readable JSON: it is nested too deeply", B]


def test_a_document_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGEST", 1000)
    assert read('{"schema": "' + "x" * 5000, chunk=100)[0].startswith("a document has more than")


@given(st.binary(max_size=300), st.integers(1, 50))
def test_whatever_comes_is_read_to_its_end(data: bytes, chunk: int) -> None:
    for found in read_documents(io.BytesIO(data), chunk=chunk):
        assert found is None or isinstance(found, (FormatError, dict, list, str, int, float))
