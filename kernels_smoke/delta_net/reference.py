"""The gated delta rule in plain torch, token by token, in float64."""

from __future__ import annotations

import torch


def step(
    state: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, log_decay: torch.Tensor, beta: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output [..., width] and the new state [..., depth, width] after one token.

    ``q``, ``k``: [..., depth]; ``v``: [..., width]; ``log_decay``, ``beta``: [...]; all float64.
    """
    state = state * log_decay.exp()[..., None, None]
    delta = beta[..., None] * (v - (state * k[..., None]).sum(dim=-2))
    state = state + k[..., None] * delta[..., None, :]
    return (state * q[..., None]).sum(dim=-2), state


def prepared(
    q: torch.Tensor, k: torch.Tensor, value_heads: int, *, scale: float, normalize: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """``scale * q`` and ``k`` [tokens, value heads, depth] in float64, divided by their norms if that is asked for."""
    q, k = q.double(), k.double()
    if normalize:
        q, k = (rows * torch.rsqrt(rows.square().sum(dim=-1, keepdim=True) + 1e-6) for rows in (q, k))
    group = value_heads // q.shape[1]
    return scale * q.repeat_interleave(group, dim=1), k.repeat_interleave(group, dim=1)


def prefill(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    bounds: list[int],
    initial_state: torch.Tensor | None,
    *,
    scale: float,
    normalize: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [tokens, value heads, width] and final states [sequences, value heads, depth, width].

    Sequence n has the tokens from ``bounds[n]`` to ``bounds[n + 1] - 1``. Without an initial state it is zero.
    """
    q, k = prepared(q, k, v.shape[1], scale=scale, normalize=normalize)
    v, log_decay, beta = v.double(), log_decay.double(), beta.double()
    out = torch.empty_like(v)
    states = []
    for sequence in range(len(bounds) - 1):
        state = v.new_zeros(v.shape[1], q.shape[2], v.shape[2])
        if initial_state is not None:
            state = initial_state[sequence].double()
        for t in range(bounds[sequence], bounds[sequence + 1]):
            out[t], state = step(state, q[t], k[t], v[t], log_decay[t], beta[t])
        states.append(state)
    return out, torch.stack(states) if states else v.new_zeros(0, v.shape[1], q.shape[2], v.shape[2])


def decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    states: torch.Tensor,
    rows_in: list[int],
    rows_out: list[list[int]],
    *,
    scale: float,
    normalize: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [requests * steps, value heads, width], and all rows of ``states`` afterwards, in float64.

    Request b begins with the row ``rows_in[b]`` of ``states`` (zero when that is negative); the state after its token t
    goes to the row ``rows_out[b][t]`` (nowhere when that is negative).
    """
    q, k = prepared(q, k, v.shape[1], scale=scale, normalize=normalize)
    v, log_decay, beta = v.double(), log_decay.double(), beta.double()
    before, after = states.double(), states.double().clone()
    out = torch.empty_like(v)
    token = 0
    for row_in, row_of_step in zip(rows_in, rows_out, strict=True):
        state = before[row_in] if row_in >= 0 else torch.zeros_like(before[0])
        for row in row_of_step:
            out[token], state = step(state, q[token], k[token], v[token], log_decay[token], beta[token])
            if row >= 0:
                after[row] = state
            token += 1
    return out, after
