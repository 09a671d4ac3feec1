"""The fix of WHL851 in each way in which a machine with a GPU comes to get a variant that is not for it, or none.

Each fix is held to its word: with it the same machine gets a variant for its GPU.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version

from tests.support.variants import PROVIDERS, document
from tests.support.wheel_facts import AARCH64, X86_64, judged, listed
from wheel_checks.formats.wheel.variant_metadata import VariantMetadata, parse_variant_metadata
from wheel_checks.model import CheckResult, Outcome, Unavailable
from wheel_checks.targets.variant_choice import MachineChoice, choose_for_machines
from wheel_checks.targets.variant_machine import Machine

V3 = "x86-64-v3"
H100 = Machine("x86_64", V3, "H100", 90, "580", "13.0")
H100_535 = replace(H100, driver="535", cuda="12.2")
H100_470 = replace(H100, driver="470", cuda="11.4")
H100_BARE = replace(H100, driver="", cuda="")
V100 = Machine("x86_64", V3, "V100", 70, "580", "13.0")
T4 = Machine("x86_64", V3, "T4", 75, "580", "13.0")
T4_535 = replace(T4, driver="535", cuda="12.2")
T4_BARE = replace(T4, driver="", cuda="")
GH200 = Machine("aarch64", "Grace", "GH200", 90, "580", "13.0")
GH200_535 = replace(GH200, driver="535", cuda="12.2")

LOWER, UPPER, SM = "nvidia :: cuda_version_lower_bound", "nvidia :: cuda_version_upper_bound", "nvidia :: sm_arch"
X86, ARM = "cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-manylinux_2_28_aarch64"
OLD_DRAFT = "https://variants-schema.wheelnext.dev/v0.0.3.json"
CLAIM_12 = (
    "The wheels' publisher can claim cuda_version_lower_bound 12.0: a driver runs machine code from any toolkit of "
    "its major version."
)


@dataclass(frozen=True)
class Release:
    """One release: its variants with their properties, the platforms that all of them have, and its metadata."""

    variants: dict[str, list[str]]
    platforms: Sequence[str] = (X86, ARM)
    plain: bool = True
    yanked: tuple[str, ...] = ()
    namespaces: Sequence[str] | None = None
    changes: dict[str, Any] = field(default_factory=dict)


def gets(machine: Machine, release: Release) -> MachineChoice:
    """The machine's choice in the release."""
    files = [
        listed(f"demo-1.0-{platform}-{label}.whl", yanked="" if label in release.yanked else None)
        for label in release.variants
        for platform in release.platforms
    ]
    files += [listed("demo-1.0-py3-none-any.whl")] * release.plain
    made = document(release.variants, release.namespaces, **release.changes)
    metadata = parse_variant_metadata(json.dumps(made).encode())
    target = AARCH64 if machine.machine == "aarch64" else X86_64
    (choice,) = choose_for_machines(Requirement("demo"), files, target, [machine], lambda _: metadata)
    return choice


@dataclass(frozen=True)
class Way:
    """A way to miss the GPU: the message ends with ``says``, and ``fixed`` is the state after the fix."""

    given: str
    machine: Machine
    release: Release
    says: str
    fix: str
    fixed: tuple[Machine, Release]
    outcome: Outcome = Outcome.FAIL


CPU = {"cpu": ["x86_64 :: level :: v3"]}
CU126 = {"cu126": [f"{LOWER} :: 12.6", f"{SM} :: 90_real"]}
CU120 = {"cu126": [f"{LOWER} :: 12.0", f"{SM} :: 90_real"]}
CU130 = {"cu130": [f"{LOWER} :: 13.0", f"{SM} :: 90_real"]}
NOTHING = "it supports no variant for a GPU"


def provided(variants: dict[str, list[str]], **changes: Any) -> Release:
    """A release whose provider of NVIDIA's namespace says this besides."""
    nvidia = {
        "requires": ["nvidia-variant-provider"],
        **{key.replace("_", "-"): value for key, value in changes.items()},
    }
    schema = {"schema": OLD_DRAFT} if "enable_if" in changes else {}
    return Release(variants, changes={"providers": {**PROVIDERS, "nvidia": nvidia}, **schema})


