"""The decision tree of paged attention: grown from times, written as a module that decides the same."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from benchmarks.paged_attention_tree import Measured, decide, grow, read, render, summary, thresholds
from kernels_smoke.attention.batch import STAGES, Batch, Choice
from kernels_smoke.attention.decision import choose

BLOCKS, DIVIDED = Choice("tiles"), Choice("tiles", fill=2)


def batch(longest_query: int = 1, sequences: int = 1, longest_sequence: int = 1024) -> Batch:
    return Batch(
        tokens=longest_query * sequences,
        sequences=sequences,
        longest_query=longest_query,
        longest_sequence=longest_sequence,
        heads=32,
        kv_heads=8,
        head_dim=128,
        page_size=16,
        element_size=2,
        multiprocessors=132,
    )


def measured(of: Batch, **times: float) -> Measured:
    names: Mapping[str, Choice] = {"blocks": BLOCKS, "divided": DIVIDED}
    return Measured(of, {names[name]: micro for name, micro in times.items()})


PROMPTS_AND_DECODING = [
    measured(batch(longest_query=4096), blocks=300, divided=330),
    measured(batch(longest_query=512), blocks=60, divided=66),
    measured(batch(longest_sequence=32768), blocks=900, divided=40),
    measured(batch(sequences=64), blocks=140, divided=150),
]


def test_a_tree_gives_every_batch_its_fastest_choice_where_conditions_can_tell_them_apart() -> None:
    tree = grow(PROMPTS_AND_DECODING, depth=2)
    assert [decide(tree, each.batch) for each in PROMPTS_AND_DECODING] == [BLOCKS, BLOCKS, DIVIDED, BLOCKS]
    assert summary(tree, PROMPTS_AND_DECODING) == "1.000 times the best choice of 4 batches, at worst 1.00"


def test_without_conditions_the_choice_is_the_one_that_loses_least_altogether() -> None:
    tree = grow(PROMPTS_AND_DECODING, depth=0)
    assert tree.choice == DIVIDED  # 10 %, 10 % and 7 % lost, and not 22 times the time once
    assert summary(tree, PROMPTS_AND_DECODING).endswith("at worst 1.10")


def test_a_condition_that_gains_next_to_nothing_is_left_out() -> None:
    alike = [measured(batch(longest_query=n), blocks=100, divided=100.2 if n > 8 else 99.9) for n in (1, 4, 64, 512)]
    assert not grow(alike, depth=3).feature


def test_a_choice_that_could_not_run_for_a_batch_is_not_taken_for_it() -> None:
    tree = grow([measured(batch(), divided=5.0), measured(batch(longest_query=9), blocks=5.0)], depth=1)
    assert decide(tree, batch()) == DIVIDED
    assert decide(tree, batch(longest_query=9)) == BLOCKS


@pytest.mark.parametrize(
    ("values", "between"),
    [
        ([1, 4, 4, 16], [2, 8]),
        ([1, 2], [1]),
        ([7], []),
        ([1.5, 1.75], []),
    ],
)
def test_thresholds_are_whole_numbers_between_neighbours(values: list[float], between: list[int]) -> None:
    assert thresholds(values) == between


def test_the_written_module_decides_as_the_tree_does() -> None:
    tree = grow(PROMPTS_AND_DECODING, depth=3)
    namespace: dict[str, object] = {}
    exec(compile(render(tree, "2026-11-22, a GPU; " + "x" * 100), "decision.py", "exec"), namespace)
    written = namespace["choose"]
    assert callable(written)
    assert "a GPU" in str(namespace["SOURCE"])
    for longest_query, sequences, longest_sequence in itertools.product((1, 64, 9000), (1, 40, 300), (5, 9000, 10**6)):
        of = batch(longest_query, sequences, longest_sequence)
        assert written(of) == decide(tree, of)


def test_what_is_kept_in_a_file_is_read_again() -> None:
    of = batch(sequences=4)
    record = {"batch": {**{name: getattr(of, name) for name in of.__dataclass_fields__}}, "times": [["tiles", 2, 8.0]]}
    assert read({"batches": [record]}) == [Measured(of, {DIVIDED: 8.0})]


def test_the_tree_that_is_used_knows_only_stages_that_there_are() -> None:
    for longest_query, sequences, longest_sequence in itertools.product((1, 64, 9000), (1, 40, 300), (5, 9000, 10**6)):
        assert choose(batch(longest_query, sequences, longest_sequence)).stage in STAGES
