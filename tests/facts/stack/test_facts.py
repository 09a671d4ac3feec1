"""The demands among packages, and the chain from the user's requirement."""

from __future__ import annotations

from packaging.requirements import Requirement

from tests.support.wheel_facts import AARCH64, X86_64
from wheel_checks.facts.stack.facts import Demand, LinkedPackage, chain_to, find_demands
from wheel_checks.targets.target import Target


def linked(name: str, version: str, *requirements: str) -> LinkedPackage:
    return LinkedPackage(name, version, tuple(map(Requirement, requirements)))


STACK = [
    linked("vllm", "0.19.0", "torch==2.10.0", "xgrammar", 'triton==3.6.0; platform_machine == "x86_64"'),
    linked("xgrammar", "0.2.8", "torch>=1.10", "numpy"),
    linked("torch", "2.10.0"),
    linked("numpy", "2.4.0"),
    linked("triton", "3.6.0"),
]
LABELS = {package.label: package.name for package in STACK}


def demands(
    *asked: str, packages: list[LinkedPackage] = STACK, target: Target = AARCH64
) -> dict[str, tuple[Demand, ...]]:
    return find_demands([Requirement(text) for text in asked], packages, target)


def told(found: tuple[Demand, ...]) -> list[str]:
    return list(map(str, found))


def test_every_demand_on_a_package_the_nearest_first() -> None:
    found = demands("vllm==0.19.0")
    assert told(found["torch"]) == ["vllm 0.19.0 requires torch==2.10.0", "xgrammar 0.2.8 requires torch>=1.10"]
    assert told(found["vllm"]) == ["you ask for vllm==0.19.0"]


def test_the_chain_leads_from_what_was_asked_for() -> None:
    found = demands("vllm==0.19.0")
    assert told(chain_to("numpy", found, LABELS)) == [
        "you ask for vllm==0.19.0",
        "vllm 0.19.0 requires xgrammar",
        "xgrammar 0.2.8 requires numpy",
    ]
    assert told(chain_to("torch", found, LABELS))[-1] == "vllm 0.19.0 requires torch==2.10.0"


def test_what_the_user_asks_for_needs_no_chain() -> None:
    found = demands("vllm==0.19.0", "torch")
    assert told(chain_to("torch", found, LABELS)) == ["you ask for torch"]


def test_markers_are_those_of_the_target() -> None:
    assert "triton" not in demands("vllm==0.19.0")
    assert told(demands("vllm==0.19.0", target=X86_64)["triton"]) == ["vllm 0.19.0 requires triton==3.6.0"]


def test_extras_are_followed_also_when_they_are_asked_for_later() -> None:
    packages = [
        linked("a", "1", "base", "b"),
        linked("b", "1", "base[more]"),
        linked("base", "1", 'extra1; extra == "more"', 'extra2; extra == "other"'),
        linked("extra1", "1"),
    ]
    found = demands("a", packages=packages)
    assert told(found["extra1"]) == ["base 1 requires extra1"]
    assert "extra2" not in found


def test_packages_that_require_each_other_end() -> None:
    packages = [linked("a", "1", "b"), linked("b", "1", "a")]
    found = demands(packages=packages)
    assert told(found["a"]) == ["b 1 requires a"]
    assert chain_to("a", found, {"a 1": "a", "b 1": "b"})
