"""The short causal convolution of a gated delta net over whole sequences, with states by row number: prefill."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.delta_net.arguments import check_numbers
from kernels_smoke.delta_net.wy_representation import _bounds, _first_slot, _sequence_of
from kernels_smoke.launch import (
    DTYPES,
    MOST_ROWS,
    check_apart,
    check_rows,
    check_written,
    interpreted,
    on_device_of,
    require,
)
from kernels_smoke.launch_plan import allocated, launch, plannable_apart

WIDTHS = (2, 3, 4)  # taps for each channel


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    A program has ``block_t`` tokens of ``block_c`` channels, and ``warps`` warps. The inputs of ``rows`` tokens are on
    their way at the same time.
    """

    block_t: int
    block_c: int
    warps: int
    rows: int


def configure(channels: int) -> Configuration:
    """The layout for the present GPU; in the interpreter small, so that small cases have several blocks.

    Loads of rows that are no multiple of 16 elements are narrow: their addresses take the registers of four tokens.
    """
    if interpreted():
        return Configuration(8, 32, 4, rows=4)
    return Configuration(block_t=32, block_c=512, warps=4, rows=4 if channels % 16 else 8)


@triton.jit
def _taps(weight, o_c, in_c, WIDTH: tl.constexpr, BLOCK_C: tl.constexpr):
    """The weights of the last input, and of one, two and three before it, float32, [BLOCK_C] each; zero beyond WIDTH.

    A thread loads all taps of its channels at once: tap by tap, these loads take longer than those of the inputs.
    """
    tap = tl.arange(0, 4) + (WIDTH - 4)
    inside = in_c[:, None]
    if WIDTH < 4:
        inside &= (tap >= 0)[None, :]
    b_w = tl.load(weight + o_c[:, None] * WIDTH + tap[None, :], mask=inside, other=0.0)  # [BLOCK_C, 4]
    even, odd = tl.split(b_w.to(tl.float32).reshape(BLOCK_C, 2, 2))  # of three and one back, of two and none
    w3, w1 = tl.split(even)
    w2, w0 = tl.split(odd)
    return w0, w1, w2, w3


@triton.jit
def _held(states, row, tap, o_c, in_c, states_stride, states_tap_stride):
    """The input [BLOCK_C] number ``tap`` of the state in ``row``; zero where there is no such row."""
    return tl.load(states + row * states_stride + tap * states_tap_stride + o_c, mask=in_c & (row >= 0), other=0.0)


@triton.jit
def _input(x, states, at, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH: tl.constexpr):
    """The input [BLOCK_C] at token ``at``; one before the sequence is in the state that it began with."""
    value = tl.load(x + at * x_stride + o_c, mask=in_c & (at >= begin) & (at < end), other=0.0)  # [BLOCK_C]
    if states is not None:
        tap = at - begin + WIDTH - 1
        before = in_c & (at < begin) & (tap >= 0)
        value += _held(states, row, tap, o_c, before, states_stride, states_tap_stride)
    return value


@triton.jit
def _keep(x, states, kept, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH: tl.constexpr):
    """Store the last inputs of a sequence in the row ``kept``, if that is one."""
    last = _input(  # [BLOCK_C]
        x, states, end - 1, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH
    )
    second = _input(  # [BLOCK_C]
        x, states, end - 2, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH
    )
    third = _input(  # [BLOCK_C]
        x, states, end - 3, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH
    )
    tl.debug_barrier()  # several threads may hold one channel: all have read before one writes
    o_kept = states + kept * states_stride + o_c
    mask = in_c & (kept >= 0)
    tl.store(o_kept + (WIDTH - 2) * states_tap_stride, last, mask=mask)
    if WIDTH > 2:
        tl.store(o_kept + (WIDTH - 3) * states_tap_stride, second, mask=mask)
    if WIDTH > 3:
        tl.store(o_kept + (WIDTH - 4) * states_tap_stride, third, mask=mask)


