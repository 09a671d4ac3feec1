"""METADATA with all of its fields, and SBOM documents: hostile bytes are faults in sentences."""

from __future__ import annotations

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.metadata_fields import parse_metadata_fields
from wheel_checks.formats.wheel.sbom import SbomFile, parse_sbom

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["components", "files", "packages", "metadata", "creationInfo", "@graph", "tools", "hashes"])


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


def test_a_file_of_spdx_3() -> None:
    digest = {"type": "Hash", "algorithm": "sha256", "hashValue": "AB"}
    graph = [{"type": "software_File", "name": "./demo/a.so", "verifiedUsing": [digest]}, {"name": "zlib"}]
    found = parse_sbom(json.dumps({"@context": "https://spdx.org/rdf/3.0.1", "@graph": graph}).encode())
    assert (found.form, found.files, found.names) == (
        "SPDX 3",
        (SbomFile("demo/a.so", (("sha256", "ab"),)),),
        ("./demo/a.so", "zlib"),
    )


@given(
    st.sampled_from(
        [{"bomFormat": "CycloneDX", "specVersion": "1.6"}, {"spdxVersion": "SPDX-2.3"}, {"@context": "spdx"}]
    ),
    st.dictionaries(KEYS, JSON, max_size=4),
)
def test_no_document_makes_it_crash(form: dict[str, object], rest: dict[str, object]) -> None:
    parse_sbom(json.dumps({**rest, **form}).encode())
