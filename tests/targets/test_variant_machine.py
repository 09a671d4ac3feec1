"""The features of a described machine: NVIDIA's provider and those of the CPUs, as tables."""

from __future__ import annotations

import pytest

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.formats.wheel.variant_metadata import VariantProvider
from wheel_checks.targets.variant_machine import Machine, cpu_of, parse_cpu

GB200 = Machine("aarch64", "Grace", "GB200", 100, "580", "13.0")


def test_cuda_bounds_are_what_the_provider_answers_for_12_7() -> None:
    """The values that NVIDIA's own tests of the provider expect of CUDA 12.7 and capability 12.5."""
    features = Machine("x86_64", "x86-64-v3", "sm_125", 125, "565", "12.7").features("nvidia")

    assert features is not None
    assert list(features) == ["cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch"]
    lower, upper, sm = features.values()
    assert (lower[0], lower[-1]) == ("12.7", "11")
    assert {"12", "12.0", "11.20"} <= set(lower)
    assert (upper[0], upper[-1]) == ("15.20", "12.8")
    assert "13" in upper
    assert not {"12.7", "12"} & set(upper)
    assert (sm[0], sm[-1], len(sm)) == ("125_real", "120_virtual", 7)


def test_no_driver_no_properties_of_nvidia() -> None:
    assert Machine("x86_64", "x86-64-v3", "H100", 90).features("nvidia") == {}
    assert Machine("x86_64", "x86-64-v3").features("nvidia") == {}


def test_a_cpu_has_its_levels_and_those_below_in_the_order_of_the_provider() -> None:
    grace, plain = GB200.features("aarch64"), Machine("x86_64", "x86-64-v3").features("x86_64")

    assert grace is not None
    assert plain is not None
    assert grace["version"] == ("9.0a", "8.5a", "8.4a", "8.3a", "8.2a", "8.1a", "8a")
    assert list(grace)[:4] == ["version", "sve2", "flagm2", "frint"]
    assert plain["level"] == ("v3", "v2", "v1")
    assert plain["avx2"] == ("on",)
    assert "avx512f" not in plain


def test_the_other_cpu_has_nothing_and_an_unknown_namespace_is_unknown() -> None:
    assert GB200.features("x86_64") == {}
    assert GB200.features("intel") is None


def test_a_provider_that_only_lists_values_is_believed_in_its_order() -> None:
    provider = VariantProvider(
        static_properties={"interface": ("ilp64",), "library": ("mkl", "openblas")}, feature_order=("library",)
    )

    assert GB200.supported("blas", provider) == {"library": ("mkl", "openblas"), "interface": ("ilp64",)}
    assert GB200.supported("blas", None) is None


@pytest.mark.parametrize(
    ("text", "cpu"),
    [
        ("x86-64-v4", "x86-64-v4"),
        ("v2", "x86-64-v2"),
        ("grace", "Grace"),
        ("8.2a", "Armv8.2-A"),
        ("ARMv9.0-A", "Armv9.0-A"),
    ],
)
def test_a_cpu_has_several_spellings(text: str, cpu: str) -> None:
    assert parse_cpu(text)[0] == cpu


def test_an_unknown_cpu_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="the CPU 'v9' is unknown; expected one of x86-64-v1"):
        parse_cpu("v9")


def test_the_cpu_follows_from_the_product() -> None:
    assert cpu_of("GH200", "aarch64") == "Grace"
    assert cpu_of("H100", "x86_64") == "x86-64-v3"
    assert cpu_of("H100", "aarch64") == "Armv8-A"


def test_the_table_names_products_cpus_and_namespaces_that_exist() -> None:
    products = {row["name"]: row["machine"] for row in load("products")["product"]}
    table = load("variant_machines")
    names = [row["name"] for row in table["cpu"]]

    assert len(set(names)) == len(names)
    for row in table["cpu"]:
        assert row.get("below", names[0]) in names
        assert all(products[product] == row["namespace"] for product in row.get("products", ()))
    known = {row["name"] for row in load("variants")["namespace"]}
    assert known == {"nvidia", *(row["name"] for row in table["cpu_namespace"])}
