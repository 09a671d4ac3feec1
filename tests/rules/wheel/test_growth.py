"""Every rule of wheels, on wheels with more and more of one thing: the cost is linear, the report bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.growth import assert_at_most_doubles
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.runner import run_rules

SIZE = 150
MOST_TOLD = 400_000  # characters of all results together; some quote names of 100 characters


def with_members(name: Callable[[int], str], **options: Any) -> Callable[[int], WheelBuilder]:
    """A maker of wheels with as many members as it is requested."""

    def make(count: int) -> WheelBuilder:
        wheel = WheelBuilder()
        for number in range(count):
            wheel.add(name(number), b"x", **options)
        return wheel

    return make


def with_rows(row: Callable[[int], str]) -> Callable[[int], WheelBuilder]:
    """A maker of wheels with as many more lines in RECORD."""

    def make(count: int) -> WheelBuilder:
        wheel = WheelBuilder()
        for number in range(count):
            wheel.record_extra(row(number))
        return wheel

    return make


def with_links(count: int) -> WheelBuilder:
    """A wheel with symbolic links."""
    wheel = WheelBuilder()
    for number in range(count):
        wheel.symlink(f"demo/link{number}", "/etc/passwd")
    return wheel


SHAPES: dict[str, Callable[[int], WheelBuilder]] = {
    "dist-info folders": with_members(lambda n: f"d{n}-1.dist-info/METADATA"),
    "dist-info folders of our name": with_members(lambda n: f"demo-1.{n}.dist-info/RECORD"),
    "dist-info folders without RECORD": lambda count: with_members(lambda n: f"d{n}-1.dist-info/METADATA")(
        count
    ).dist_info_file("RECORD", None),
    "data folders": with_members(lambda n: f"demo-{n}.data/scripts/run"),
    "schemes": with_members(lambda n: f"demo-1.0.data/scheme{n}/x"),
    "scripts": with_members(lambda n: f"demo-1.0.data/scripts/run{n}"),
    "climbing names": with_members(lambda n: f"../evil{n}.py"),
    "absolute names": with_members(lambda n: f"/etc/{n}"),
    "equal names": with_members(lambda _: "demo/a.py"),
    "names that differ by case": with_members(lambda n: "demo/" + "".join("aA"[n >> bit & 1] for bit in range(12))),
    "files that are folders": with_members(lambda n: f"demo/d{n // 2}" + "/x" * (n % 2)),
    "reserved names": with_members(lambda n: f"demo/{n}/nul.txt"),
    "long names": with_members(lambda n: f"demo/{n}/" + "x" * 300),
    "packages with a version": with_members(lambda n: f"p{n}/version.py"),
    "path files": with_members(lambda n: f"p{n}.pth"),
    "files that are not libraries": with_members(lambda n: f"demo/lib{n}.so"),
    "links": with_links,
    "encrypted members": with_members(lambda n: f"demo/{n}.bin", flags=0x1),
    "unknown methods": with_members(lambda n: f"demo/{n}.bin", method=93),
    "rows in vain": with_rows(lambda n: f"demo/{n}.py,sha256={'A' * 43},1"),
    "rows of one file": with_rows(lambda _: f"demo/a.py,sha256={'A' * 43},1"),
    "rows without a hash": with_rows(lambda n: f"demo/{n}.py,,1"),
    "rows of RECORD itself": with_rows(lambda _: "demo-1.0.dist-info/RECORD,,"),
    "requirements": lambda count: WheelBuilder().metadata(requires=[f"p{n}>=1" for n in range(count)]),
    "requirements of one project": lambda count: WheelBuilder().metadata(requires=["p>=1"] * count),
    "requirements that do not parse": lambda count: WheelBuilder().metadata(requires=["p=>1"] * count),
    "requirements from URLs": lambda count: WheelBuilder().metadata(requires=["p @ https://e.test/p.whl"] * count),
    "markers": lambda count: WheelBuilder().metadata(requires=["p; python_version > '3'"] * count),
    "a long marker": lambda count: WheelBuilder().metadata(requires=["p; " + " or ".join(["'a' == 'b'"] * count)]),
    "specifiers": lambda count: WheelBuilder().metadata(requires=["p" + ",".join(f">={n}" for n in range(count))]),
    "extras": lambda count: WheelBuilder().metadata(*(f"Provides-Extra: e{n}" for n in range(count))),
    "classifiers": lambda count: WheelBuilder().metadata(*(f"Classifier: A :: {n}" for n in range(count))),
    "lines of METADATA": lambda count: WheelBuilder().metadata(*(f"Dynamic: x{n}" for n in range(count))),
    "versions in Requires-Python": lambda count: WheelBuilder().metadata(
        requires_python=",".join(f">=3.{n}" for n in range(count))
    ),
    "tags": lambda count: WheelBuilder().wheel(tags=[f"py3-none-linux{n}" for n in range(count)]),
    "lines of WHEEL": lambda count: WheelBuilder().wheel(*(f"Generator: {n}" for n in range(count))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rule_is_linear(shape: str) -> None:
    rules = select_rules("wheel")

    def make(count: int) -> WheelFacts:
        return facts_of(SHAPES[shape](count), depth=Depth.FULL)

    told = 0

    def judge(facts: WheelFacts) -> None:
        nonlocal told
        told = sum(len(repr(result)) for result in run_rules(rules, facts, Expectations()))

    assert_at_most_doubles(SHAPES[shape], lambda wheel: facts_of(wheel, depth=Depth.FULL), SIZE)
    assert_at_most_doubles(make, judge, SIZE)
    assert told < MOST_TOLD
