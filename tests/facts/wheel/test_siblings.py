"""The same release's wheels for other machines."""

from __future__ import annotations

import pytest

from tests.support.wheel_facts import facts_of, listed
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.accelerator.shown import AcceleratorContent
from wheel_checks.facts.wheel.facts import Sibling
from wheel_checks.facts.wheel.siblings import find_siblings

CPU = torch_like("cpu", "2.10.0", "aarch64")
CUDA = torch_like("cuda", "2.10.0", "x86_64")


def test_of_a_wheel_that_was_read_everything_is_exact() -> None:
    (sibling,) = find_siblings(facts_of(CPU), [listed(CUDA.file_name)], {CUDA.file_name: facts_of(CUDA)})

    assert sibling == Sibling(CUDA.file_name, "x86_64", "cuda", "12.8", "exact", "read in this run")


def test_of_a_wheel_that_was_not_read_the_requirements_declare_it() -> None:
    (sibling,) = find_siblings(facts_of(CPU), [listed(CUDA.file_name)], {})

    assert sibling == Sibling(
        CUDA.file_name,
        "x86_64",
        "cuda",
        "12.8",
        "declared",
        "nvidia-cuda-runtime-cu12==12.8.90, nvidia-cublas-cu12==12.8.4.1 and 2 more: active on linux x86_64",
    )


@pytest.mark.parametrize(("requires", "certainty"), [([], "exact"), (["nvidia-cublas-cu12"], "declared")])
def test_a_sibling_without_native_members_has_no_accelerator_unless_it_requires_one(
    requires: list[str], certainty: str
) -> None:
    sources = WheelBuilder("demo", "1.0", "py3-none-manylinux_2_17_aarch64").metadata(
        requires=[f'{name}; platform_machine == "x86_64"' for name in requires]
    )
    name = "demo-1.0-py3-none-manylinux_2_17_x86_64.whl"

    (sibling,) = find_siblings(facts_of(sources), [listed(name)], {}, {name: AcceleratorContent()})

    assert (sibling.accelerator, sibling.certainty) == ("cuda" if requires else "none", certainty)


def test_a_broken_wheel_is_no_exact_sibling() -> None:
    broken = facts_of(b"no wheel", CUDA.file_name)

    (sibling,) = find_siblings(facts_of(CPU), [listed(CUDA.file_name)], {CUDA.file_name: broken})

    assert sibling.certainty == "declared"


@pytest.mark.parametrize(
    "file_name",
    [
        CPU.file_name,
        torch_like("cuda", "2.11.0", "x86_64").file_name,
        torch_like("cuda", "2.10.0", "x86_64", python="cp313").file_name,
        "torch-2.10.0-cp312-cp312-win_amd64.whl",
        "torch-2.10.0-py3-none-any.whl",
        "torch-2.10.0.tar.gz",
        "torch.whl",
    ],
)
def test_no_siblings_are(file_name: str) -> None:
    assert find_siblings(facts_of(CPU), [listed(file_name)], {}) == ()


def test_another_build_and_another_manylinux_are_siblings_too() -> None:
    names = [
        "torch-2.10.0-3-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.10.0-cp312-cp312-manylinux2014_x86_64.whl",
    ]

    siblings = find_siblings(facts_of(CPU), map(listed, names), {})

    assert [sibling.file_name for sibling in siblings] == names


@pytest.mark.parametrize("file_name", ["torch.whl", "torch-2.10.0-py3-none-any.whl"])
def test_a_wheel_of_no_machine_has_none(file_name: str) -> None:
    assert find_siblings(facts_of(WheelBuilder(), file_name), [listed(CUDA.file_name)], {}) == ()
