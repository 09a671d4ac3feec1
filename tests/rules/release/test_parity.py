"""The pairs that parity is checked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.pairs import difference, library, wheel_for
from tests.support.wheel_facts import facts_of, judged
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.difference.libraries import LinkDifference
from wheel_checks.facts.difference.wheels import Compared, Difference, compare_wheels
from wheel_checks.model import Outcome

RULES = [rule.id for rule in select_rules("pair", ["REL"])]


def outcomes(pair: Difference) -> dict[str, Outcome]:
    return {rule: judged(rule, pair)[0].outcome for rule in RULES}


@pytest.mark.parametrize(
    "b",
    [
        wheel_for(version="1.1"),
        WheelBuilder("other", "1.0", "cp312-cp312-manylinux_2_28_aarch64"),
    ],
    ids=["another release", "another project"],
)
def test_of_what_is_not_one_release_nothing_is_asked(b: WheelBuilder) -> None:
    assert set(outcomes(difference(wheel_for(), b)).values()) == {Outcome.SKIP}


def test_two_local_versions_differ_on_purpose() -> None:
    pair = difference(torch_like("cpu", "2.11.0+cpu"), torch_like("cuda", "2.11.0+cu130"))

    assert set(outcomes(pair).values()) == {Outcome.SKIP}


def test_a_local_build_is_held_against_the_release_that_it_is_of() -> None:
    pair = difference(torch_like("cpu", "2.11.0+cpu"), torch_like("cuda", "2.11.0"))

    assert outcomes(pair)["REL201"] is Outcome.FAIL


def test_what_follows_from_another_accelerator_is_not_told_again() -> None:
    found = outcomes(difference(torch_like("cpu", "2.11.0"), torch_like("cuda", "2.11.0", "x86_64")))

    assert {rule for rule, outcome in found.items() if outcome is Outcome.FAIL} == {"REL201", "REL204"}
    assert {rule for rule, outcome in found.items() if outcome is Outcome.SKIP} == {
        "REL203",
        "REL205",
        "REL206",
        "REL207",
    }


def test_a_wheel_against_itself_has_nothing_to_tell() -> None:
    assert set(outcomes(difference(torch_like(), torch_like())).values()) == {Outcome.PASS}


def test_what_was_not_read_is_skipped_with_the_way_to_read_it() -> None:
    pair = compare_wheels(facts_of(wheel_for()), facts_of(wheel_for()))

    found = {rule: judged(rule, pair)[0] for rule in RULES}

    assert {rule for rule, result in found.items() if result.outcome is Outcome.SKIP} == {"REL205", "REL207"}
    assert "--depth gpu" in found["REL205"].message
    assert "--depth links" in found["REL207"].message


def test_what_could_not_be_read_of_a_library_is_no_pass() -> None:
    a, b = wheel_for("aarch64").add("demo/lib.so", library()), wheel_for("x86_64").add("demo/lib.so", bytes(500))
    pair = difference(a, b)
    possible = replace(pair, links=Compared((LinkDifference("demo/lib.so", maybe_b=("libcublas.so.13",)),), 0))
    harmless = replace(
        pair, links_unread=(), links=Compared((LinkDifference("demo/lib.so", maybe_b=("libm.so.6",)),), 0)
    )

    unread = judged("REL207", pair)[0]
    assert unread.outcome is Outcome.SKIP
    assert "the dynamic section of demo/lib.so was not" in unread.message
    assert judged("REL207", replace(possible, links_unread=()))[0].outcome is Outcome.SKIP
    assert judged("REL207", harmless)[0].outcome is Outcome.PASS
    assert judged("REL205", replace(pair, gpu_code_unread=("demo/lib.so",)))[0].outcome is Outcome.SKIP