WAYS = [
    Way(
        "a driver that is too old, of the same major version of CUDA",
        H100_535,
        Release({**CU126, **CPU}),
        f"gets the variant cpu: {NOTHING}",
        f"Update the driver to one that supports CUDA 12.6 (branch 560). {CLAIM_12}",
        (replace(H100, driver="560", cuda="12.6"), Release({**CU126, **CPU})),
    ),
    Way(
        "the same, when who builds the wheels claims less",
        H100_535,
        Release(CU126),
        f"gets a wheel without a variant: {NOTHING}",
        f"Update the driver to one that supports CUDA 12.6 (branch 560). {CLAIM_12}",
        (H100_535, Release(CU120)),
    ),
    Way(
        "a driver of an older major version, where a lower claim helps no one",
        H100_470,
        Release(CU126),
        f"gets a wheel without a variant: {NOTHING}",
        "Update the driver to one that supports CUDA 12.6 (branch 560).",
        (replace(H100, driver="560", cuda="12.6"), Release(CU126)),
    ),
    Way(
        "a driver that is too old for PTX, which none of an older toolkit runs",
        H100_535,
        Release({"cu126": [f"{LOWER} :: 12.6", f"{SM} :: 90_virtual"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Update the driver to one that supports CUDA 12.6 (branch 560).",
        (replace(H100, driver="560", cuda="12.6"), Release({"cu126": [f"{LOWER} :: 12.6", f"{SM} :: 90_virtual"]})),
    ),
    Way(
        "two drivers would do, and the older one is the lesser change",
        H100_535,
        Release({**CU130, **CU126}),
        f"gets a wheel without a variant: {NOTHING}",
        f"Update the driver to one that supports CUDA 12.6 (branch 560). {CLAIM_12}",
        (replace(H100, driver="560", cuda="12.6"), Release({**CU130, **CU126})),
    ),
    Way(
        "a newer driver than the last one that has the GPU",
        V100,
        Release({"cu131": [f"{LOWER} :: 13.1", f"{SM} :: 70_real"]}),
        f"gets a wheel without a variant: {NOTHING}",
        CLAIM_12.replace("12.0", "13.0"),
        (V100, Release({"cu131": [f"{LOWER} :: 13.0", f"{SM} :: 70_real"]})),
    ),
    Way(
        "a CUDA that no known driver supports",
        H100,
        Release({"cu15": [f"{LOWER} :: 15.0", f"{SM} :: 90_real"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Build a variant with CUDA 13 that claims cuda_version_lower_bound 13.0: no known driver for H100 supports "
        "CUDA 15.0.",
        (H100, Release(CU130)),
    ),
    Way(
        "a lower bound that is spelled as the provider does not know it",
        H100,
        Release({"cu126": [f"{LOWER} :: 12.6.1", f"{SM} :: 90_real"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Claim cuda_version_lower_bound 13.0: NVIDIA's provider supports only MAJOR.MINOR, not 12.6.1.",
        (H100, Release({"cu126": [f"{LOWER} :: 13.0", f"{SM} :: 90_real"]})),
    ),
    Way(
        "a lower bound that is not a version",
        H100,
        Release({"cu126": [f"{LOWER} :: cu126", f"{SM} :: 90_real"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Build it without nvidia :: cuda_version_lower_bound :: cu126, which NVIDIA's provider does not support.",
        (H100, Release({"cu126": [f"{SM} :: 90_real"]})),
    ),
    Way(
        "no driver",
        H100_BARE,
        Release({**CU126, **CPU}),
        f"gets the variant cpu: {NOTHING}",
        "Install NVIDIA's driver, branch 560 or later: without it no variant for a GPU is supported.",
        (replace(H100, driver="560", cuda="12.6"), Release({**CU126, **CPU})),
    ),
    Way(
        "no driver, and a variant that not every driver may take",
        H100_BARE,
        Release({"cu126": [f"{LOWER} :: 12.0", f"{UPPER} :: 13"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Install NVIDIA's driver, branch 525 to 575: without it no variant for a GPU is supported.",
        (replace(H100, driver="575", cuda="12.9"), Release({"cu126": [f"{LOWER} :: 12.0", f"{UPPER} :: 13"]})),
    ),
    Way(
        "no driver, and a variant that any driver may take",
        H100_BARE,
        Release({"cu": [f"{SM} :: 90_real"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Install NVIDIA's driver: without it no variant for a GPU is supported.",
        (H100, Release({"cu": [f"{SM} :: 90_real"]})),
    ),
    Way(
        "no driver, and no code for the GPU: a driver alone would not do",
        T4_BARE,
        Release({"cu": [f"{SM} :: 90_real"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Install NVIDIA's driver: without it no variant for a GPU is supported. "
        "Build a variant for x86_64 that claims 75_real, or 70_virtual with PTX of compute_70.",
        (T4, Release({"cu": [f"{SM} :: 75_real"]})),
    ),
    Way(
        "no code for the GPU",
        T4,
        Release({**CU130, **CPU}),
        f"gets the variant cpu: {NOTHING}",
        "Build a variant for x86_64 that claims 75_real, or 70_virtual with PTX of compute_70.",
        (T4, Release({"cu130": [f"{LOWER} :: 13.0", f"{SM} :: 70_virtual"]})),
    ),
    Way(
        "no code for the GPU, and a driver that is too old",
        T4_535,
        Release({**CU130, "null": []}),
        f"gets the variant null: {NOTHING}",
        "Update the driver to one that supports CUDA 13.0 (branch 580). "
        "Build a variant for x86_64 that claims 75_real, or 70_virtual with PTX of compute_70.",
        (T4, Release({"cu130": [f"{LOWER} :: 13.0", f"{SM} :: 75_real"]})),
    ),
    Way(
        "an upper bound that the driver is beyond",
        H100,
        Release({"cu126": [f"{LOWER} :: 12.0", f"{UPPER} :: 13", f"{SM} :: 90_real"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Build the variant without cuda_version_upper_bound: a driver runs code from older toolkits.",
        (H100, Release(CU120)),
    ),
    Way(
        "a property that NVIDIA's provider does not know",
        H100,
        Release({"odd": ["nvidia :: nvlink :: on"]}),
        f"gets a wheel without a variant: {NOTHING}",
        "Build it without nvidia :: nvlink :: on, which NVIDIA's provider does not support.",
        (H100, Release({"odd": [f"{SM} :: 90_real"]})),
    ),
    Way(
        "no wheel for the platform",
        GH200,
        Release(CU130, platforms=[X86]),
        f"gets a wheel without a variant: {NOTHING}",
        "Also build cu130 for cp312 aarch64.",
        (GH200, Release(CU130)),
    ),
    Way(
        "no wheel for the platform, and a driver that is too old: a driver alone would not do",
        GH200_535,
        Release(CU130, platforms=[X86], plain=False),
        f"gets nothing: {NOTHING}",
        "Update the driver to one that supports CUDA 13.0 (branch 580). Also build cu130 for cp312 aarch64.",
        (GH200, Release(CU130)),
    ),
    Way(
        "a wheel that is yanked",
        H100,
        Release({**CU130, **CPU}, yanked=("cu130",)),
        f"gets the variant cpu: {NOTHING}",
        "Publish a wheel of cu130 for cp312 x86_64: the existing one is yanked.",
        (H100, Release({**CU130, **CPU})),
    ),
    Way(
        "a better CPU than the machine has",
        H100,
        Release({"cu130": [*CU130["cu130"], "x86_64 :: level :: v4"], **CPU}, namespaces=["nvidia", "x86_64"]),
        f"gets the variant cpu: {NOTHING}",
        "Build a variant for a GPU with x86-64-v3: without x86_64 :: level :: v4.",
        (H100, Release(CU130)),
    ),
    Way(
        "a namespace that is not ordered",
        H100,
        Release({**CU130, **CPU}, namespaces=["x86_64"]),
        f"gets the variant cpu: {NOTHING}",
        "List nvidia in default-priorities.namespace.",
        (H100, Release({**CU130, **CPU}, namespaces=["nvidia", "x86_64"])),
    ),
    Way(
        "a provider that is optional",
        H100,
        provided(CU130, optional=True),
        f"gets a wheel without a variant: {NOTHING}",
        "Remove `optional` from the provider of nvidia, or have users enable it in their installer.",
        (H100, Release(CU130)),
    ),
    Way(
        "a provider that is disabled",
        H100,
        provided(CU130, enable_if="sys_platform == 'win32'"),
        f"gets a wheel without a variant: {NOTHING}",
        "Correct enable-if of the provider of nvidia: it is false on cp312 x86_64.",
        (H100, provided(CU130, enable_if="sys_platform == 'linux'")),
    ),
    Way(
        "a list of values instead of a provider",
        H100,
        Release(CU130, changes={"providers": {"nvidia": {"static-properties": {"sm_arch": ["90_real"]}}}}),
        f"gets a wheel without a variant: {NOTHING}",
        "List nvidia :: cuda_version_lower_bound :: 13.0 in static-properties of the provider of nvidia.",
        (
            H100,
            Release(
                CU130,
                changes={
                    "providers": {
                        "nvidia": {
                            "static-properties": {"sm_arch": ["90_real"], "cuda_version_lower_bound": ["13.0"]},
                            "feature-order": ["cuda_version_lower_bound", "sm_arch"],
                        }
                    }
                },
            ),
        ),
    ),
    Way(
        "metadata of a revision that no installer knows",
        H100,
        Release(CU130, changes={"schema": "https://example.org/v9.json"}),
        f"gets a wheel without a variant: {NOTHING}",
        "Regenerate variants.json in a revision that installers support, such as "
        "https://variants-schema.wheelnext.dev/v0.2.0.json.",
        (H100, Release(CU130)),
    ),
    Way(
        "an order in which the CPU counts more",
        H100,
        Release({**CPU, **CU130}, namespaces=["x86_64", "nvidia"]),
        "gets the variant cpu instead of cu130 for its GPU: x86_64 has a higher priority",
        "Put nvidia before x86_64 in default-priorities.namespace.",
        (H100, Release({**CPU, **CU130}, namespaces=["nvidia", "x86_64"])),
    ),
    Way(
        "an order in which a better CPU counts more than a GPU next to a lesser one",
        replace(H100, cpu="x86-64-v4"),
        Release(
            {"cpu_v4": ["x86_64 :: level :: v4"], "cu130": [*CU130["cu130"], "x86_64 :: level :: v3"]},
            namespaces=["x86_64", "nvidia"],
        ),
        "gets the variant cpu_v4 instead of cu130 for its GPU: x86_64 has a higher priority",
        "Put nvidia before x86_64 in default-priorities.namespace.",
        (H100, Release({**CPU, **CU130}, namespaces=["nvidia", "x86_64"])),
    ),
    Way(
        "a namespace that no one here knows: the machine may get its variant",
        H100,
        Release({"cu130": [*CU130["cu130"], "abi_dependency :: torch :: 2.9"], **CPU}),
        "gets the variant cpu: it is unknown whether it supports cu130",
        "Install on such a machine to see what the provider of abi_dependency supports.",
        (H100, Release({**CU130, **CPU})),
        Outcome.ERROR,
    ),
    Way(
        "the same on a machine that is too old in any case",
        H100_535,
        Release({"cu130": [*CU130["cu130"], "abi_dependency :: torch :: 2.9"], **CPU}),
        f"gets the variant cpu: {NOTHING}",
        "Update the driver to one that supports CUDA 13.0 (branch 580). Install on such a machine to see what the "
        "provider of abi_dependency supports.",
        (H100, Release({**CU130, **CPU})),
    ),
]


def whl851(machine: Machine, release: Release) -> CheckResult:
    """The one result of the rule."""
    (result,) = judged("WHL851", gets(machine, release))
    return result


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.given)
def test_the_fix_is_right(way: Way) -> None:
    result = whl851(way.machine, way.release)

    assert result.outcome is way.outcome
    assert result.message == f"{way.machine.label} {way.says}"
    assert result.fix is not None
    assert result.fix.summary == way.fix
    assert whl851(*way.fixed).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("machine", "release"),
    [
        (H100, Release({**CU130, **CPU}, namespaces=["nvidia", "x86_64"])),
        (H100, Release(CPU)),  # no variant for a GPU: nothing to fall through
        (H100, Release({"cu130": [*CU130["cu130"], "abi_dependency :: torch :: 2.9"], **CU120})),
    ],
    ids=["its own", "none for GPUs", "another one than the unknown"],
)
def test_near_misses(machine: Machine, release: Release) -> None:
    assert whl851(machine, release).outcome is Outcome.PASS


def of_two_releases(newest: dict[str, list[str]] | None) -> CheckResult:
    """The rule's result for a driver 535, the variants of 2.0 (None for unreadable metadata), and a 1.0 for the CPU."""
    releases = {Version("2.0"): newest or CU130, Version("1.0"): CPU}
    files = [listed(f"demo-{version}-{X86}-{label}.whl") for version, made in releases.items() for label in made]

    def read(version: Version) -> VariantMetadata | Unavailable:
        if newest is None and version == Version("2.0"):
            return Unavailable("the index lists no demo-2.0-variants.json")
        return parse_variant_metadata(json.dumps(document(releases[version])).encode())

    (made,) = choose_for_machines(Requirement("demo"), files, X86_64, [H100_535], read)
    (result,) = judged("WHL851", made)
    return result


def test_a_cpu_variant_of_an_older_release_is_a_fall_too() -> None:
    result = of_two_releases(CU130)

    assert result.outcome is Outcome.FAIL
    assert result.message == f"{H100_535.label} gets the variant cpu of 1.0: {NOTHING} of 2.0"
    assert result.fix is not None
    assert result.fix.summary == "Update the driver to one that supports CUDA 13.0 (branch 580)."


def test_an_older_release_is_no_answer_when_the_newest_cannot_be_read() -> None:
    result = of_two_releases(None)

    assert result.outcome is Outcome.ERROR
    assert result.message == f"{H100_535.label} gets the variant cpu of 1.0: the index lists no demo-2.0-variants.json"


def test_a_newest_release_for_cpus_alone_is_no_fall() -> None:
    assert of_two_releases({"cpu": ["x86_64 :: level :: v4"]}).outcome is Outcome.PASS


def test_a_machine_without_a_gpu_may_prefer_the_cpu() -> None:
    result = whl851(Machine("x86_64", V3), Release({**CPU, **CU130}, namespaces=["x86_64", "nvidia"]))

    assert (result.outcome, result.message) == (Outcome.SKIP, "the machine has no GPU")


VALUES = [
    "12",
    "12.6",
    "13.0",
    "13.1",
    "15.9",
    "12.6.1",
    "90",
    "75_real",
    "80_real",
    "90_real",
    "90_virtual",
    "v3",
    "v4",
]
PROPERTIES = st.builds(
    " :: ".join,
    st.tuples(
        st.sampled_from(["nvidia", "x86_64", "aarch64", "intel"]),
        st.sampled_from(["cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch", "level", "version"]),
        st.sampled_from(VALUES),
    ),
)
PROVIDER = st.sampled_from(
    [
        {"requires": ["x"]},
        {"requires": ["x"], "optional": True},
        {"requires": ["x"], "enable-if": "sys_platform == 'win32'"},
        {"static-properties": {"sm_arch": ["90_real"], "level": ["v3"]}, "feature-order": ["sm_arch", "level"]},
    ]
)
RELEASES = st.builds(
    Release,
    st.dictionaries(
        st.sampled_from(["a", "b", "cpu", "null"]),
        st.lists(PROPERTIES, max_size=4, unique=True).map(sorted),
        max_size=4,
    ),
    st.sampled_from([(X86,), (X86, ARM)]),
    st.booleans(),
    st.sampled_from([(), ("a",)]),
    st.one_of(st.none(), st.permutations(["nvidia", "x86_64", "intel"]), st.just(["x86_64"])),
    st.fixed_dictionaries({"providers": st.dictionaries(st.sampled_from(["nvidia", "x86_64"]), PROVIDER)}),
)


@settings(max_examples=150)
@given(st.sampled_from([H100, H100_BARE, H100_470, V100, T4_535, GH200]), RELEASES)
def test_whatever_a_machine_misses_is_told_with_a_fix(machine: Machine, release: Release) -> None:
    made = gets(machine, release)
    (result,) = judged("WHL851", made)

    assert "crashed" not in result.message
    for_gpu = {label for label, claims in release.variants.items() if any("nvidia" in claim for claim in claims)}
    if made.release is None:  # all is yanked: nothing to choose from, which WHL401 shows
        assert result.outcome is Outcome.SKIP
    elif result.outcome is Outcome.PASS:
        assert not for_gpu or made.label in for_gpu
    else:
        assert result.fix is not None
