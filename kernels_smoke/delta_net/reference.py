"""The gated delta rule in plain torch, token by token, in float64."""

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


def prefill_by_chunks(
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
    chunk: int = 64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What ``prefill`` returns, a hundred times as fast: within a chunk, all deltas are one triangular system.

    With the sum g of decays since a chunk began, and the state S there, the deltas D of its tokens are those of
    ``(I + tril(beta exp(g_i - g_j) k_i k_j, -1)) D = beta (V - exp(g) K S)`` (Yang et al. 2024, section 3.2). It is for
    decays that are not beyond 100 or so: sums of greater ones lose small terms.
    """
    q, k = prepared(q, k, v.shape[1], scale=scale, normalize=normalize)
    v, log_decay, beta = v.double(), log_decay.double(), beta.double()
    out = torch.empty_like(v)
    states = []
    for sequence in range(len(bounds) - 1):
        state = v.new_zeros(v.shape[1], q.shape[2], v.shape[2])
        if initial_state is not None:
            state = initial_state[sequence].double()
        here = slice(bounds[sequence], bounds[sequence + 1])
        answers, state = _by_chunks(*(_chunks(each[here], chunk) for each in (q, k, v, log_decay, beta)), state=state)
        out[here] = answers.transpose(1, 2).flatten(0, 1)[: here.stop - here.start]
        states.append(state)
    return out, torch.stack(states) if states else v.new_zeros(0, v.shape[1], q.shape[2], v.shape[2])


def _chunks(tensor: torch.Tensor, chunk: int) -> torch.Tensor:
    """``tensor`` [tokens, heads, ...] as [chunks, heads, tokens of a chunk, ...], with zeros behind the last token."""
    count = -(-len(tensor) // chunk)
    whole = tensor.new_zeros(count * chunk, *tensor.shape[1:])
    whole[: len(tensor)] = tensor
    return whole.unflatten(0, (count, chunk)).transpose(1, 2)


def _by_chunks(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    *,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [chunks, heads, tokens, width] and the last state."""
    g = log_decay.cumsum(-1)
    later = torch.ones(g.shape[-1], g.shape[-1], dtype=torch.bool, device=g.device).triu(1)
    gamma = (g[..., :, None] - g[..., None, :]).masked_fill(later, float("-inf")).exp()
    # The solver takes the ones on the diagonal as given.
    system = (beta[..., None] * (k @ k.mT) * gamma).tril(-1)
    sides = torch.cat((v, g.exp()[..., None] * k), dim=-1) * beta[..., None]
    solved = torch.linalg.solve_triangular(system, sides, upper=False, unitriangular=True)
    u, w = solved.split((v.shape[-1], k.shape[-1]), dim=-1)
    weights = (q @ k.mT) * gamma
    q_decayed = g.exp()[..., None] * q
    k_decayed = ((g[..., -1:] - g).exp()[..., None] * k).mT
    decay = g[..., -1].exp()[..., None, None]
    out = torch.empty_like(v)
    for chunk in range(len(v)):
        delta = u[chunk] - w[chunk] @ state
        out[chunk] = q_decayed[chunk] @ state + weights[chunk] @ delta
        state = decay[chunk] * state + k_decayed[chunk] @ delta
    return out, state


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
    before, after = states.double(), states.double().clone()
    out = torch.empty(v.shape, dtype=torch.float64, device=v.device)
    requests, steps = len(rows_out), len(rows_out[0]) if rows_out else 0
    if not requests:
        return out, after
    q, k = prepared(q, k, v.shape[1], scale=scale, normalize=normalize)
    tensors = [each.double().unflatten(0, (requests, steps)) for each in (q, k, v, log_decay, beta)]
    begin = torch.tensor(rows_in, device=v.device)
    state = before[begin.clamp(min=0)] * (begin >= 0)[:, None, None, None]
    to = torch.tensor(rows_out, device=v.device)
    for t in range(steps):
        out.unflatten(0, (requests, steps))[:, t], state = step(state, *(each[:, t] for each in tensors))
        kept = to[:, t] >= 0
        after[to[kept, t]] = state[kept]
    return out, after


def gates(
    a: torch.Tensor, b: torch.Tensor, A_log: torch.Tensor, dt_bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(-exp(A_log) softplus(a + dt_bias), sigmoid(b))``, both [tokens, value heads], in float64."""
    x = a.double() + dt_bias.double()
    softplus = x.clamp(min=0.0) + torch.log1p(torch.exp(-x.abs()))
    return -A_log.double().exp() * softplus, torch.sigmoid(b.double())


def convolution(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, before: torch.Tensor, *, silu: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output [tokens, channels] of one sequence and its inputs from ``before`` [taps - 1, channels] on, in float64."""
    inputs = torch.cat((before.double(), x.double()))
    taps = weight.shape[1]
    total = torch.zeros_like(inputs[taps - 1 :]) if bias is None else bias.double().expand(x.shape)
    for tap in range(taps):
        total = total + inputs[tap : tap + len(x)] * weight[:, tap].double()
    return (total * torch.sigmoid(total) if silu else total), inputs
