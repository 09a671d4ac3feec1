"""The gated delta rule for one or a few tokens of many requests: decoding, and the verification of drafts."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.delta_net.arguments import EPSILON, check_heads, check_numbers
from kernels_smoke.delta_net.delta_rule_gates import _log_decay, check_parameters
from kernels_smoke.launch import DTYPES, check_rows, check_written, interpreted, on_device_of, require
from kernels_smoke.launch_plan import allocated, launch, plannable


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    A program keeps ``block_v`` columns of the state of one head, with ``warps`` warps. ``eviction`` is the cache's hint
    for states, which are read once.
    """

    block_v: int
    warps: int
    eviction: str = ""


def configure(requests: int, value_heads: int) -> Configuration:
    """The layout for so many requests: see "Layouts" in README.md."""
    if interpreted():
        return Configuration(block_v=16, warps=4)
    if requests * value_heads < 256:  # few states: smaller pieces, for every multiprocessor some
        return Configuration(block_v=8, warps=1)
    return Configuration(block_v=32, warps=1)


@triton.jit
def _decode_kernel(
    q, k, v, log_decay, beta, A_log, dt_bias, states, state_indices_in, state_indices_out, out,
    q_stride, q_head_stride, k_stride, k_head_stride, v_stride, v_head_stride, log_decay_stride, beta_stride,
    states_stride, out_stride, out_head_stride, scale, epsilon,
    STEPS: tl.constexpr, VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BLOCK_V: tl.constexpr, NORMALIZE: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    blocks: tl.constexpr = V // BLOCK_V
    program = tl.program_id(0).to(tl.int64)
    request = program // (blocks * VALUE_HEADS)
    head = program // blocks % VALUE_HEADS
    o_k = tl.arange(0, K)
    o_v = program % blocks * BLOCK_V + tl.arange(0, BLOCK_V)
    within = head * K * V + o_k[:, None] * V + o_v[None, :]

    row = tl.load(state_indices_in + request).to(tl.int64)  # [1]
    # [K, BLOCK_V]
    state = tl.load(states + row * states_stride + within, mask=row >= 0, other=0.0, eviction_policy=EVICTION)
    for step in range(STEPS):
        token = request * STEPS + step
        b_k = tl.load(k + token * k_stride + head // GROUP * k_head_stride + o_k).to(tl.float32)  # [K]
        b_q = tl.load(q + token * q_stride + head // GROUP * q_head_stride + o_k).to(tl.float32)  # [K]
        b_v = tl.load(v + token * v_stride + head * v_head_stride + o_v).to(tl.float32)  # [BLOCK_V]
        b_log_decay = tl.load(log_decay + token * log_decay_stride + head).to(tl.float32)  # [1]
        b_beta = tl.load(beta + token * beta_stride + head).to(tl.float32)  # [1]
        if A_log is not None:  # they are what the layer projects: a and b
            b_log_decay = _log_decay(b_log_decay, tl.load(A_log + head), tl.load(dt_bias + head))  # [1]
            b_beta = tl.sigmoid(b_beta)
        decay = tl.exp(b_log_decay)
        if NORMALIZE:
            b_k *= tl.rsqrt(tl.sum(b_k * b_k, axis=0) + epsilon)
            b_q *= tl.rsqrt(tl.sum(b_q * b_q, axis=0) + epsilon)
        state *= decay
        delta = b_beta * (b_v - tl.sum(state * b_k[:, None], axis=0))  # [BLOCK_V]
        # The output from the state before the update, so that both sums over K wait for the same thing.
        b_o = tl.sum(state * b_q[:, None], axis=0) + delta * tl.sum(b_k * b_q, axis=0)  # [BLOCK_V]
        o_out = out + token * out_stride + head * out_head_stride + o_v
        tl.store(o_out, (b_o * scale).to(out.dtype.element_ty))
        state += b_k[:, None] * delta[None, :]
        row = tl.load(state_indices_out + token).to(tl.int64)  # [1]
        tl.store(states + row * states_stride + within, state, mask=row >= 0)


@plannable
def gated_delta_rule_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    states: torch.Tensor,
    state_indices_in: torch.Tensor,
    state_indices_out: torch.Tensor,
    *,
    A_log: torch.Tensor | None = None,
    dt_bias: torch.Tensor | None = None,
    scale: float | None = None,
    normalize: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the output of the gated delta rule for ``steps`` tokens of each request; states are written in place.

    The rule is that of ``gated_delta_rule_chunk``, computed in float32. Request b begins with the state in the row
    ``state_indices_in[b]`` of ``states``, and the state behind its token t goes to the row ``state_indices_out[b, t]``.
    When drafted tokens are verified, each gets its own row; the row of the last token that is accepted is the next
    ``state_indices_in[b]``, and nothing is copied (the index indirection of TokenSpeed). All other rows stay as they
    are, bit for bit.

    - ``q``, ``k``: [requests * steps, key heads, depth], ``v``: [requests * steps, value heads, width]; the tokens of a
      request follow one another; bfloat16, float16 or float32, all of one dtype. A multiple of value heads shares each
      key head, in order. Depth and width are 16, 32, 64 or 128. The elements of a head are contiguous; heads and tokens
      may be at any distance.
    - ``log_decay`` (at most 0; minus infinity begins again, behind a finite state) and ``beta``: [requests * steps,
      value heads], of that dtype or float32.
    - ``states``: [rows, value heads, depth, width], float32; a row is contiguous, rows may be at any distance.
    - ``state_indices_in``: [requests], ``state_indices_out``: [requests, steps]; int32 or int64, contiguous. A negative
      number is not a row: such a state begins at zero, or is not kept. No row may be written for two tokens, nor be
      written by one request and read by another. The numbers are not checked.
    - ``A_log``, ``dt_bias``: [value heads], of that dtype or float32. With them, ``log_decay`` and ``beta`` hold a and
      b, as the layer projects them: the decay is ``exp(-exp(A_log) softplus(a + dt_bias))``, and beta ``sigmoid(b)``.
    - ``scale``: depth^-0.5 unless it is given.
    - ``normalize``: divide each q[t] and k[t] by sqrt(its squared norm + 1e-6).
    - ``out``: the result, like ``v``.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    tokens, key_heads, value_heads, depth, width = check_heads(q, k, v, log_decay, beta, DTYPES)
    require(state_indices_out.ndim == 2, "state_indices_out must be [requests, steps]")
    requests, steps = state_indices_out.shape
    require(requests * steps == tokens, f"there are {tokens} tokens for {requests} requests of {steps}")
    check_numbers("state_indices_in", state_indices_in, (requests,), q)
    check_numbers("state_indices_out", state_indices_out, (requests, steps), q)
    require(states.ndim == 4, f"states must be [rows, heads, depth, width], not {states.ndim}-dimensional")
    check_rows("states", states, (states.shape[0], value_heads, depth, width), (torch.float32,), q)
    require(states[:1].is_contiguous(), "a row of states must be contiguous")
    check_written("states", states)
    if A_log is not None and dt_bias is not None:
        check_parameters(A_log, dt_bias, value_heads, q)
    require((A_log is None) == (dt_bias is None), "A_log and dt_bias are given together")
    out = allocated(torch.empty_like(v)) if out is None else out
    check_rows("out", out, (tokens, value_heads, width), (q.dtype,), q)
    check_written("out", out)
    if tokens:
        choice = configure(requests, value_heads)
        block_v = min(choice.block_v, width)
        with on_device_of(q):
            launch(
                _decode_kernel,
                (requests * value_heads * (width // block_v),),
                q=q,
                k=k,
                v=v,
                log_decay=log_decay,
                beta=beta,
                A_log=A_log,
                dt_bias=dt_bias,
                states=states,
                state_indices_in=state_indices_in,
                state_indices_out=state_indices_out,
                out=out,
                q_stride=q.stride(0),
                q_head_stride=q.stride(1),
                k_stride=k.stride(0),
                k_head_stride=k.stride(1),
                v_stride=v.stride(0),
                v_head_stride=v.stride(1),
                log_decay_stride=log_decay.stride(0),
                beta_stride=beta.stride(0),
                states_stride=states.stride(0),
                out_stride=out.stride(0),
                out_head_stride=out.stride(1),
                scale=depth**-0.5 if scale is None else scale,
                epsilon=EPSILON,
                STEPS=steps,
                VALUE_HEADS=value_heads,
                GROUP=value_heads // key_heads,
                K=depth,
                V=width,
                BLOCK_V=block_v,
                NORMALIZE=normalize,
                EVICTION=choice.eviction,
                num_warps=choice.warps,
            )
    return out
