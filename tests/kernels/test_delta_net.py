"""The gated delta rule as a server uses it: prompts in pieces, then drafts; and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from kernels_smoke.delta_net import gated_delta_rule_chunk as module
from kernels_smoke.delta_net import reference
from kernels_smoke.delta_net.cases_chunk import draw_inputs
from kernels_smoke.delta_net.cases_shared import ARGUMENTS
from kernels_smoke.delta_net.gated_delta_rule_chunk import gated_delta_rule_chunk
from kernels_smoke.delta_net.gated_delta_rule_decode import gated_delta_rule_decode
from kernels_smoke.suite.correctness.draw import Draw
from tests.kernels.support import DEVICE, error

KEY_HEADS, VALUE_HEADS, SIZE = 1, 2, 16


def heads(tokens: int, seed: int = 1) -> dict[str, Any]:
    """Normalized keys and queries, values and gates of so many tokens, in float16."""
    generator = torch.Generator().manual_seed(seed)

    def normal(count: int) -> torch.Tensor:
        return torch.randn(tokens, count, SIZE, generator=generator).half().to(DEVICE)

    gates = torch.rand(2, tokens, VALUE_HEADS, generator=generator).to(DEVICE)
    q, k, v = normal(KEY_HEADS), normal(KEY_HEADS), normal(VALUE_HEADS)
    return {"q": q, "k": k, "v": v, "log_decay": -0.2 * gates[0], "beta": gates[1], "normalize": True}


def part(arguments: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    return {name: value if name == "normalize" else value[begin:end] for name, value in arguments.items()}


def numbers(*values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def empty_state(rows: int = 1) -> torch.Tensor:
    return torch.zeros(rows, VALUE_HEADS, SIZE, SIZE, device=DEVICE)


def test_numbers_that_are_none_stay_in_their_sequence() -> None:
    arguments = heads(60)
    for name in ("q", "k", "v"):
        arguments[name][40:] = float("nan")

    both = gated_delta_rule_chunk(**arguments, cu_seqlens=numbers(0, 40, 60))

    assert torch.equal(both[:40], gated_delta_rule_chunk(**part(arguments, 0, 40)))
    assert both[40:].isnan().all()


def test_a_prompt_in_two_pieces_and_two_tokens_more_is_one_sequence() -> None:
    everything = heads(45)
    wanted, final = reference.prefill(**everything, bounds=[0, 45], initial_state=None, scale=SIZE**-0.5)

    states = empty_state()
    first = gated_delta_rule_chunk(**part(everything, 0, 20), final_state=states)
    second = gated_delta_rule_chunk(**part(everything, 20, 43), initial_state=states, final_state=states)
    last = gated_delta_rule_decode(
        **part(everything, 43, 45), states=states, state_indices_in=numbers(0), state_indices_out=numbers([-1, 0])
    )

    assert error(torch.cat((first, second, last)), wanted) < 2e-3
    assert error(states, final) < 2e-3


def test_after_drafts_the_row_of_the_accepted_token_is_the_state() -> None:
    tokens = heads(6)
    states = empty_state(rows=5)
    # Three drafts are verified, two are accepted: the next token begins with row 2, and nothing is copied.
    gated_delta_rule_decode(
        **part(tokens, 0, 3), states=states, state_indices_in=numbers(0), state_indices_out=numbers([1, 2, 3])
    )
    got = gated_delta_rule_decode(
        **part(tokens, 5, 6), states=states, state_indices_in=numbers(2), state_indices_out=numbers([4])
    )

    accepted = {
        name: value if name == "normalize" else torch.cat((value[:2], value[5:6])) for name, value in tokens.items()
    }
    wanted, final = reference.prefill(**accepted, bounds=[0, 3], initial_state=None, scale=SIZE**-0.5)
    assert error(got, wanted[2:]) < 1e-3
    assert error(states[4:], final) < 1e-6
    assert not states[0].any()


def test_requests_may_begin_with_the_same_row() -> None:
    states = torch.randn(3, VALUE_HEADS, SIZE, SIZE, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    prompt = states[0].clone()
    token = {name: value if name == "normalize" else torch.cat((value, value)) for name, value in heads(1).items()}
    out = gated_delta_rule_decode(
        **token, states=states, state_indices_in=numbers(0, 0), state_indices_out=numbers([1], [2])
    )
    assert torch.equal(out[0], out[1])
    assert torch.equal(states[1], states[2])
    assert torch.equal(states[0], prompt)


@pytest.mark.parametrize("decay", [-1e3, -1e5, -1e9, float("-inf")])
def test_a_token_that_forgets_all_leaves_the_next_ones_alone(decay: float) -> None:
    arguments = heads(20)
    arguments["log_decay"][3] = decay
    wanted, _ = reference.prefill(**arguments, bounds=[0, 20], initial_state=None, scale=SIZE**-0.5)
    assert error(gated_delta_rule_chunk(**arguments), wanted) < 1e-3


def test_a_state_that_nothing_changes_keeps_its_bits() -> None:
    arguments = heads(45)
    arguments["beta"].zero_()
    arguments["log_decay"].zero_()
    before = torch.randn(1, VALUE_HEADS, SIZE, SIZE, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    after = empty_state()
    gated_delta_rule_chunk(**arguments, initial_state=before, final_state=after)
    assert torch.equal(after, before)


@pytest.mark.parametrize("chunk", [16, 32, 64])
def test_chunks_of_any_size(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = module.configure()
    monkeypatch.setattr(module, "configure", lambda: replace(choice, chunk=chunk))
    arguments = heads(150)
    wanted, _ = reference.prefill(**arguments, bounds=[0, 150], initial_state=None, scale=SIZE**-0.5)
    assert error(gated_delta_rule_chunk(**arguments), wanted) < 1e-3


@pytest.mark.parametrize("segments", [1, 3, 4, 8])
def test_a_sequence_in_segments_is_one_sequence(segments: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = replace(module.configure(), segments=segments, least=1)
    monkeypatch.setattr(module, "configure", lambda: choice)
    arguments = heads(300)
    arguments["beta"] *= 0.1  # so that each segment leaves much of the state before it
    arguments["log_decay"] *= 0.01
    before = torch.randn(1, VALUE_HEADS, SIZE, SIZE, generator=torch.Generator().manual_seed(4)).to(DEVICE)
    wanted, final = reference.prefill(**arguments, bounds=[0, 300], initial_state=before, scale=SIZE**-0.5)

    plan = gated_delta_rule_chunk.plan(**arguments, initial_state=before, final_state=before)

    assert error(plan(), wanted) < 1.5e-3
    assert error(before, final) < 2e-3


@pytest.mark.parametrize(
    ("tokens", "programs", "available", "segments"),
    [(8192, 64, 132, 3), (8192, 16, 132, 8), (8192, 128, 132, 1), (2048, 8, 132, 4), (1000, 8, 132, 1), (0, 8, 132, 1)],
)
def test_sequences_have_segments_where_multiprocessors_are_left(
    tokens: int, programs: int, available: int, segments: int
) -> None:
    layout = module.Configuration(chunk=32, block_v=64, warps=4, stages=3)
    assert layout.segments_of(tokens, programs, available) == segments


def test_the_gates_of_one_head_may_lie_as_torch_lays_them() -> None:
    arguments = heads(5)
    arguments["v"] = arguments["v"][:, :1]
    gates = torch.stack((arguments["log_decay"], arguments["beta"]))[:, :, :1].mT.contiguous().mT
    assert gates[0].stride() == (1, 5)
    arguments |= {"log_decay": gates[0], "beta": gates[1]}
    wanted, _ = reference.prefill(**arguments, bounds=[0, 5], initial_state=None, scale=SIZE**-0.5)
    assert error(gated_delta_rule_chunk(**arguments), wanted) < 1e-3


@pytest.mark.parametrize("alike", [0.0, 3.0, 1000.0])
def test_keys_that_are_alike_do_not_blow_up(alike: float) -> None:
    # With (I - N)(I + N^2)(I + N^4)... the powers of N grow beyond float32 here.
    arguments = heads(64)
    arguments["k"] += alike * torch.ones(SIZE, dtype=torch.float16, device=DEVICE)
    arguments["beta"].fill_(0.95)
    arguments["log_decay"].fill_(-0.001)
    wanted, _ = reference.prefill(**arguments, bounds=[0, 64], initial_state=None, scale=SIZE**-0.5)
    assert error(gated_delta_rule_chunk(**arguments), wanted) < 1e-2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": torch.zeros(3, 1, 24).half()}, "heads of q have 24 elements; 16, 32, 64, 128 are possible"),
        ({"k": torch.zeros(3, 2, 16).half()}, r"k must have the shape \(3, 1, 16\), not \(3, 2, 16\)"),
        ({"v": torch.zeros(3, 2, 16)}, "v must be torch.float16, not torch.float32"),
        ({"v": torch.zeros(3, 0, 16).half()}, "q and v need at least one head"),
        ({"q": torch.zeros(3, 3, 16).half()}, "2 value heads are no multiple of 3 key heads"),
        ({"q": torch.zeros(3, 16).half()}, "q must be .tokens, heads, size., not 2-dimensional"),
        ({"beta": torch.zeros(3, 1)}, r"beta must have the shape \(3, 2\), not \(3, 1\)"),
        ({"log_decay": torch.zeros(2, 3).t()}, "the rows of log_decay must be contiguous"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_both(change: dict[str, torch.Tensor], message: str) -> None:
    arguments = heads(3) | {name: value.to(DEVICE) for name, value in change.items()}
    with pytest.raises(ValueError, match=message):
        gated_delta_rule_chunk(**arguments)
    with pytest.raises(ValueError, match=message):
        gated_delta_rule_decode(
            **arguments, states=empty_state(), state_indices_in=numbers(0), state_indices_out=numbers([0, -1, -1])
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cu_seqlens": torch.zeros(2)}, "cu_seqlens must be torch.int32 or torch.int64, not torch.float32"),
        ({"cu_seqlens": torch.zeros(0, dtype=torch.int32)}, "cu_seqlens must be .sequences"),
        ({"cu_seqlens": torch.zeros(1, dtype=torch.int32)}, "cu_seqlens has no sequence for 3 tokens"),
        ({"initial_state": torch.zeros(2, 2, 16, 16)}, "initial_state must have the shape"),
        ({"final_state": torch.zeros(1, 2, 16, 16).transpose(0, 1)}, "final_state must have the shape"),
        ({"final_state": torch.zeros(1, 2, 16, 16).mT}, "the rows of final_state must be contiguous"),
        ({"final_state": torch.zeros(1, 2, 32, 16, device=DEVICE)[:, :, :16]}, "final_state must be contiguous"),
        ({"out": torch.zeros(3, 2, 16)}, "out must be torch.float16, not torch.float32"),
    ],
)
def test_what_prefill_refuses(change: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gated_delta_rule_chunk(**heads(3), **{name: value.to(DEVICE) for name, value in change.items()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state_indices_out": numbers(0, 1, 2)}, "state_indices_out must be .requests, steps."),
        ({"state_indices_out": numbers([0, 1])}, "there are 3 tokens for 1 requests of 2"),
        ({"state_indices_in": numbers(0, 1)}, r"state_indices_in must have the shape \(1,\), not \(2,\)"),
        ({"states": torch.zeros(1, 2, 16)}, "states must be .rows, heads, depth, width., not 3-dimensional"),
        ({"states": torch.zeros(1, 2, 16, 16).half()}, "states must be torch.float32, not torch.float16"),
        ({"states": torch.zeros(1, 2, 32, 16, device=DEVICE)[:, :, :16]}, "a row of states must be contiguous"),
    ],
)
def test_what_decoding_refuses(change: dict[str, torch.Tensor], message: str) -> None:
    arguments = {"states": empty_state(), "state_indices_in": numbers(0), "state_indices_out": numbers([0, -1, -1])}
    arguments |= {name: value.to(DEVICE) for name, value in change.items()}
    with pytest.raises(ValueError, match=message):
        gated_delta_rule_decode(**heads(3), **arguments)


@pytest.mark.parametrize(
    ("lengths", "more"),
    [((130, 0, 64, 1, 65), {}), ((300,), {"normalize": False, "common": 1.0, "forgetting": 3.0})],
    ids=["sequences", "keys half alike"],
)
def test_the_reference_by_chunks_is_the_reference_token_by_token(lengths: tuple[int, ...], more: Any) -> None:
    inputs = draw_inputs(Draw(3, "cpu"), lengths=lengths, depth=16, width=32, **more)
    bounds = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    given = {name: inputs[name] for name in ARGUMENTS} | {"bounds": bounds, "initial_state": inputs["initial_state"]}
    for one, other in zip(reference.prefill(**given), reference.prefill_by_chunks(**given), strict=True):
        assert float((one - other).norm() / one.norm()) < 1e-12