@triton.jit
def _prefill_kernel(
    x, weight, bias, cu_seqlens, states, state_indices_in, state_indices_out, out, tokens, sequences, channels,
    x_stride, out_stride, states_stride, states_tap_stride,
    WIDTH: tl.constexpr, SILU: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    blocks = tl.cdiv(channels, BLOCK_C)
    program = tl.program_id(0).to(tl.int64)
    slot = program // blocks
    o_c = (program % blocks) * BLOCK_C + tl.arange(0, BLOCK_C)
    in_c = o_c < channels
    sequence = slot * 0
    if cu_seqlens is not None:
        sequence = _sequence_of(slot, cu_seqlens, sequences, BLOCK_T)
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    first = begin + (slot - _first_slot(begin, sequence, BLOCK_T)) * BLOCK_T
    row = sequence * 0 - 1
    if state_indices_in is not None:
        row = tl.load(state_indices_in + sequence).to(tl.int64)  # [1]

    w0, w1, w2, w3 = _taps(weight, o_c, in_c, WIDTH, BLOCK_C)
    start = tl.zeros((BLOCK_C,), tl.float32)
    if bias is not None:
        start += tl.load(bias + o_c, mask=in_c, other=0.0).to(tl.float32)  # [BLOCK_C]
    # The inputs of one, two and three tokens ago stay in registers: each input is loaded, and converted, once.
    x1 = _input(  # [BLOCK_C]
        x, states, first - 1, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH
    ).to(tl.float32)
    x2 = _input(  # [BLOCK_C]
        x, states, first - 2, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH
    ).to(tl.float32)
    x3 = _input(  # [BLOCK_C]
        x, states, first - 3, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH
    ).to(tl.float32)
    count = tl.minimum(end - first, BLOCK_T).to(tl.int32)
    o_x = x + first * x_stride + o_c
    o_out = out + first * out_stride + o_c
    for start_row in range(0, count, ROWS):
        inputs: tl.tuple = ()
        for step in tl.static_range(ROWS):
            inputs += (tl.load(o_x, mask=in_c & (start_row + step < count), other=0.0),)  # [BLOCK_C]
            o_x += x_stride
        for step in tl.static_range(ROWS):
            x0 = inputs[step].to(tl.float32)
            acc = start + x3 * w3 + x2 * w2 + x1 * w1 + x0 * w0
            if SILU:
                acc = acc / (1.0 + tl.exp(-acc))
            tl.store(o_out, acc.to(out.dtype.element_ty), mask=in_c & (start_row + step < count))
            o_out += out_stride
            x3, x2, x1 = x2, x1, x0

    # The program that reads the state writes it, too: the rows of both may be one, and no other program sees either.
    if state_indices_out is not None:  # noqa: SIM102  # which the compiler decides
        if first == begin:
            kept = tl.load(state_indices_out + sequence).to(tl.int64)  # [1]
            _keep(x, states, kept, begin, end, row, o_c, in_c, x_stride, states_stride, states_tap_stride, WIDTH)


@plannable_apart
def causal_conv1d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    cu_seqlens: torch.Tensor | None = None,
    states: torch.Tensor | None = None,
    state_indices_in: torch.Tensor | None = None,
    state_indices_out: torch.Tensor | None = None,
    silu: bool = True,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the causal convolution of each channel over one or more sequences; states are written in place.

    ``out[t, c] = silu(bias[c] + sum over j of weight[c, j] x[t - (taps - 1) + j, c])``, computed in float32 and rounded
    once. Inputs before a sequence come from the row ``state_indices_in[n]`` of ``states``, and its last ones go to the
    row ``state_indices_out[n]``, which may be the same. Source: the causal convolution of Mamba (Gu and Dao, 2023) and
    of gated delta nets (Yang, Kautz and Hatamizadeh, 2024, section 3.4).

    - ``x``: [tokens, channels], bfloat16, float16 or float32; rows may be strided.
    - ``weight``: [channels, taps] with 2, 3 or 4 taps, contiguous; ``bias``: [channels]; of that dtype or float32.
    - ``cu_seqlens``: [sequences + 1], int32 or int64, from 0 to the number of tokens, never falling. One sequence
      without it. Its values are not checked.
    - ``states``: [rows, taps - 1, channels], of the dtype of ``x``: the last inputs of a sequence, the oldest first.
      Rows and taps may be at any distance.
    - ``state_indices_in``, ``state_indices_out``: [sequences], int32 or int64. A negative number is not a row: such a
      sequence begins with zeros, or its state is not kept; so do all without the tensor. No row may be written for two
      sequences, nor be written for one and read by another. The numbers are not checked.
    - ``silu``: False leaves the sum as it is. ``out``: the result, like ``x``; not in the memory of ``x``.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    tokens, channels, taps = check_convolution(x, weight, bias)
    sequences = 1
    if cu_seqlens is not None:
        require(cu_seqlens.ndim == 1 and len(cu_seqlens) > 0, "cu_seqlens must be [sequences + 1]")
        sequences = len(cu_seqlens) - 1
        check_numbers("cu_seqlens", cu_seqlens, (sequences + 1,), x)
        require(sequences > 0 or not tokens, f"cu_seqlens has no sequence for {tokens} tokens")
    for name, numbers in (("state_indices_in", state_indices_in), ("state_indices_out", state_indices_out)):
        if numbers is not None:
            require(states is not None, f"{name} needs states")
            check_numbers(name, numbers, (sequences,), x)
    if states is not None:
        check_states(states, channels, taps, x)
    out = check_result(out, x)
    if not sequences:
        return out

    choice = configure(channels)
    slots = tokens // choice.block_t + sequences  # as in gated_delta_rule_chunk: no two sequences share one
    with on_device_of(x):
        launch(
            _prefill_kernel,
            (slots * triton.cdiv(channels, choice.block_c),),
            x=x,
            weight=weight,
            bias=bias,
            cu_seqlens=cu_seqlens,
            states=states,
            state_indices_in=state_indices_in,
            state_indices_out=state_indices_out,
            out=out,
            tokens=tokens,
            sequences=sequences,
            channels=channels,
            x_stride=x.stride(0),
            out_stride=out.stride(0),
            states_stride=0 if states is None else states.stride(0),
            states_tap_stride=0 if states is None else states.stride(1),
            WIDTH=taps,
            SILU=silu,
            BLOCK_T=choice.block_t,
            BLOCK_C=choice.block_c,
            ROWS=choice.rows,
            num_warps=choice.warps,
        )
    return out


def check_convolution(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> tuple[int, int, int]:
    """Return (tokens, channels, taps) of x [tokens, channels] and weight [channels, taps].

    Raises ValueError when a shape, dtype, device or stride does not fit.
    """
    require(x.ndim == 2, f"x must be [tokens, channels], not {x.ndim}-dimensional")
    tokens, channels = x.shape
    require(channels > 0, "x has no channels")
    require(tokens < MOST_ROWS, f"x has {tokens} tokens; the limit is {MOST_ROWS}")
    check_rows("x", x, (tokens, channels), DTYPES, x)
    require(weight.ndim == 2, f"weight must be [channels, taps], not {weight.ndim}-dimensional")
    taps = weight.shape[1]
    require(taps in WIDTHS, f"weight has {taps} taps; {', '.join(map(str, WIDTHS))} are possible")
    dtypes = tuple(dict.fromkeys((x.dtype, torch.float32)))
    check_rows("weight", weight, (channels, taps), dtypes, x)
    require(weight.is_contiguous(), "weight must be contiguous")
    if bias is not None:
        check_rows("bias", bias, (channels,), dtypes, x)
    return tokens, channels, taps


def check_states(states: torch.Tensor, channels: int, taps: int, x: torch.Tensor) -> None:
    """Raise ValueError unless ``states`` is [rows, taps - 1, channels] like ``x``, each element in its own memory."""
    require(states.ndim == 3, f"states must be [rows, taps - 1, channels], not {states.ndim}-dimensional")
    check_rows("states", states, (states.shape[0], taps - 1, channels), (x.dtype,), x)
    check_written("states", states)


def check_result(out: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor:
    """``out``, or a new tensor like ``x``. Raises ValueError unless it is like ``x``, and apart from it."""
    out = allocated(torch.empty_like(x)) if out is None else out
    check_rows("out", out, tuple(x.shape), (x.dtype,), x)
    check_written("out", out)
    check_apart("out", out, "x", x)
    return out
