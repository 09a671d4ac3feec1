"""The convolution as a server uses it: a prompt in pieces, then tokens and drafts; and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.delta_net import reference
from kernels_smoke.delta_net.causal_conv1d import causal_conv1d
from kernels_smoke.delta_net.causal_conv1d_update import causal_conv1d_update
from kernels_smoke.delta_net.delta_rule_gates import delta_rule_gates
from kernels_smoke.delta_net.gated_delta_rule_decode import gated_delta_rule_decode
from tests.kernels.support import DEVICE, error, zeros

CHANNELS, TAPS = 40, 4


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def numbers(*values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


@pytest.mark.parametrize("first", [1, 2, 20])
def test_a_prompt_in_two_pieces_and_tokens_after_it_are_one_sequence(first: int) -> None:
    x, weight, states = normal(43, CHANNELS), normal(CHANNELS, TAPS, seed=2), zeros(3, 3, CHANNELS, dtype=torch.float32)
    wanted, _ = reference.convolution(x, weight, None, torch.zeros_like(states[0]), silu=True)
    row = {"states": states, "state_indices_out": numbers(1)}
    parts = [
        causal_conv1d(x[:first], weight, state_indices_in=numbers(-1), **row),
        causal_conv1d(x[first:40], weight, state_indices_in=numbers(1), **row),
        causal_conv1d_update(x[40:42], weight, states, numbers(1), numbers([0, 2])),
        causal_conv1d_update(x[42:], weight, states, numbers(2), numbers([1])),
    ]
    assert error(torch.cat(parts), wanted) < 1e-6
    assert torch.equal(states[1], x[40:])
    assert torch.equal(states[0], x[38:41])


def test_decoding_with_projected_gates_is_decoding_with_their_gates() -> None:
    heads, size = 2, 16
    q, k, v = normal(3, 1, size), normal(3, 1, size, seed=2), normal(3, heads, size, seed=3)
    a, b, parameters = normal(3, heads, seed=4), normal(3, heads, seed=5), normal(2, heads, seed=6)
    found = {"state_indices_in": numbers(-1, -1, -1), "state_indices_out": numbers([0], [1], [2])}
    projected, gated = (zeros(3, heads, size, size, dtype=torch.float32) for _ in range(2))
    out = gated_delta_rule_decode(q, k, v, a, b, projected, **found, A_log=parameters[0], dt_bias=parameters[1])
    wanted = gated_delta_rule_decode(q, k, v, *delta_rule_gates(a, b, *parameters), gated, **found)
    assert error(out, wanted) < 1e-6
    assert error(projected, gated) < 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": zeros(5)}, "x must be .tokens, channels., not 1-dimensional"),
        ({"weight": zeros(CHANNELS, 5)}, "weight has 5 taps; 2, 3, 4 are possible"),
        ({"weight": zeros(TAPS, CHANNELS).t()}, "the rows of weight must be contiguous"),
        ({"bias": zeros(3)}, "bias must have the shape"),
        ({"states": zeros(2, 2, CHANNELS)}, r"states must have the shape \(2, 3, 40\)"),
        ({"states": zeros(3, CHANNELS)}, "states must be .rows, taps - 1, channels., not 2-dimensional"),
        ({"states": zeros(1, 3, CHANNELS).expand(2, 3, CHANNELS)}, "are at the same place"),
        ({"out": zeros(5, CHANNELS, dtype=torch.float32)}, "out must be torch.float16"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_both(change: dict[str, Any], message: str) -> None:
    arguments = {"x": zeros(5, CHANNELS), "weight": zeros(CHANNELS, TAPS), "states": zeros(2, 3, CHANNELS)} | change
    with pytest.raises(ValueError, match=message):
        causal_conv1d(**arguments)
    with pytest.raises(ValueError, match=message):
        causal_conv1d_update(**arguments, state_indices_in=numbers(0), state_indices_out=numbers([0, -1, -1, -1, 1]))


def test_what_prefill_refuses() -> None:
    x, weight = zeros(5, CHANNELS), zeros(CHANNELS, TAPS)
    with pytest.raises(ValueError, match="state_indices_in needs states"):
        causal_conv1d(x, weight, state_indices_in=numbers(0))
    with pytest.raises(ValueError, match="cu_seqlens has no sequence for 5 tokens"):
        causal_conv1d(x, weight, cu_seqlens=numbers(0))
    with pytest.raises(ValueError, match="must not share memory"):
        causal_conv1d(x, weight, out=x)


def test_parameters_of_gates_are_given_together() -> None:
    gates = zeros(1, 2, dtype=torch.float32)
    heads = zeros(1, 1, 16), zeros(1, 1, 16), zeros(1, 2, 16), gates, gates
    with pytest.raises(ValueError, match="A_log and dt_bias are given together"):
        gated_delta_rule_decode(
            *heads, zeros(1, 2, 16, 16, dtype=torch.float32), numbers(0), numbers([0]), A_log=gates[0]
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": zeros(3, 3)}, "b must have the shape"),
        ({"A_log": zeros(2, dtype=torch.bfloat16)}, "A_log must be torch.float16 or torch.float32"),
        ({"dt_bias": zeros(3)}, "dt_bias must have the shape"),
        ({"out": (zeros(3, 2), zeros(3, 2, dtype=torch.float32))}, r"out\[0\] must be torch.float32"),
    ],
)
def test_what_the_gates_refuse(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        delta_rule_gates(**{"a": zeros(3, 2), "b": zeros(3, 2), "A_log": zeros(2), "dt_bias": zeros(2)} | change)
