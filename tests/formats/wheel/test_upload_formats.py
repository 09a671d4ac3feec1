"""METADATA with all of its fields: hostile bytes are faults in sentences."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.metadata_fields import parse_metadata_fields


def test_fields_and_description() -> None:
    data = b"Metadata-Version: 2.4\nName: demo\nClassifier: A\nclassifier: B\nSummary: x\n\n\nTitle\n=====\n"
    fields = parse_metadata_fields(data)
    assert fields.of("Classifier") == ("A", "B")
    assert fields.first("name") == "demo"
    assert fields.description == "Title\n====="


def test_a_description_in_a_field_counts_without_a_body() -> None:
    assert parse_metadata_fields(b"Name: demo\nDescription: one\n        two\n").description == "one\n        two"


@given(st.binary(max_size=400))
def test_no_metadata_makes_it_crash(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        parse_metadata_fields(data)
