"""The short causal convolution for one or a few tokens of many requests: decoding, and the verification of drafts."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.delta_net.arguments import check_numbers
from kernels_smoke.delta_net.causal_conv1d import _held, _taps, check_convolution, check_result, check_states
from kernels_smoke.launch import interpreted, on_device_of, require
from kernels_smoke.launch_plan import launch, plannable_apart


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out: a program keeps ``block_c`` channels of one state with ``warps`` warps."""

    block_c: int
    warps: int


def configure() -> Configuration:
    """The layout for the present GPU; in the interpreter small, so that small cases have several blocks."""
    return Configuration(block_c=32, warps=4) if interpreted() else Configuration(block_c=512, warps=4)


@triton.jit
def _update_kernel(
    x, weight, bias, states, state_indices_in, state_indices_out, out, channels,
    x_stride, out_stride, states_stride, states_tap_stride,
    STEPS: tl.constexpr, WIDTH: tl.constexpr, SILU: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    blocks = tl.cdiv(channels, BLOCK_C)
    program = tl.program_id(0).to(tl.int64)
    request = program // blocks
    o_c = (program % blocks) * BLOCK_C + tl.arange(0, BLOCK_C)
    in_c = o_c < channels
    # What the first token needs is on its way while the state's row number is.
    token = request * STEPS
    x0 = tl.load(x + token * x_stride + o_c, mask=in_c, other=0.0)  # [BLOCK_C]
    kept = tl.load(state_indices_out + token).to(tl.int64)  # [1]
    # The inputs of one, two and three tokens ago, and their weights; fewer taps than four leave the oldest zero.
    row = tl.load(state_indices_in + request).to(tl.int64)  # [1]
    x1 = _held(states, row, WIDTH - 2, o_c, in_c, states_stride, states_tap_stride)  # [BLOCK_C]
    x2 = _held(states, row, WIDTH - 3, o_c, in_c & (WIDTH > 2), states_stride, states_tap_stride)  # [BLOCK_C]
    x3 = _held(states, row, WIDTH - 4, o_c, in_c & (WIDTH > 3), states_stride, states_tap_stride)  # [BLOCK_C]
    tl.debug_barrier()  # several threads may hold one channel: all have read before one writes
    w0, w1, w2, w3 = _taps(weight, o_c, in_c, WIDTH, BLOCK_C)
    start = tl.zeros((BLOCK_C,), tl.float32)
    if bias is not None:
        start += tl.load(bias + o_c, mask=in_c, other=0.0).to(tl.float32)  # [BLOCK_C]
    for step in range(STEPS):
        acc = start + x3.to(tl.float32) * w3 + x2.to(tl.float32) * w2
        acc += x1.to(tl.float32) * w1 + x0.to(tl.float32) * w0
        if SILU:
            acc = acc / (1.0 + tl.exp(-acc))
        tl.store(out + token * out_stride + o_c, acc.to(out.dtype.element_ty), mask=in_c)
        x3, x2, x1 = x2, x1, x0
        o_kept = states + kept * states_stride + o_c
        mask = in_c & (kept >= 0)
        tl.store(o_kept + (WIDTH - 2) * states_tap_stride, x1, mask=mask)
        if WIDTH > 2:
            tl.store(o_kept + (WIDTH - 3) * states_tap_stride, x2, mask=mask)
        if WIDTH > 3:
            tl.store(o_kept + (WIDTH - 4) * states_tap_stride, x3, mask=mask)
        if STEPS > 1:
            token += 1
            more = step + 1 < STEPS
            x0 = tl.load(x + token * x_stride + o_c, mask=in_c & more, other=0.0)  # [BLOCK_C]
            kept = tl.load(state_indices_out + token, mask=more, other=-1).to(tl.int64)  # [1]


@plannable_apart
def causal_conv1d_update(
    x: torch.Tensor,
    weight: torch.Tensor,
    states: torch.Tensor,
    state_indices_in: torch.Tensor,
    state_indices_out: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    silu: bool = True,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the convolution of ``causal_conv1d`` for ``steps`` tokens of each request; states are written in place.

    Request b begins with the inputs in the row ``state_indices_in[b]`` of ``states``, and those behind its token t go
    to the row ``state_indices_out[b, t]``, as the states of ``gated_delta_rule_decode`` do: drafted tokens are verified
    without a copy. All other rows stay as they are, bit for bit.

    - ``x``: [requests * steps, channels], bfloat16, float16 or float32; the tokens of a request follow one another;
      rows may be strided. ``weight``, ``bias``, ``states``, ``silu`` and ``out``: as for ``causal_conv1d``.
    - ``state_indices_in``: [requests], ``state_indices_out``: [requests, steps]; int32 or int64, contiguous. A negative
      number is not a row: such a request begins with zeros, or a state is not kept. No row may be written for two
      tokens, nor be written by one request and read by another. The numbers are not checked.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    tokens, channels, taps = check_convolution(x, weight, bias)
    require(state_indices_out.ndim == 2, "state_indices_out must be [requests, steps]")
    requests, steps = state_indices_out.shape
    require(requests * steps == tokens, f"there are {tokens} tokens for {requests} requests of {steps}")
    check_numbers("state_indices_in", state_indices_in, (requests,), x)
    check_numbers("state_indices_out", state_indices_out, (requests, steps), x)
    check_states(states, channels, taps, x)
    out = check_result(out, x)
    if tokens:
        choice = configure()
        with on_device_of(x):
            launch(
                _update_kernel,
                (requests * triton.cdiv(channels, choice.block_c),),
                x=x,
                weight=weight,
                bias=bias,
                states=states,
                state_indices_in=state_indices_in,
                state_indices_out=state_indices_out,
                out=out,
                channels=channels,
                x_stride=x.stride(0),
                out_stride=out.stride(0),
                states_stride=states.stride(0),
                states_tap_stride=states.stride(1),
                STEPS=steps,
                WIDTH=taps,
                SILU=silu,
                BLOCK_C=choice.block_c,
                num_warps=choice.warps,
            )
    return out
