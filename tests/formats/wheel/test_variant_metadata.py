"""Variant metadata: the output of variantlib, and documents with one fault each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from variantlib.models.variant import VariantDescription
from variantlib.models.variant import VariantProperty as TheirProperty
from variantlib.models.variant_info import ProviderInfo, VariantInfo
from variantlib.variants_json import VariantsJson

from tests.support.variants import SCHEMA, document
from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.variant_metadata import (
    Revision,
    Variant,
    VariantMetadata,
    VariantProperty,
    parse_variant_metadata,
    revisions,
)

CU130 = ["nvidia :: cuda_version_lower_bound :: 13.0", "nvidia :: sm_arch :: 100_real", "nvidia :: sm_arch :: 90_real"]

BLAS = ["blas :: library :: mkl"]


def parse(made: dict[str, Any]) -> VariantMetadata:
    return parse_variant_metadata(json.dumps(made).encode())


def faults(made: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault.kind, fault.message) for fault in parse(made).faults]


def test_a_document_tells_its_variants_priorities_and_providers() -> None:
    metadata = parse(document({"cu130": CU130, "null": []}))

    assert metadata.faults == ()
    assert metadata.revision is not None
    assert metadata.revision.schema == SCHEMA
    assert metadata.priorities.namespaces == ("nvidia",)
    assert metadata.providers["nvidia"].requires == ("nvidia-variant-provider>=0.0.1",)
    assert metadata.variants["null"].properties == ()
    assert metadata.variants["cu130"].values("nvidia", "sm_arch") == ("100_real", "90_real")
    assert str(metadata.variants["cu130"].properties[0]) == "nvidia :: cuda_version_lower_bound :: 13.0"


def test_older_revisions_may_order_features_and_values() -> None:
    order = {"namespace": ["nvidia"], "feature": {"nvidia": ["sm_arch"]}, "property": {"nvidia": {"sm_arch": ["90"]}}}
    schema = "https://variants-schema.wheelnext.dev/peps/825/v0.1.0.json"

    metadata = parse(document({"a": CU130}, default_priorities=order, providers=None, schema=schema))

    assert metadata.faults == ()
    assert metadata.priorities.features == {"nvidia": ("sm_arch",)}
    assert metadata.priorities.values == {("nvidia", "sm_arch"): ("90",)}


@pytest.mark.parametrize(
    ("made", "kind", "told"),
    [
        (document({"cu130": CU130}, schema=None), "schema", "$schema is missing or not a string"),
        (document({"cu130": CU130}, schema="https://example.org/v9.json"), "schema", "an unknown revision"),
        (document({"cu130": CU130}, extra={}), "shape", "the document has 'extra', which its revision does not define"),
        (document({}, variants=None), "shape", "variants is missing"),
        (document({}, variants=[]), "shape", "variants is a list; expected an object"),
        (document({}, variants={"a": {"nvidia": []}}), "shape", "variants.'a'.'nvidia' is a list; expected an object"),
        (document({}, variants={"a": {"nvidia": {}}}), "shape", "variants.'a'.'nvidia' is empty"),
        (
            document({}, variants={"a": {"nvidia": {"sm_arch": "90"}}}),
            "shape",
            "variants.'a'.nvidia.'sm_arch' is '90'; expected a list of strings",
        ),
        (
            document({}, variants={"a": {"nvidia": {"sm_arch": [90]}}}),
            "shape",
            "variants.'a'.nvidia.'sm_arch' contains values that are not strings",
        ),
        (document({}, variants={"a": {"nvidia": {"sm_arch": []}}}), "shape", "variants.'a'.nvidia.'sm_arch' is empty"),
        (
            document({}, variants={"a": {"nvidia": {"sm_arch": ["90-real"]}}}),
            "name",
            "variants.'a'.nvidia.'sm_arch': the value '90-real' does not match [a-z0-9_.]+",
        ),
        (
            document({}, variants={"a": {"nvidia": {"sm_arch": ["90", "90"]}}}),
            "duplicate",
            "variants.'a'.nvidia.'sm_arch' has a value more than once",
        ),
        (
            document({}, variants={"a": {"nvidia": {"sm_arch": ["90", "100"]}}}),
            "order",
            "variants.'a'.nvidia.'sm_arch' is '90, 100'; the values must be sorted",
        ),
        (document({"CU130": CU130}), "label", "variants.'CU130': the label 'CU130' does not match [0-9a-z._]+"),
        (document({"cpu": []}), "null", "variants.'cpu' has no properties; only the label 'null' may have none"),
        (document({"null": CU130}), "null", "variants.'null' has properties; the null variant has none"),
        (
            document({"cu130": CU130}, default_priorities={}),
            "priorities",
            "default-priorities.namespace is missing; it must order the namespaces",
        ),
        (
            document({"cu130": CU130}, namespaces=["x86_64"]),
            "priorities",
            "default-priorities.namespace does not list 'nvidia', which variants use",
        ),
        (
            document({"cu130": CU130}, providers={}),
            "provider",
            "'nvidia' has no provider, so nothing can evaluate it",
        ),
        (
            document({"cu130": CU130}, providers={"nvidia": {}}),
            "provider",
            "providers.'nvidia' has none of them; expected exactly one of requires, static-properties, builtin",
        ),
        (
            document({"cu130": CU130}, providers={"nvidia": {"requires": "nvidia-variant-provider"}}),
            "provider",
            "providers.'nvidia'.requires is not a list of requirements",
        ),
        (
            document({"cu130": CU130}, providers={"nvidia": {"requires": ["x"], "optional": "yes"}}),
            "provider",
            "providers.'nvidia'.optional is 'yes'; expected true or false",
        ),
        (
            document({"cu130": CU130}, providers={"nvidia": {"requires": ["x"], "optional": 0}}),
            "provider",
            "providers.'nvidia'.optional is a number; expected true or false",
        ),
        (
            document({"b": BLAS}, providers={"blas": {"static-properties": {"Library": ["mkl"]}}}),
            "name",
            "providers.'blas'.static-properties: the feature 'Library' does not match [a-z0-9_]+",
        ),
        (
            document({"b": BLAS}, providers={"blas": {"static-properties": {"library": ["mkl"], "abi": ["ilp64"]}}}),
            "provider",
            "providers.'blas'.feature-order is ''; it must order the features of static-properties: 'abi, library'",
        ),
        (
            document({"b": BLAS}, providers={"blas": {"requires": ["x"], "feature-order": ["library"]}}),
            "provider",
            "providers.'blas'.feature-order is 'library'; it must order the features of static-properties: ''",
        ),
        (
            document({"b": BLAS}, providers={"blas": {"builtin": "blas", "plugin-api": "blas:Plugin"}}),
            "provider",
            "providers.'blas'.plugin-api has no effect without requires",
        ),
        (
            document({"null": []}, providers={"nvidia": {"builtin": "x"}, "y": {"builtin": "y"}}),
            "provider",
            "'y' has a provider, but is missing from default-priorities",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_against_the_draft_is_a_fault(made: dict[str, Any], kind: str, told: str) -> None:
    (fault, *others) = faults(made)

    assert fault[0] == kind
    assert told in fault[1]
    assert {other[0] for other in others} <= {"provider", "priorities"}  # consequences of the first


def test_a_long_label_is_against_the_first_drafts_alone() -> None:
    old = next(revision.schema for revision in revisions() if revision.label_length == 16)

    assert faults(document({"cu130_of_seventeen": CU130}, schema=old))[0] == (
        "label",
        "variants.'cu130_of_seventeen' has 18 characters; PEP 817 and the first text of PEP 825 allows 16",
    )
    assert faults(document({"cu130_of_seventeen": CU130})) == []


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("enable-if", "platform machine", "'platform machine'; expected an environment marker"),
        ("enable-if", "(" * 900, f"'{'(' * 100}...'; expected an environment marker"),
        ("enable-if", 5, "a number; expected a short string"),
        ("plugin-use", [], "a list; expected a short string"),
    ],
    ids=["no-marker", "deep", "number", "list"],
)
def test_what_only_the_first_drafts_say_of_providers_is_checked_too(key: str, value: object, told: str) -> None:
    old = next(revision.schema for revision in revisions() if revision.label_length == 16)
    providers = {"nvidia": {"requires": ["x"], key: value}}

    assert faults(document({"cu130": CU130}, schema=old, providers=providers)) == [
        ("provider", f"providers.'nvidia'.{key} is {told}")
    ]


def test_a_key_that_stands_twice_is_a_fault() -> None:
    text = json.dumps(document({"cu130": CU130})).replace('"variants": {', '"variants": {"cu130": {}, ')

    (fault,) = parse_variant_metadata(text.encode()).faults

    assert (fault.kind, fault.message) == ("duplicate", "the key 'cu130' occurs 2 times in one object")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "variant.json is not valid JSON"),
        (b"\xff", "variant.json is not valid JSON"),
        (b"[1, 2", "variant.json is not valid JSON"),
        (b"[]", "variant.json contains a JSON list; expected an object"),
        (b"[" * 100_000, "variant.json is nested too deeply to be read"),
        (b'{"a":' * 100_000, "variant.json is nested too deeply to be read"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "variant.json is not valid JSON"),
        (b" " * 4_194_305, "variant.json has 4,194,305 bytes; expected at most 4,194,304"),
        (
            json.dumps(document({f"v{number}": CU130[:1] for number in range(10_000)})).encode(),
            "variant.json lists 10,000 variants; expected at most 5,000",
        ),
        (
            json.dumps(document({"a": [f"nvidia :: sm_arch :: {number}" for number in range(10_000)]})).encode(),
            "variants.'a' of variant.json has 10,000 properties; expected at most 1,000",
        ),
        (
            json.dumps(document({}, namespaces=[f"n{number}" for number in range(20_000)])).encode(),
            "variant.json orders 20,000 namespaces; expected at most 1,000",
        ),
        (
            json.dumps(
                document({f"v{n}": [f"n{n}_{m} :: a :: b" for m in range(500)] for n in range(100)}, ["nvidia"])
            ).encode(),
            "the variants of variant.json use 50,000 namespaces; expected at most 1,000",
        ),
        (
            json.dumps(document({"a": [f"nvidia :: cuda_version_lower_bound :: {'9' * 5000}"]})).encode(),
            "variants.'a'.nvidia.'cuda_version_lower_bound' has a value of 5,000 characters; expected at most 1,000",
        ),
    ],
    ids=[
        "empty",
        "no-utf-8",
        "cut",
        "list",
        "deep-lists",
        "deep-objects",
        "number",
        "large",
        "variants",
        "properties",
        "namespaces",
        "used-namespaces",
        "a-long-value",
    ],
)
def test_what_cannot_be_read_is_one_sentence(data: bytes, told: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_variant_metadata(data)

    assert str(caught.value).startswith(told)
    assert len(str(caught.value)) < 300


def test_huge_names_are_cut_in_messages_and_a_million_faults_are_counted() -> None:
    metadata = parse(document({}, variants={f"{number}-{'x' * 400}": {} for number in range(4_000)}))

    assert len(metadata.faults) == 51
    assert max(len(fault.message) for fault in metadata.faults) < 400
    assert metadata.faults[-1].message == "and 7,950 more faults"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(revisions()), st.tuples(JSON, JSON, JSON), st.tuples(JSON, JSON))
def test_whatever_stands_where_something_else_is_expected_is_a_fault(
    revision: Revision, tops: tuple[Any, Any, Any], inner: tuple[Any, Any]
) -> None:
    made = dict(zip(("default-priorities", "providers", "variants"), tops, strict=True))
    metadata = parse({"$schema": revision.schema, **made})
    deeper = parse(document({}, variants={"a": {"nvidia": inner[0]}}, providers={"nvidia": inner[1]}))

    assert metadata.faults
    assert deeper.faults


NAME = st.text("abcdefgz0123456789_", min_size=1, max_size=8)
VALUE = st.text("abcz019_.", min_size=1, max_size=8)
LABEL = VALUE.filter(lambda label: label != "null")
PROPERTIES = st.sets(st.tuples(NAME, NAME, VALUE), min_size=1, max_size=6)


@settings(max_examples=60)
@given(st.dictionaries(LABEL, PROPERTIES, min_size=1, max_size=6), st.booleans())
def test_what_variantlib_writes_is_read_as_it_was_meant(
    labels: dict[str, set[tuple[str, str, str]]], null: bool
) -> None:
    namespaces = sorted({namespace for properties in labels.values() for namespace, _, _ in properties})
    theirs = VariantsJson(
        VariantInfo(namespaces, {name: ProviderInfo(requires=[f"provider-{name}"]) for name in namespaces})
    )
    theirs.variants = {
        label: VariantDescription([TheirProperty(*each) for each in sorted(properties)], label)
        for label, properties in labels.items()
    }
    if null:
        theirs.variants["null"] = VariantDescription([], "null")

    metadata = parse_variant_metadata(theirs.to_str().encode())

    assert metadata.faults == ()
    assert list(metadata.priorities.namespaces) == namespaces
    assert metadata.variants == {
        label: Variant(label, tuple(VariantProperty(p.namespace, p.feature, p.value) for p in made.properties))
        for label, made in theirs.variants.items()
    }
