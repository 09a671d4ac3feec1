"""``wheelproof diff`` of two variants of one release."""

from __future__ import annotations

import json

from tests.conftest import Wheelproof
from tests.support.elf import Elf
from tests.support.fatbin import fat_binary, section
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.variants import VariantWheel, variant

CU126 = ["nvidia :: cuda_version_lower_bound :: 12.6", "nvidia :: sm_arch :: 80_real", "nvidia :: sm_arch :: 90_real"]
CU130 = ["nvidia :: cuda_version_lower_bound :: 13.0", "nvidia :: sm_arch :: 100_real", "nvidia :: sm_arch :: 90_real"]
WHERE = ("--platform", "x86_64", "--python", "3.12")


def cuda_wheel(label: str, properties: list[str], *targets: str) -> VariantWheel:
    wheel = variant(label, properties)
    wheel.add("demo/_C.so", Elf(contents={".nv_fatbin": section(fat_binary(*targets))}).build().data)
    return wheel


WHEELS = [cuda_wheel("cu126", CU126, "sm_80", "sm_90"), cuda_wheel("cu130", CU130, "sm_90", "sm_100"), variant("null")]


def test_two_variants_are_compared_by_their_claims_and_their_code(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*WHEELS)) as server:
        on = ("diff", "demo==1.0", "--index-url", server.url("/simple"), "--variant", "cu126,cu130", *WHERE)
        shown = wheelproof(*on, "--depth", "gpu")
        run = wheelproof(*on, "--depth", "gpu", "--format", "json")

    assert run.status == 0
    (pair,) = json.loads(run.out)["subjects"]
    assert pair["id"] == "demo 1.0 cp312 x86_64: variant cu126 against variant cu130"
    assert pair["facts"]["differences"]["variant"] == [
        {"name": "nvidia :: cuda_version_lower_bound", "a": "12.6", "b": "13.0"},
        {"name": "nvidia :: sm_arch", "a": "80_real, 90_real", "b": "100_real, 90_real"},
    ]
    (code,) = pair["facts"]["differences"]["gpu_code"]
    assert (code["a"], code["b"]) == (["sm_80", "sm_90"], ["sm_90", "sm_100"])
    assert {result["outcome"] for result in pair["results"] if result["rule"].startswith("REL")} == {"skip"}
    assert "variant properties" in shown.out
    assert "nvidia :: sm_arch" in shown.out


def test_a_set_of_variants_is_paired_by_label(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*WHEELS, *(other("2.0", label) for label in ("cu130", "null", "cu140")))) as server:
        run = wheelproof(
            "diff", "demo==1.0", "demo==2.0", "--index-url", server.url("/simple"), "--all-files", "--format", "json"
        )

    comparison = json.loads(run.out)["subjects"][0]
    labels = [[name.removesuffix(".whl").rpartition("-")[2] for name in pair] for pair in comparison["facts"]["pairs"]]
    assert labels == [["cu130", "cu130"], ["null", "null"]]


def other(version: str, label: str) -> VariantWheel:
    return variant(label, [] if label == "null" else CU130, version=version)


def test_a_label_that_nothing_has(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*WHEELS)) as server:
        on = ("diff", "demo==1.0", "--index-url", server.url("/simple"), *WHERE)
        run = wheelproof(*on, "--variant", "cu126,cu999")

    assert run.status == 3
    assert "demo==1.0 has no wheel for x86_64 and Python 3.12 and variant cu999" in run.err
