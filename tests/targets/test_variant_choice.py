"""The order of variants, and the wheel that a machine gets; variantlib, the reference, is the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version
from variantlib.api import get_variants_by_priority
from variantlib.models.variant import VariantProperty as TheirProperty
from variantlib.resolver.lib import sort_and_filter_supported_variants
from variantlib.variants_json import VariantsJson

from tests.support.variant_index import CU126, FIVE, Made, cuda, make_release
from tests.support.variants import SCHEMA, document
from tests.support.wheel_facts import AARCH64, X86_64, listed
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.variant_metadata import VariantMetadata, parse_variant_metadata
from wheel_checks.model import Unavailable
from wheel_checks.targets.selection import Reason
from wheel_checks.targets.variant_choice import (
    MOST_RELEASES,
    MachineChoice,
    choose_for_machines,
    order_for,
    order_variants,
)
from wheel_checks.targets.variant_machine import Features, Machine

V3 = "x86-64-v3"
GH200 = Machine("aarch64", "Grace", "GH200", 90, "580", "13.0")
GB200 = Machine("aarch64", "Grace", "GB200", 100, "580", "13.0")
H100_OLD = Machine("x86_64", V3, "H100", 90, "535", "12.2")
H100 = Machine("x86_64", V3, "H100", 90, "580", "13.0")
T4 = Machine("x86_64", V3, "T4", 75, "580", "13.0")
PLAIN = Machine("x86_64", V3)
OLD = Machine("x86_64", "x86-64-v2")
GRAVITON = Machine("aarch64", "Graviton2")
MACHINES = (GH200, GB200, H100_OLD, H100, T4, PLAIN, OLD, GRAVITON)


def metadata_of(release: Path) -> VariantMetadata:
    return parse_variant_metadata((release / "demo-1.0-variants.json").read_bytes())


@pytest.fixture(scope="module", autouse=True)
def nothing_installed() -> Iterator[None]:
    """No variant here depends on installed packages, whose metadata variantlib reads again for every answer."""
    with pytest.MonkeyPatch.context() as patch:
        nothing = SimpleNamespace(metadata=SimpleNamespace(distributions=list))
        patch.setattr("variantlib.resolver.lib.importlib", nothing)
        yield


def theirs(text: str, supported: dict[str, Features]) -> list[str]:
    """The labels as variantlib orders them for a system that supports these properties."""
    read = VariantsJson(json.loads(text))
    properties = [
        TheirProperty(namespace, feature, value)
        for namespace, features in supported.items()
        for feature, values in features.items()
        for value in values
    ]
    found = sort_and_filter_supported_variants(
        list(read.variants.values()),
        properties,
        namespace_priorities=list(read.namespace_priorities),
        filter_values=True,
    )
    return [each.label for each in found if each.label in read.variants]


def supported_by(machine: Machine, metadata: VariantMetadata) -> dict[str, Features]:
    return {name: machine.features(name) or {} for name in metadata.priorities.namespaces}


def taken(machine: Machine, release: Path, *, read: bool = True) -> MachineChoice:
    """A machine's choice from the folder; without ``read`` its metadata is unavailable."""
    files = [listed(path.name) for path in sorted(release.iterdir())]
    target = AARCH64 if machine.machine == "aarch64" else X86_64
    metadata = metadata_of(release) if read else Unavailable("the index lists no demo-1.0-variants.json")
    (made,) = choose_for_machines(Requirement("demo"), files, target, [machine], lambda _: metadata)
    return made


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The five variants and the plain wheel."""
    return make_release(tmp_path_factory.mktemp("five"))


@pytest.mark.parametrize(
    ("machine", "label"),
    [
        (GH200, "cu130_arm"),
        (GB200, "cu130_arm"),
        (H100_OLD, "cu126"),
        (H100, "cu130"),
        (T4, "cpu"),
        (PLAIN, "cpu"),
        (OLD, "null"),
        (GRAVITON, "null"),
    ],
    ids=lambda value: value.label if isinstance(value, Machine) else value,
)
def test_each_machine_gets_its_variant_of_the_five(release: Path, machine: Machine, label: str) -> None:
    choice = taken(machine, release)
    metadata = metadata_of(release)

    assert choice.label == label
    # variantlib orders labels and knows no platforms: the first of its order that has a wheel for this host
    names = {made.label for made in FIVE if made.machine == machine.machine or not made.properties}
    order = theirs((release / "demo-1.0-variants.json").read_text(), supported_by(machine, metadata))
    assert next(each for each in order if each in names) == label
    assert choice.plain.chosen is not None
    assert choice.plain.chosen.file_name == "demo-1.0-py3-none-any.whl"


def test_without_a_plain_wheel_installers_of_today_take_nothing(tmp_path: Path) -> None:
    choice = taken(H100, make_release(tmp_path, plain=False))

    assert choice.label == "cu130"
    assert choice.plain.chosen is None
    assert choice.plain.explanation == "demo has no files"


def test_a_lower_bound_above_the_driver_refuses_although_the_code_would_run(tmp_path: Path) -> None:
    release = make_release(tmp_path, cuda("cu126", "12.6", 80, 90), Made("cpu", ("x86_64 :: level :: v3",)))

    choice = taken(H100_OLD, release)

    assert choice.label == "cpu"
    assert choice.order.refused["cu126"] == (
        "it needs nvidia :: cuda_version_lower_bound :: 12.6, which H100 (driver 535, x86_64) does not support"
    )
    refused = [r.sentence for r in choice.choice.rejected if r.reason is Reason.VARIANT]
    assert refused == [
        "demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cu126.whl is not for H100 (driver 535, x86_64): it needs "
        "nvidia :: cuda_version_lower_bound :: 12.6, which H100 (driver 535, x86_64) does not support"
    ]


def test_without_readable_metadata_variants_do_not_count(release: Path) -> None:
    choice = taken(H100, release, read=False)

    assert choice.label == ""
    assert choice.choice.chosen is not None
    assert choice.choice.chosen.file_name == "demo-1.0-py3-none-any.whl"
    assert isinstance(choice.metadata, Unavailable)


def test_nothing_for_the_machine_says_so(tmp_path: Path) -> None:
    choice = taken(T4, make_release(tmp_path, CU126, plain=False))

    assert choice.choice.chosen is None
    assert choice.choice.explanation == "demo 1.0 has only variants for cp312 x86_64, none for this machine"


def test_a_release_without_a_fitting_variant_leads_to_the_one_before(tmp_path: Path) -> None:
    files = [
        listed("demo-2.0-cp312-cp312-manylinux_2_28_x86_64-cu130.whl"),
        listed("demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cu126.whl"),
    ]
    asked = []

    def read(version: Version) -> VariantMetadata:
        asked.append(str(version))
        bound = {"2.0": "13.0", "1.0": "12.0"}[str(version)]
        label = {"2.0": "cu130", "1.0": "cu126"}[str(version)]
        return parse_variant_metadata(
            json.dumps(document({label: [f"nvidia :: cuda_version_lower_bound :: {bound}"]})).encode()
        )

    (choice,) = choose_for_machines(Requirement("demo"), files, X86_64, [GB200, H100_OLD], read)

    assert asked == ["2.0", "1.0"]
    assert (choice.label, str(choice.choice.version)) == ("cu126", "1.0")
    assert choice.variant is not None
    assert choice.variant.label == "cu126"
    assert choice.newer is not None
    assert (choice.newer.release, list(choice.newer.passed_over)) == (Version("2.0"), ["cu130"])


def test_what_is_passed_over_is_of_the_release_that_was_looked_at() -> None:
    """The cu130 of 2.0 is not built for x86_64; that an older one of the same label is refused is another matter."""
    files = [
        listed("demo-2.0-cp312-cp312-manylinux_2_28_aarch64-cu130.whl"),
        listed("demo-2.0-py3-none-any.whl"),
        listed("demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cu130.whl"),
    ]
    metadata = parse_variant_metadata(json.dumps(document({"cu130": ["nvidia :: sm_arch :: 90_real"]})).encode())

    (choice,) = choose_for_machines(Requirement("demo"), files, X86_64, [H100], lambda _: metadata)

    assert choice.release == Version("2.0")
    assert choice.passed_over == {"cu130": "it has no wheel for cp312 x86_64"}


def test_a_yanked_wheel_of_a_variant_is_said_to_be_yanked() -> None:
    name = "demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cu130.whl"
    files = [replace(listed(name), yanked="broken"), listed("demo-1.0-py3-none-any.whl")]
    metadata = parse_variant_metadata(json.dumps(document({"cu130": ["nvidia :: sm_arch :: 90_real"]})).encode())

    (choice,) = choose_for_machines(Requirement("demo"), files, X86_64, [H100], lambda _: metadata)

    assert choice.label == ""
    assert choice.passed_over == {"cu130": "its wheel for cp312 x86_64 is yanked"}


def test_a_name_that_is_read_in_two_ways_does_not_stop_the_choice() -> None:
    """packaging reads the tags, our own rule of names does not."""
    files = [listed("demo-1.0-py3.\u00fc-none-any-null.whl")]
    metadata = parse_variant_metadata(json.dumps(document({"null": []})).encode())

    (choice,) = choose_for_machines(Requirement("demo"), files, X86_64, [H100], lambda _: metadata)

    assert choice.label == "null"


def test_no_more_than_twenty_releases_are_looked_at() -> None:
    files = [listed(f"demo-{number}.0-cp312-cp312-manylinux_2_28_x86_64-cu126.whl") for number in range(30)]
    metadata = parse_variant_metadata(json.dumps(document({"cu126": ["nvidia :: sm_arch :: 80_real"]})).encode())
    asked = []

    def read(version: Version) -> VariantMetadata:
        asked.append(version)
        return metadata

    (choice,) = choose_for_machines(Requirement("demo"), files, X86_64, [H100], read)

    assert choice.choice.chosen is None
    assert asked == [Version(f"{number}.0") for number in range(29, 29 - MOST_RELEASES, -1)]


def test_the_variant_comes_before_the_tag_and_the_tag_before_the_build_tag() -> None:
    names = [
        "demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cpu.whl",
        "demo-1.0-py3-none-any-cu126.whl",
        "demo-1.0-9-py3-none-manylinux_2_17_x86_64-cu126.whl",
        "demo-1.0-1-cp312-cp312-manylinux_2_28_x86_64-cu126.whl",
        "demo-1.0-2-cp312-cp312-manylinux_2_28_x86_64-cu126.whl",
        "demo-1.0-3-cp312-cp312-manylinux_2_28_x86_64.whl",
    ]
    made = document({"cpu": ["x86_64 :: level :: v3"], "cu126": ["nvidia :: sm_arch :: 90_real"]}, ["nvidia", "x86_64"])
    metadata = parse_variant_metadata(json.dumps(made).encode())

    def first(files: list[IndexFile]) -> str:
        (made,) = choose_for_machines(Requirement("demo"), files, X86_64, [H100], lambda _: metadata)
        assert made.choice.chosen is not None
        return made.choice.chosen.file_name

    expected = [names[4], names[3], names[2], names[1], names[0], names[5]]
    files = [listed(name) for name in names]
    order = []
    while files:
        order.append(first(files))
        files = [file for file in files if file.file_name != order[-1]]
    assert order == expected


def test_an_unknown_namespace_is_said_to_be_unknown() -> None:
    made = document({"fast": ["intel :: device_ip :: 12.60.7"], "null": []})
    order = order_for(parse_variant_metadata(json.dumps(made).encode()), H100)

    assert order.preferred == ("null",)
    assert order.unknown == ("intel",)
    assert order.refused["fast"].endswith("only the provider of intel can interpret it")


def test_a_namespace_without_a_priority_is_not_supported() -> None:
    made = document({"fast": ["x86_64 :: level :: v3"], "null": []}, ["nvidia"])
    order = order_for(parse_variant_metadata(json.dumps(made).encode()), H100)

    assert order.preferred == ("null",)
    assert order.refused["fast"].endswith("default-priorities does not list x86_64")


def test_an_optional_provider_is_not_asked() -> None:
    provider = {"requires": ["provider-variant-x86-64"], "optional": True}
    made = document({"fast": ["x86_64 :: level :: v3"], "null": []}, providers={"x86_64": provider})
    order = order_for(parse_variant_metadata(json.dumps(made).encode()), H100)

    assert order.preferred == ("null",)
    assert "optional" in order.refused["fast"]
    assert order.unknown == ()


FIRST_SCHEMA = "https://variants-schema.wheelnext.dev/v0.0.3.json"  # of PEP 817, whose providers may be disabled


@pytest.mark.parametrize(
    ("marker", "label"),
    [
        ("platform_machine == 'x86_64'", "cu130"),
        ("platform_machine == 'aarch64'", ""),
        ("sys_platform == 'win32'", ""),
        ("'1.0' in extra", ""),  # nothing that a target has
    ],
)
def test_a_provider_that_is_disabled_on_the_target_is_not_asked(marker: str, label: str) -> None:
    provider = {"requires": ["nvidia-variant-provider"], "enable-if": marker}
    made = document({"cu130": ["nvidia :: sm_arch :: 90_real"]}, schema=FIRST_SCHEMA, providers={"nvidia": provider})
    metadata = parse_variant_metadata(json.dumps(made).encode())
    files = [listed("demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cu130.whl"), listed("demo-1.0-py3-none-any.whl")]

    (choice,) = choose_for_machines(Requirement("demo"), files, X86_64, [H100], lambda _: metadata)

    assert metadata.faults == ()
    assert choice.label == label
    if not label:
        assert choice.passed_over["cu130"].endswith(f"the provider of nvidia is disabled: {marker} is false")


def test_metadata_of_an_unknown_revision_supports_nothing() -> None:
    made = document({"fast": ["x86_64 :: level :: v3"]}, schema="https://example.org/v9.json")
    order = order_for(parse_variant_metadata(json.dumps(made).encode()), H100)

    assert order.preferred == ()
    assert "https://example.org/v9.json" in order.refused["fast"]


def test_older_revisions_override_the_order_of_features_and_values() -> None:
    schema = "https://variants-schema.wheelnext.dev/peps/825/v0.1.0.json"
    variants = {"real": ["nvidia :: sm_arch :: 90_real"], "ptx": ["nvidia :: sm_arch :: 90_virtual"]}
    order = {"namespace": ["nvidia"], "property": {"nvidia": {"sm_arch": ["90_virtual"]}}}
    plain = document(variants, schema=schema, providers=None)
    turned = document(variants, schema=schema, providers=None, default_priorities=order)

    assert order_for(parse_variant_metadata(json.dumps(plain).encode()), H100).preferred == ("real", "ptx")
    assert order_for(parse_variant_metadata(json.dumps(turned).encode()), H100).preferred == ("ptx", "real")


def test_providers_that_only_list_values_order_as_variantlib_does() -> None:
    """Here variantlib needs no plugin, so that all of its answer is the oracle, filter and priorities included."""
    static: dict[str, Any] = {"static-properties": {"library": ["mkl", "openblas"], "interface": ["ilp64"]}}
    static["feature-order"] = ["interface", "library"]
    made = document(
        {
            "mkl": ["blas :: library :: mkl"],
            "openblas": ["blas :: library :: openblas"],
            "both": ["blas :: library :: mkl", "blas :: library :: openblas"],
            "wide": ["blas :: interface :: ilp64", "blas :: library :: openblas"],
            "other": ["blas :: library :: blis"],
            "null": [],
        },
        providers={"blas": static},
    )
    text = json.dumps(made)

    order = order_for(parse_variant_metadata(text.encode()), PLAIN)

    assert list(order.preferred) == [each.label for each in get_variants_by_priority(variants_json=json.loads(text))]
    assert order.preferred[0] == "wide"


# variantlib's own order on generated machines and sets of variants

NAMES = ("a", "b", "c")
VALUES = ("1", "2", "3")
names = st.sampled_from(NAMES)
properties = st.tuples(names, names, st.sampled_from(VALUES)).map(" :: ".join)
variant_sets = st.dictionaries(
    st.text("abc019._", min_size=1, max_size=4).filter(lambda label: label != "null"),
    st.lists(properties, min_size=1, max_size=6, unique=True).map(sorted),
    max_size=12,
)
systems = st.dictionaries(
    names, st.dictionaries(names, st.lists(st.sampled_from(VALUES), min_size=1, unique=True).map(tuple)), max_size=3
)


@given(variant_sets, systems, st.permutations(NAMES), st.booleans())
@settings(max_examples=200)
def test_generated_variants_are_ordered_as_variantlib_orders_them(
    variants: dict[str, list[str]], system: dict[str, Features], order: list[str], null: bool
) -> None:
    made = document({**variants, **({"null": []} if null else {})}, order)
    text = json.dumps(made)
    metadata = parse_variant_metadata(text.encode())
    assert metadata.schema == SCHEMA

    ours = order_variants(metadata, lambda namespace: system.get(namespace, {}))

    assert list(ours.preferred) == theirs(text, system)
    assert set(ours.preferred) | set(ours.refused) == set(made["variants"])


machines = st.builds(
    Machine,
    st.just("x86_64"),
    st.sampled_from(["x86-64-v1", "x86-64-v2", "x86-64-v3", "x86-64-v4"]),
    st.just("a GPU"),
    st.sampled_from([0, 75, 80, 89, 90, 100, 103, 120]),
    st.just("580"),
    st.sampled_from(["", "12.2", "12.8", "13.0", "13.2"]),
)
claims = st.one_of(
    st.sampled_from(["12", "12.6", "13.0", "13.1"]).map(lambda v: f"nvidia :: cuda_version_lower_bound :: {v}"),
    st.sampled_from(["12.6", "13", "14"]).map(lambda v: f"nvidia :: cuda_version_upper_bound :: {v}"),
    st.sampled_from(["75_real", "80_real", "90_real", "90_virtual", "100_real", "120_real"]).map(
        lambda v: f"nvidia :: sm_arch :: {v}"
    ),
    st.sampled_from(["v1", "v2", "v3", "v4"]).map(lambda v: f"x86_64 :: level :: {v}"),
    st.sampled_from(["avx2", "avx512f"]).map(lambda v: f"x86_64 :: {v} :: on"),
)
releases = st.dictionaries(
    st.text("cu0123.", min_size=1, max_size=5), st.lists(claims, min_size=1, max_size=6, unique=True), max_size=12
)


@given(releases, machines, st.permutations(["nvidia", "x86_64"]))
@settings(max_examples=100)
def test_described_machines_get_the_order_of_variantlib(
    variants: dict[str, list[str]], machine: Machine, order: list[str]
) -> None:
    made = document({label: sorted(claimed) for label, claimed in variants.items()}, order)
    metadata = parse_variant_metadata(json.dumps(made).encode())

    assert list(order_for(metadata, machine).preferred) == theirs(json.dumps(made), supported_by(machine, metadata))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.label)
def test_the_order_of_the_five_is_that_of_variantlib(release: Path, machine: Machine) -> None:
    metadata = metadata_of(release)
    text = (release / "demo-1.0-variants.json").read_text()

    assert list(order_for(metadata, machine).preferred) == theirs(text, supported_by(machine, metadata))
