"""Rates of hosts: who is slow is said where three hosts, or six GPUs, were measured, and otherwise nothing is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.fleet_cases import hosts, timed
from tests.support.wheel_facts import judged
from wheel_checks.facts.fleet.hosts import FleetFacts
from wheel_checks.facts.fleet.rates import FAR, Measured, Usual, judge, rates_in
from wheel_checks.facts.fleet.topology import NOWHERE, Topology
from wheel_checks.model import Outcome, Severity
from wheelproof.fleet.maps import rate_table


@pytest.mark.parametrize("fleet", [FleetFacts(hosts(a=4)), timed(4.25, 1.88), timed("nan", "x", 4.25, 4.2)])
def test_without_rates_of_three_hosts_nothing_is_judged(fleet: FleetFacts) -> None:
    (result,) = judged("MTX207", fleet)
    assert result.outcome is Outcome.SKIP
    assert result.message.startswith("no rate was measured on 3 hosts, or 6 GPUs, of the same kind (")


HEALTHY = {"copy": (4.25e12, 4.27e12), "bf16": (745e12, 806e12), "fp8": (1405e12, 1553e12)}


@given(st.sampled_from(sorted(HEALTHY)), st.data())
def test_rates_within_what_healthy_gpus_were_measured_at_are_never_slow(kind: str, data: st.DataObject) -> None:
    low, high = HEALTHY[kind]
    rates = data.draw(st.lists(st.floats(low, high), min_size=3, max_size=40))
    rates += [rates[0]] * data.draw(st.integers(0, 2000))  # however narrow the others are
    measured = (Measured(str(n), f"GPU 0 {kind}", kind, "NVIDIA H200", rate) for n, rate in enumerate(rates))
    assert judge(measured, NOWHERE).slow == ()


@pytest.mark.parametrize("hosts", [3, 8, 72, 500])
def test_a_gpu_whose_bandwidth_is_8_percent_low_is_named(hosts: int) -> None:
    rates = [4.25e12 + 0.02e12 * (n % 5) / 4 for n in range(hosts)]
    rates[1] *= 0.92
    measured = (Measured(str(n), "GPU 0 copy", "copy", "NVIDIA H200", rate) for n, rate in enumerate(rates))
    assert [one.host for one in judge(measured, NOWHERE).slow] == ["1"]


def test_one_gpu_of_eight_in_one_host_is_named() -> None:
    rates = [4.25e12, 4.26e12, 4.26e12, 3.92e12, 4.27e12, 4.25e12, 4.26e12, 4.26e12]
    measured = (Measured("a", f"GPU {n} copy", "copy", "NVIDIA H200", rate) for n, rate in enumerate(rates))
    assert [one.fact for one in judge(measured, NOWHERE).slow] == ["GPU 3 copy"]


def test_an_all_reduce_is_compared_between_hosts_with_the_same_gpus() -> None:
    facts = {"GPUs": ", ".join(["NVIDIA GB200"] * 4), "rate of all-reduce": "6.5e11"}
    (rate,) = rates_in("a", "smoke", facts)
    assert (rate.product, rate.kind) == ("4 x NVIDIA GB200", "all-reduce")


def test_products_are_not_compared_with_each_other() -> None:
    products = ["NVIDIA H100"] * 4 + ["NVIDIA H200"] * 40
    measured = (
        Measured(str(n), "GPU 0 copy", "copy", product, 3.0e12 if product.endswith("H100") else 4.26e12)
        for n, product in enumerate(products)
    )
    found = judge(measured, NOWHERE)
    assert found.slow == ()
    assert {(one.product, one.hosts) for one in found.compared} == {("NVIDIA H100", 4), ("NVIDIA H200", 40)}


def test_gpus_of_two_products_in_one_host() -> None:
    facts = {"GPUs": "NVIDIA L4, NVIDIA H200", "rate of GPU 0 copy": "3e11", "rate of GPU 1 copy": "4.26e12"}
    assert [(one.product, one.kind) for one in rates_in("a", "smoke", facts)] == [
        ("NVIDIA L4", "copy"),
        ("NVIDIA H200", "copy"),
    ]


def test_the_rates_of_slow_hosts_are_a_table_with_a_mark_for_what_is_slow() -> None:
    (table,) = rate_table(timed(4.25, 4.26, 4.27, 3.92))
    assert table.rows == (("n3", "! 92.1", "92.1"),), "products vary more than copies"
    assert table.states == {(0, 1): Severity.WARNING}
    assert not list(rate_table(timed(4.25, 4.26, 4.27, 4.26)))


def test_a_rate_at_the_limit_is_not_low() -> None:
    usual = Usual("copy", "NVIDIA H200", median=100.0, deviation=0.01, spread=0.005, hosts=20, values=20)
    assert usual.far(94.0) == FAR
    assert not usual.is_low(94.0)
    assert usual.is_low(93.9)


@pytest.mark.parametrize(
    ("kind", "rate", "is_slow"),
    [
        ("bf16", 962.0, True),  # exactly half of the spread of healthy GPUs below the median
        ("bf16", 962.1, False),
        ("copy", 994.0, False),  # exactly three standard deviations below the others
        ("copy", 993.9, True),
    ],
)
def test_the_limits_of_a_slow_rack(kind: str, rate: float, *, is_slow: bool) -> None:
    racks = {str(number): str(number // 4) for number in range(100)}
    rates = [rate if number < 4 else 1000.0 for number in range(100)]
    measured = (Measured(str(n), f"GPU 0 {kind}", kind, "NVIDIA H200", one) for n, one in enumerate(rates))
    assert bool(judge(measured, Topology({"rack": racks})).groups) == is_slow
