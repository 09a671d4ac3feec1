"""Patterns in memory, the cost of a launch, sustained load: on the CPU, where a GPU would be."""

from __future__ import annotations

import pytest

from tests.support.torch_worker import found

pytestmark = pytest.mark.kernels


def test_memory_that_holds_its_patterns_and_memory_that_does_not() -> None:
    fine, broken, none = found("""
from kernels_smoke.suite.speed import rates

fine = rates.memory(8 * 4096, "cpu", chunk=1024)
none = rates.memory(100, "cpu", chunk=1024)
write = rates._write

def loses_a_bit(numbers, pattern, first):
    write(numbers, pattern, first)
    if first == 2048:
        numbers[3] ^= 1 << 20

rates._write = loses_a_bit
broken = rates.memory(8 * 4096, "cpu", chunk=1024)
answer([[each.outcome, each.message] for each in (fine, broken, none)])
""")
    assert fine == ["pass", "0 MiB of memory hold 5 patterns"]
    assert broken[0] == "fail"
    assert broken[1].endswith("1 numbers of 8 bytes differ, the first 16,408 bytes into it, by the bits 0x100000")
    assert none[0] == "skip"


def test_memory_that_two_addresses_share_fails() -> None:
    outcome = found("""
from kernels_smoke.suite.speed import rates
import torch

one = torch.empty(1024, dtype=torch.int64)
torch.empty = lambda *_shape, **_options: one
answer(rates.memory(8 * 4096, "cpu", chunk=1024).outcome)
""")
    assert outcome == "fail"


def test_a_launch_is_timed_without_its_result() -> None:
    seconds = found("""
from kernels_smoke.suite import registry
from kernels_smoke.suite.speed.rates import seconds_of_launch

kernel = registry.load(registry.entry("mul_sum_add"))
answer(seconds_of_launch(kernel, 1, "cpu"))
""")
    assert seconds > 1e-6


def test_sustained_load_compares_its_results() -> None:
    record, probe, wrong, failed = found("""
from kernels_smoke.suite.speed import soak
import torch

soak.PER_LOOK = 0.01
said = []
soak.soak(said.append, seconds=0.05, size=64, device="cpu")
record, probe = said[-2:]
multiply, count = torch.mm, [0]

def forgets(a, b, *, out):
    count[0] += 1
    result = multiply(a, b, out=out)
    if (count[0] - 1) % soak.BATCH == 0 and count[0] > 1:
        out[3, 5] += 1
    return result

torch.mm = forgets
soak.soak(said.append, seconds=0.001, size=64, device="cpu")
answer([record, probe, said[-2]["wrong"], said[-1]["outcome"]])
""")
    assert (probe["name"], probe["outcome"]) == ("soak", "pass")
    assert record["wrong"] == 0
    assert record["compared"] >= 1
    assert record["first"] > 0
    assert wrong >= 1
    assert failed == "fail"


def test_the_rates_at_both_ends_and_the_reasons_in_between() -> None:
    records = found("""
from kernels_smoke.suite.speed.soak import summary

hot = {"held_down_by": ["software thermal slowdown"], "temperature_celsius": 88}
cool = {"held_down_by": ["software power cap"], "temperature_celsius": 60}
looks = [(750e12, cool)] * 2 + [(500e12, hot)] * 3 + [(600e12, cool | {"temperature_celsius": 80})] * 2
answer(summary(looks))
""")
    assert (records["first"], records["last"], records["lowest"], records["fall"]) == (750e12, 600e12, 500e12, 0.2)
    assert records["held_down_by"] == ["software power cap", "software thermal slowdown"]
    assert records["hottest_celsius"] == 88
