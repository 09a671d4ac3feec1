"""The gated delta rule in eager torch, by chunks for whole sequences, as the code of models has it."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.delta_net.cases_chunk import state_of
from kernels_smoke.suite.model import Inputs

CHUNK = 64
EPSILON = 1e-6

Results = dict[str, Any]


def gated_delta_rule_chunk(inputs: Inputs) -> Results:
    """Output and final states; a loop over chunks for each sequence, in float32."""
    if torch.compiler.is_compiling():
        raise NotImplementedError("a compiler would unroll the loop over chunks, for minutes")
    query, key = _prepared(inputs)
    out = torch.empty_like(inputs["v"])
    states = torch.zeros(inputs["states"], device=out.device)
    if inputs["initial_state"] is not None:
        states.copy_(inputs["initial_state"])
    begin = 0
    for sequence, length in enumerate(inputs["lengths"]):
        here = slice(begin, begin + length)
        values = (inputs["v"][here].float(), inputs["log_decay"][here].float(), inputs["beta"][here].float())
        if length:
            out[here], states[sequence] = _sequence(query[here], key[here], *values, states[sequence])
        begin += length
    return {"out": out, state_of(inputs): states}


def gated_delta_rule_decode(inputs: Inputs) -> Results:
    """Output and states for one or more tokens of each request; every index must be valid."""
    rows = inputs["state_indices_in"]
    steps = inputs["state_indices_out"].shape[1]
    query, key = (heads.unflatten(0, (-1, steps)) for heads in _prepared(inputs))
    value, log_decay, beta = (inputs[name].float().unflatten(0, (-1, steps)) for name in ("v", "log_decay", "beta"))
    states = inputs["states"]
    state = states[rows].unflatten(1, inputs["row"])
    out = []
    for step in range(steps):
        state = state * log_decay[:, step, :, None, None].exp()
        predicted = torch.einsum("bhkv,bhk->bhv", state, key[:, step])
        delta = beta[:, step, :, None] * (value[:, step] - predicted)
        state = state + key[:, step, :, :, None] * delta[:, :, None, :]
        out.append(torch.einsum("bhkv,bhk->bhv", state, query[:, step]))
        states = states.index_copy(0, inputs["state_indices_out"][:, step].long(), state.flatten(1))
    return {"out": torch.stack(out, dim=1).flatten(0, 1).to(inputs["v"].dtype), "states": states}


def _prepared(inputs: Inputs) -> tuple[Any, Any]:
    """The scaled queries, and the keys, of every value head in float32."""
    group = inputs["v"].shape[1] // inputs["q"].shape[1]
    query, key = (inputs[name].float().repeat_interleave(group, dim=1) for name in ("q", "k"))
    if inputs["normalize"]:
        query, key = (heads * torch.rsqrt(heads.square().sum(dim=-1, keepdim=True) + EPSILON) for heads in (query, key))
    return query * inputs["q"].shape[2] ** -0.5, key


def _sequence(query: Any, key: Any, value: Any, log_decay: Any, beta: Any, state: Any) -> tuple[Any, Any]:
    """Output [tokens, heads, width] and final state [heads, depth, width] of one sequence."""
    tokens = len(value)
    missing = -tokens % CHUNK

    def chunked(x: Any) -> Any:  # [heads, chunks, CHUNK, ...]
        padded = torch.cat((x, x.new_zeros(missing, *x.shape[1:])))
        return padded.unflatten(0, (-1, CHUNK)).movedim(2, 0)

    query, key, value, log_decay, beta = map(chunked, (query, key, value, log_decay, beta))
    total = log_decay.cumsum(dim=-1)
    gamma = (total[..., :, None] - total[..., None, :]).tril().exp().tril()
    lower = (beta[..., None] * (key @ key.mT) * gamma).tril(-1)
    right = torch.cat((value, key * total.exp()[..., None]), dim=-1) * beta[..., None]
    solved = torch.linalg.solve_triangular(lower, right, upper=False, unitriangular=True)
    u, w = solved.split((value.shape[-1], key.shape[-1]), dim=-1)
    weights = (query @ key.mT) * gamma
    query = query * total.exp()[..., None]
    key = key * (total[..., -1:] - total).exp()[..., None]
    out = torch.empty_like(value)
    for chunk in range(value.shape[1]):
        delta = u[:, chunk] - w[:, chunk] @ state
        out[:, chunk] = query[:, chunk] @ state + weights[:, chunk] @ delta
        state = state * total[:, chunk, -1:, None].exp() + key[:, chunk].mT @ delta
    return out.movedim(0, 2).flatten(0, 1)[:tokens], state


def delta_rule_gates(inputs: Inputs) -> Results:
    """Both gates, pointwise."""
    decay = torch.nn.functional.softplus(inputs["a"].float() + inputs["dt_bias"].float())
    return {"log_decay": -inputs["A_log"].float().exp() * decay, "beta": inputs["b"].float().sigmoid()}


def causal_conv1d(inputs: Inputs) -> Results:
    """A grouped convolution of torch, a sequence at a time, of the inputs with their state before them."""
    taps = inputs["weight"].shape[1]
    after, out = inputs["states"].clone(), []
    for number, x in enumerate(inputs["x"].split(inputs["lengths"])):
        before = inputs["states"].new_zeros(taps - 1, x.shape[1])
        if inputs["state_indices_in"] is not None and (row := int(inputs["state_indices_in"][number])) >= 0:
            before = inputs["states"][row]
        held = torch.cat((before, x))
        out.append(_convolved(inputs, held.t()[None])[0].t())
        if inputs["state_indices_out"] is not None and (row := int(inputs["state_indices_out"][number])) >= 0:
            after[row] = held[len(held) - taps + 1 :]
    return {"out": torch.cat(out), "states": after}


def causal_conv1d_update(inputs: Inputs) -> Results:
    """A grouped convolution of each request's state and its tokens."""
    taps, (requests, steps) = inputs["weight"].shape[1], inputs["state_indices_out"].shape
    before = inputs["states"][inputs["state_indices_in"].long()]
    held = torch.cat((before, inputs["x"].reshape(requests, steps, -1)), dim=1)
    after = inputs["states"].clone()
    for step in range(steps):
        after[inputs["state_indices_out"][:, step].long()] = held[:, step + 1 : step + taps]
    return {"out": _convolved(inputs, held.transpose(1, 2)).transpose(1, 2).flatten(0, 1), "states": after}


def _convolved(inputs: Inputs, held: Any) -> Any:
    """The convolution of [batch, channels, taps - 1 + tokens], activated."""
    weight, bias = inputs["weight"].to(held.dtype), inputs["bias"]
    bias = None if bias is None else bias.to(held.dtype)
    made = torch.nn.functional.conv1d(held, weight[:, None], bias, groups=len(weight))
    return torch.nn.functional.silu(made) if inputs["silu"] else made
