"""Whatever the bytes of a wheel are, they are read and judged without a crash."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.wheel_facts import facts_of, listed
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations, parse_expectation
from wheel_checks.facts.wheel.summary import headline, summarize
from wheel_checks.model import Outcome
from wheel_checks.runner import run_rules

TORCH = torch_like("cuda", "2.11.0", "aarch64", build="3")
SOUND = TORCH.build()
EXPECTATIONS = Expectations(parse_expectation("cuda==13.0"), 1_000)

patches = st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.binary(min_size=1, max_size=8)), max_size=6)


def assert_judged(data: bytes, file_name: str, depth: Depth) -> None:
    """The wheel is read, and every rule passes, fails, is skipped, or is undecided for lack of its facts."""
    facts = facts_of(data, file_name, depth=depth, listing=listed(file_name, hashes={"sha256": "00"}))
    results = run_rules(select_rules("wheel"), facts, EXPECTATIONS)
    undecided = [result.message for result in results if result.outcome is Outcome.ERROR]
    assert [message for message in undecided if not message.startswith("not proven")] == []
    assert headline(facts)
    assert summarize(facts)["size"] == len(data)


@settings(max_examples=100)
@given(patches=patches, cut=st.integers(0, 40), depth=st.sampled_from(Depth))
@example([(372, b"\0")], 0, Depth.QUICK)  # a library whose first block ends before its header does
def test_a_damaged_wheel(patches: list[tuple[int, bytes]], cut: int, depth: Depth) -> None:
    data = bytearray(SOUND)
    for offset, patch in patches:
        data[offset : offset + len(patch)] = patch
    assert_judged(bytes(data[: len(data) - cut]), TORCH.file_name, depth)


lines = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=100)
@given(metadata=lines, wheel_file=lines, record=lines, version_py=lines, requirement=lines, member=lines)
@example("", "", "", "cuda = 10**9", 'a; sys_platform ~= "b"', "/")
def test_a_wheel_of_odd_texts(
    metadata: str, wheel_file: str, record: str, version_py: str, requirement: str, member: str
) -> None:
    wheel = WheelBuilder().add("demo/version.py", version_py).add(f"demo/{member}.so")
    wheel.dist_info_file("METADATA", f"Name: demo\nRequires-Dist: {requirement}\n{metadata}\n")
    wheel.dist_info_file("WHEEL", wheel_file).dist_info_file("RECORD", record)
    assert_judged(wheel.build(), f"demo-1.0-{member}-none-any.whl", Depth.FULL)
