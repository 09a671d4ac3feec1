"""The least glibc and driver of a stack, from names and accelerators of its packages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.wheel_facts import AARCH64
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.stack.facts import WHEEL, StackFacts, StackPackage
from wheel_checks.facts.stack.needs import Glibc, distributions_with, glibc_of_tags, stack_needs


def package(name: str, platform: str, cuda: str = "") -> StackPackage:
    """Version 1.0 of a package, whose wheel is for this platform tag and this CUDA."""
    accelerator = AcceleratorFacts("cuda" if cuda else "none", cuda, "", ())
    file_name = f"{name}-1.0-cp312-cp312-{platform}.whl"
    return StackPackage(name, "1.0", AARCH64, WHEEL, accelerator, file_name)


def stack(*packages: StackPackage) -> StackFacts:
    return StackFacts(("demo",), AARCH64, packages)


def test_the_newest_of_all_needs_is_the_least_of_the_stack() -> None:
    needs = stack_needs(
        stack(
            package("torch", "manylinux_2_28_aarch64", "13.0"),
            package("ort", "manylinux_2_34_aarch64", "12.8"),
            package("pure", "any"),
        )
    )

    assert needs.sentences == (
        "needs glibc 2.34 (ort 1.0): RHEL 9, Amazon Linux 2023, Ubuntu 22.04, Debian 12; assumed: 2.39",
        "needs driver 580 or later (torch 1.0: CUDA 13.0)",
    )


def test_symbol_versions_count_where_they_are_newer_than_the_tag() -> None:
    torch = package("torch", "manylinux_2_28_aarch64")
    newer, older = (stack_needs(stack(torch), {torch.file_name: version}).glibc for version in ((2, 38), (2, 17)))

    assert newer is not None
    assert older is not None
    assert (newer.version, newer.source) == ((2, 38), "symbol versions")
    assert (older.version, older.source) == ((2, 28), "platform tag")


@pytest.mark.parametrize(
    ("requires", "patch", "needed"),
    [
        ([">=3.12.4", ">=3.8", "", "not a specifier"], None, "3.12.4"),
        ([">=3.12.4,!=3.12.5", ">3.12.4"], None, "3.12.6"),
        ([">=3.12"], None, ""),
        ([">=3.12.4"], 9, ""),  # the user named the patch release
        ([">=3.13"], None, ""),  # no release of 3.12 is enough: that is another rule's finding
    ],
)
def test_the_oldest_sufficient_patch_release_of_python(requires: list[str], patch: int | None, needed: str) -> None:
    target = replace(AARCH64, python=(3, 12), patch=patch)
    needs = stack_needs(StackFacts(("demo",), target, (package("pure", "any"),)), pythons=requires)

    assert needs.python == needed
    assert needs.condition(with_driver=True) == (f"Python {needed} or newer" if needed else "")


@pytest.mark.parametrize(
    ("gpus", "needed"), [("H100", "525.60.13"), ("B200", "570"), ("B200,GB300", "575"), ("MI300X", "525.60.13")]
)
def test_a_gpu_that_is_newer_than_the_driver_of_the_wheels(gpus: str, needed: str) -> None:
    torch = stack(package("torch", "manylinux_2_28_aarch64", "12.8"))

    assert stack_needs(torch, gpus=parse_gpus(gpus)).condition(with_driver=True) == (
        f"driver {needed} or newer and glibc 2.28 or newer"
    )
    assert stack_needs(stack(package("pure", "any")), gpus=parse_gpus(gpus)).driver is None


def test_a_stack_of_pure_packages_needs_nothing() -> None:
    assert stack_needs(stack(package("pure", "any"))).sentences == ()


def test_a_cuda_that_the_table_does_not_have_says_nothing() -> None:
    assert stack_needs(stack(package("torch", "any", "99.0"))).driver is None


@pytest.mark.parametrize(
    ("platform", "glibc"),
    [
        ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", (2, 27)),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", (2, 17)),
        ("manylinux1_x86_64.manylinux_2_5_x86_64", (2, 5)),
        ("manylinux2014_aarch64", (2, 17)),
        ("musllinux_1_2_x86_64", None),
        ("any", None),
    ],
)
def test_what_tags_promise(platform: str, glibc: Glibc | None) -> None:
    assert glibc_of_tags(f"demo-1.0-cp312-cp312-{platform}.whl") == glibc


def test_a_glibc_newer_than_the_table_is_in_no_known_distribution() -> None:
    assert distributions_with((2, 99)) == ()
