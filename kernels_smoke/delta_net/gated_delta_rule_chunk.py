"""The gated delta rule over whole sequences, a chunk of tokens at a time: prefill."""

from dataclasses import dataclass

import torch

from kernels_smoke.delta_net.arguments import EPSILON, check_contiguous, check_heads, check_numbers
from kernels_smoke.delta_net.chunk_kernels import _carry_kernel, _segments_kernel
from kernels_smoke.delta_net.wy_representation import _prepare_kernel
from kernels_smoke.launch import (
    DTYPES_16,
    architecture,
    check_rows,
    check_written,
    multiprocessors,
    on_device_of,
    require,
)
from kernels_smoke.launch_plan import allocated, launch, plannable


@dataclass(frozen=True)
class Configuration:
    """How the launches are laid out.

    - ``chunk``: tokens that are worked on together, a power of two from 16 to 64.
    - ``block_v``: columns of the state that one program carries from chunk to chunk, with ``warps`` and ``stages``.
    - ``segments``: the most parts of a sequence that are worked on at the same time, each of ``least`` chunks or more.
    - ``block``, ``prepare_warps``: tokens of a block, and warps of a program, that prepares one chunk.
    """

    chunk: int
    block_v: int
    warps: int
    stages: int
    segments: int = 10
    least: int = 16
    block: int = 16
    prepare_warps: int = 1

    def segments_of(self, tokens: int, programs: int, available: int) -> int:
        """How many segments a sequence has: three or more, or 1 for none.

        Sequences have ``tokens`` on average; a segment of each takes ``programs`` together. The launch of the segments
        has as many for the first one, and twice as many for each other but the last: at most eight for every five of
        the ``available`` multiprocessors, as README.md says under "Layouts".
        """
        count = min(self.segments, tokens // (self.chunk * self.least), (8 * available // (5 * programs) + 3) // 2)
        return count if count > 2 else 1


def configure() -> Configuration:
    """The layout for the present GPU: see "Layouts" in README.md."""
    here = architecture()
    if here.backend == "interpret":  # small, so that small cases have several chunks, blocks and segments
        return Configuration(chunk=32, block_v=16, warps=4, stages=1, segments=4, least=1)
    if here.backend == "hip":
        return Configuration(chunk=32, block_v=32, warps=4, stages=1)
    if here.number == 90:
        return Configuration(chunk=32, block_v=64, warps=4, stages=3)
    if 100 <= here.number < 120:  # four warps and more were compiled wrongly there: see ../miscompiles/README.md
        return Configuration(chunk=32, block_v=16, warps=2, stages=2)
    return Configuration(chunk=32, block_v=32, warps=4, stages=2)


@plannable
def gated_delta_rule_chunk(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    *,
    cu_seqlens: torch.Tensor | None = None,
    initial_state: torch.Tensor | None = None,
    scale: float | None = None,
    normalize: bool = False,
    out: torch.Tensor | None = None,
    final_state: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the output of the gated delta rule for every token of one or more sequences.

    For each value head, with a state S [depth, width] in float32, and each token t of a sequence in turn::

        S = exp(log_decay[t]) S
        S = S + k[t] (beta[t] (v[t] - S^T k[t]))^T
        out[t] = scale S^T q[t]

    Formula: Yang, Kautz and Hatamizadeh, "Gated Delta Networks" (2024), section 3.1; it is computed by chunks, as
    README.md derives it. What tensor cores multiply, the state among it, is rounded to the dtype of ``q``.

    - ``q``, ``k``: [tokens, key heads, depth], ``v``: [tokens, value heads, width], bfloat16 or float16, all of one
      dtype; a multiple of value heads shares each key head, in order. Depth and width are 16, 32, 64 or 128. The
      elements of a head are contiguous; heads and tokens may be at any distance.
    - ``log_decay`` (at most 0; minus infinity begins again, behind a finite state) and ``beta``: [tokens, value heads],
      of that dtype or float32.
    - ``cu_seqlens``: [sequences + 1], int32 or int64, from 0 to the number of tokens, never falling: where each
      sequence begins and the last one ends. One sequence without it. Its values are not checked.
    - ``initial_state``: [sequences, value heads, depth, width], float32; zero without it.
    - ``scale``: depth^-0.5 unless it is given.
    - ``normalize``: divide each q[t] and k[t] by sqrt(its squared norm + 1e-6). What is multiplied with keys is scaled
      by the inverse of their norms: in float16, values over norms must be within 1e-4 and 6e4. In any dtype, beta
      times the product of two keys must be within 6e4.
    - ``out``: the result, like ``v``. ``final_state``: takes the states behind the last tokens, like
      ``initial_state``, and may be the same tensor.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    tokens, key_heads, value_heads, depth, width = check_heads(q, k, v, log_decay, beta, DTYPES_16)
    sequences = 1
    if cu_seqlens is not None:
        require(cu_seqlens.ndim == 1 and len(cu_seqlens) > 0, "cu_seqlens must be [sequences + 1]")
        sequences = len(cu_seqlens) - 1
        check_numbers("cu_seqlens", cu_seqlens, (sequences + 1,), q)
        require(sequences > 0 or not tokens, f"cu_seqlens has no sequence for {tokens} tokens")
    for name, state in (("initial_state", initial_state), ("final_state", final_state)):
        if state is not None:
            check_contiguous(name, state, (sequences, value_heads, depth, width), q)
    out = allocated(torch.empty_like(v)) if out is None else out
    check_rows("out", out, (tokens, value_heads, width), (q.dtype,), q)
    check_written("out", out)
    if not sequences:
        return out

    with on_device_of(q):
        choice = configure()
        tiles = (tokens // choice.chunk + sequences) * value_heads
        squares = allocated(q.new_empty((tiles, 2, choice.chunk, choice.chunk)))
        factors = allocated(q.new_empty((tiles, 4, choice.chunk), dtype=torch.float32))
        layout = {"VALUE_HEADS": value_heads, "GROUP": value_heads // key_heads, "K": depth, "CHUNK": choice.chunk}
        launch(
            _prepare_kernel,
            (tiles // (value_heads // key_heads),),
            q=q,
            k=k,
            log_decay=log_decay,
            beta=beta,
            cu_seqlens=cu_seqlens,
            squares=squares,
            factors=factors,
            tokens=tokens,
            sequences=sequences,
            q_stride=q.stride(0),
            q_head_stride=q.stride(1),
            k_stride=k.stride(0),
            k_head_stride=k.stride(1),
            log_decay_stride=log_decay.stride(0),
            beta_stride=beta.stride(0),
            scale=depth**-0.5 if scale is None else scale,
            epsilon=EPSILON,
            **layout,
            BLOCK=choice.block,
            NORMALIZE=normalize,
            num_warps=choice.prepare_warps,
        )
        block_v = min(choice.block_v, width, depth)
        blocks, blocks_of_a = width // block_v, depth // block_v
        rows = sequences * value_heads
        segments = choice.segments_of(tokens // sequences, rows * blocks, multiprocessors(q, 132 if q.is_meta else 64))
        states = transitions = None
        carried = {
            "q": q,
            "k": k,
            "v": v,
            "cu_seqlens": cu_seqlens,
            "squares": squares,
            "factors": factors,
            "initial_state": initial_state,
            "out": out,
            "tokens": tokens,
            "segments": segments,
            "q_stride": q.stride(0),
            "q_head_stride": q.stride(1),
            "k_stride": k.stride(0),
            "k_head_stride": k.stride(1),
            "v_stride": v.stride(0),
            "v_head_stride": v.stride(1),
            "out_stride": out.stride(0),
            "out_head_stride": out.stride(1),
            **layout,
            "V": width,
            "BLOCK_V": block_v,
            "FAR": max(tensor.stride(0) for tensor in (q, k, v, out)) * choice.chunk >= 2**31,
            "num_warps": choice.warps,
            "num_stages": choice.stages,
        }
        if segments > 1:
            states = allocated(q.new_empty((rows, segments - 1, width, depth), dtype=torch.float32))
            transitions = allocated(q.new_empty((rows, segments - 2, depth, depth)))
            programs = rows * (blocks + (segments - 2) * (blocks + blocks_of_a))
            launch(_segments_kernel, (programs,), **carried, rows=rows, states=states, transitions=transitions)
        launch(
            _carry_kernel,
            (rows * blocks * max(segments - 1, 1),),
            **carried,
            states=states,
            transitions=transitions,
            final_state=final_state,
            SPLIT=segments > 1,
        )
    return out
