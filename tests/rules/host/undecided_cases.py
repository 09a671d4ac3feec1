"""DOC002 to DOC004: is there a torch, are there the GPUs that are expected, and does it compute?"""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import Case
from tests.support.hosts import healthy, hgx, replaced, without_gpu
from wheel_checks.facts.gpu.expected import parse_host_expectation
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.model import Unavailable

CPU = {"host": parse_host_expectation("cpu")}
FILE = "/opt/env/lib/python3.12/site-packages/torch/__init__.py"
SAYS = ("torch is not installed for /opt/env/bin/python",)


def without_torch(facts: HostFacts) -> HostFacts:
    return replaced(replace(facts, torch=Unavailable("no torch was found")), "installed", torch=None)


def on_cpu(said: str) -> HostFacts:
    facts = healthy()
    assert isinstance(facts.torch, TorchProbe)
    return replace(facts, torch=replace(facts.torch, available=False, computes=None, computes_on_cpu=said))


CASES = [
    Case(
        "DOC002",
        "an environment without torch, on a machine with a GPU",
        lambda: without_torch(healthy()),
        SAYS,
        evidence=("/opt/env/bin/python",),
    ),
    Case(
        "DOC002",
        "an environment without torch, on a machine without a GPU",
        lambda: without_torch(without_gpu(healthy())),
        SAYS,
    ),
    Case(
        "DOC002",
        "a torch without metadata",
        lambda: replaced(healthy(), "installed", torch=None),
        (f"torch 2.11.0+cu130 in {FILE} has no metadata: for pip and uv it is not installed",),
    ),
    Case("DOC002", "an environment with torch", healthy),
    Case(
        "DOC003",
        "one GPU where two are expected",
        healthy,
        ("expected: 2 x H200; found: NVIDIA H200",),
        expectations={"host": parse_host_expectation("2 x H200")},
    ),
    Case(
        "DOC003",
        "GPUs of another kind",
        lambda: hgx(4),
        ("expected: 4 x GB200; found: 4 x NVIDIA H200",),
        expectations={"host": parse_host_expectation("4xGB200")},
    ),
    Case(
        "DOC003",
        "no GPU where one is expected",
        lambda: without_gpu(healthy()),
        ("expected: GPU; found: no GPU",),
        expectations={"host": parse_host_expectation("gpu")},
    ),
    Case("DOC003", "those that are expected", hgx, expectations={"host": parse_host_expectation("8 x h200")}),
    Case("DOC003", "any GPU", healthy, expectations={"host": parse_host_expectation("GPU")}),
    Case(
        "DOC003",
        "a CPU is expected",
        lambda: without_gpu(healthy()),
        expectations={"host": parse_host_expectation("cpu")},
    ),
    Case(
        "DOC003",
        "a GPU of another maker",
        healthy,
        ("expected: AMD GPU; found: NVIDIA H200",),
        expectations={"host": parse_host_expectation("rocm")},
    ),
    Case(
        "DOC003",
        "a target of another maker",
        healthy,
        ("expected: gfx942; found: NVIDIA H200",),
        expectations={"host": parse_host_expectation("gfx942")},
    ),
    Case(
        "DOC004",
        "a wrong product",
        lambda: on_cpu("the product of two matrices is wrong by 2"),
        ("torch 2.11.0+cu130 does not compute correctly on the CPU: the product of two matrices is wrong by 2",),
    ),
    Case("DOC004", "a right product", lambda: on_cpu("")),
    Case("DOC004", "it was not tried", healthy),
]
