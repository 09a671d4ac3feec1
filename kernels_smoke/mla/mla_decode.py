"""Decoding of multi-head latent attention over a paged cache."""

import math
from dataclasses import dataclass

import torch
import triton

from kernels_smoke.attention.parts import merge, most_segments, parts
from kernels_smoke.gluon import GLUON, hopper_gluon
from kernels_smoke.launch import (
    DTYPES,
    architecture,
    check_rows,
    check_scale,
    check_written,
    multiprocessors,
    on_device_of,
    require,
)
from kernels_smoke.launch_plan import allocated, launch, plannable
from kernels_smoke.matmul.tiles import described, descriptor
from kernels_smoke.mla.latent_attention import _attend_kernel

if GLUON:
    from kernels_smoke.mla.specialized_heads import attend_heads, fits

WIDEST = 512  # elements of the latent part
LEAST = 16  # rows and columns of a matrix product


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    - ``block_h``: heads of a program. ``tile``: positions of one step. ``warps``, ``stages``: of one program.
    - ``fill``: programs for each multiprocessor, into which few sequences are divided. ``describe``: rows come through
      descriptors where a page holds whole tiles.
    - ``specialized``: by the kernel in ``specialized_heads.py``, which has its own warps.
    """

    block_h: int
    tile: int
    warps: int
    stages: int
    fill: int = 1
    describe: bool = True
    specialized: bool = False


def configure(heads: int, element_size: int, architecture: str) -> Configuration:
    """The layout for ``heads`` heads and elements of ``element_size`` bytes: see "Layouts" in README.md."""
    if architecture == "interpret" or architecture.startswith("gfx") or element_size == 4:
        return Configuration(16, 16, warps=4, stages=1)  # 64 KiB of local memory; float32 is for tests
    if architecture in {"sm_86", "sm_89", "sm_120", "sm_121"}:  # 99 KiB of shared memory, operands in registers
        return Configuration(16, 32, warps=4, stages=2)
    if heads <= 16:
        return Configuration(16, 64, warps=8, stages=2 if architecture == "sm_80" else 3, describe=False)
    if architecture == "sm_80":
        return Configuration(32, 32, warps=8, stages=2)
    if architecture == "sm_90":
        return Configuration(64, 64, warps=8, stages=2, specialized=True)
    # On sm_100, sm_103 and sm_110, accumulators come from tensor memory through shared memory.
    return Configuration(64, 32, warps=8, stages=2)


@plannable
def mla_decode(
    query: torch.Tensor,
    latent_cache: torch.Tensor,
    page_table: torch.Tensor,
    sequence_lengths: torch.Tensor,
    *,
    scale: float,
    latent_dim: int = 512,
    longest_sequence: int | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``softmax(scale * q C^T) C[:, :latent_dim]`` for one token of each sequence, for each of its heads.

    Multi-head latent attention, with the projections of keys and values absorbed into those of queries and results
    (DeepSeek-AI, "DeepSeek-V2" (2024), section 2.1 and appendix C): all heads share the cache C, whose row is the
    latent vector of a position, ``latent_dim`` elements, and behind it the key that carries the rotary embedding.
    Position p is row ``p % page_size`` of page ``page_table[sequence, p // page_size]``.

    - ``query``: [sequences, heads, width], bfloat16, float16 or float32; width is that of latent vector and key
      together, 576 for DeepSeek-V3.
    - ``latent_cache``: [pages, page_size, width] of that dtype. Rows of it, of ``query`` and of ``out`` may be strided.
    - ``page_table``: [sequences, most pages of a sequence], int32. What is after a sequence's last page is not
      read, nor is what is in that page behind its last position.
    - ``sequence_lengths``: [sequences], int32. The result of a sequence without positions is zero.
    - ``scale``: of the scores, positive: 1 / sqrt(192) for DeepSeek-V3, the width of a head before absorption.
    - ``longest_sequence``: an upper bound of the lengths, which must be kept; else all that there is room for.
    - ``out``: the result [sequences, heads, latent_dim], of the dtype of ``query``.

    The integer tensors are read on the GPU only, and the launch does not depend on their values: captured in a CUDA
    graph, a call serves every batch for which there is room. Page numbers are not checked.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    require(query.ndim == 3, f"query must be [sequences, heads, width], not {query.ndim}-dimensional")
    require(
        latent_cache.ndim == 3, f"latent_cache must be [pages, page_size, width], not {latent_cache.ndim}-dimensional"
    )
    require(page_table.ndim == 2, "page_table must be [sequences, most pages of a sequence]")
    (sequences, heads, width), (pages, page_size, _) = query.shape, latent_cache.shape
    require(0 < latent_dim <= WIDEST, f"latent vectors are {latent_dim} elements wide; 1 to {WIDEST} are possible")
    rope = width - latent_dim
    require(
        0 < rope <= WIDEST, f"query is {width} elements wide; {latent_dim + 1} to {latent_dim + WIDEST} are possible"
    )
    require(page_size > 0, "pages must hold at least one position")
    require(
        longest_sequence is None or longest_sequence > 0, f"longest_sequence must be 1 or more, not {longest_sequence}"
    )
    check_scale(scale)
    check_rows("query", query, (sequences, heads, width), DTYPES, query)
    check_rows("latent_cache", latent_cache, (pages, page_size, width), (query.dtype,), query)
    check_rows("page_table", page_table, (sequences, page_table.shape[1]), (torch.int32,), query)
    check_rows("sequence_lengths", sequence_lengths, (sequences,), (torch.int32,), query)
    out = allocated(query.new_empty((sequences, heads, latent_dim))) if out is None else out
    check_rows("out", out, (sequences, heads, latent_dim), (query.dtype,), query)
    check_written("out", out)
    # Offsets within a page and within a token are computed in 32 bits.
    require(page_size * latent_cache.stride(1) < 2**31, "a page of latent_cache spans 2^31 elements or more")
    for name, tensor in (("query", query), ("out", out)):
        require(heads * tensor.stride(1) < 2**31, f"a token of {name} spans 2^31 elements or more")
    if out.numel():
        with on_device_of(query):
            choice = configure(heads, query.itemsize, architecture().name)
            capacity = page_table.shape[1] * page_size
            longest = min(longest_sequence or capacity, capacity)
            _launch(query, latent_cache, page_table, sequence_lengths, out, scale, longest, choice)
    return out


def _launch(
    query: torch.Tensor,
    latent_cache: torch.Tensor,
    page_table: torch.Tensor,
    sequence_lengths: torch.Tensor,
    out: torch.Tensor,
    scale: float,
    longest: int,
    choice: Configuration,
) -> None:
    """Launch a program for each segment and block of heads, and merge the segments."""
    (sequences, heads, width), latent_dim = query.shape, out.shape[2]
    page_size = latent_cache.shape[1]
    capacity = page_table.shape[1] * page_size
    head_blocks = triton.cdiv(heads, choice.block_h)
    segments = most_segments(
        longest,
        programs=sequences * head_blocks,
        wanted=choice.fill * multiprocessors(query),
        interpreted=architecture().backend == "interpret",
    )
    made = parts(out, sequences, segments)
    if choice.specialized and hopper_gluon() and fits(query, latent_cache, latent_dim):
        attend_heads(query, latent_cache, page_table, sequence_lengths, out, made=made, scale=scale * math.log2(math.e))
        merge(made, out, sequence_lengths, capacity, choice.tile)
        return
    rows = _rows_of(latent_cache) if choice.describe and page_size % choice.tile == 0 else None
    block_latent, block_rope = (max(triton.next_power_of_2(size), LEAST) for size in (latent_dim, width - latent_dim))
    describe = rows is not None and (block_latent, block_rope) == (latent_dim, width - latent_dim)
    launch(
        _attend_kernel,
        (sequences * segments * head_blocks,),
        query=query,
        cache=latent_cache,
        latent_rows=descriptor(rows, choice.tile, block_latent) if describe and rows is not None else None,
        rope_rows=descriptor(rows, choice.tile, block_rope) if describe and rows is not None else None,
        page_table=page_table,
        **made.arguments,
        sequence_lengths=sequence_lengths,
        out=out,
        heads=heads,
        capacity=capacity,
        scale=scale * math.log2(math.e),
        query_stride=query.stride(0),
        query_head_stride=query.stride(1),
        page_stride=latent_cache.stride(0),
        position_stride=latent_cache.stride(1),
        table_stride=page_table.stride(0),
        out_stride=out.stride(0),
        out_head_stride=out.stride(1),
        DESCRIBE=describe,
        BLOCK_H=choice.block_h,
        TILE=choice.tile,
        TAIL=LEAST,
        PAGE_SIZE=page_size,
        LATENT=latent_dim,
        ROPE=width - latent_dim,
        BLOCK_LATENT=block_latent,
        BLOCK_ROPE=block_rope,
        num_warps=choice.warps,
        num_stages=choice.stages,
    )
    merge(made, out, sequence_lengths, capacity, choice.tile)


def _rows_of(cache: torch.Tensor) -> torch.Tensor | None:
    """The cache [pages, page_size, width] as one matrix for a descriptor; None where that is not possible."""
    pages, page_size, width = cache.shape
    if cache.stride(0) != page_size * cache.stride(1) or pages * page_size >= 2**31:
        return None
    matrix = cache.as_strided((pages * page_size, width), cache.stride()[1:])
    return matrix if described(matrix) else None
