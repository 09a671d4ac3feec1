"""Causal attention over a paged cache of keys and values, for prompts and decoding in one batch."""

from __future__ import annotations

import math

import torch
import triton

from kernels_smoke.attention.batch import POWERS_OF_TWO, STAGES, Batch, Choice
from kernels_smoke.attention.decision import choose
from kernels_smoke.attention.layout import FEW_ROWS, Configuration, Layout, configure
from kernels_smoke.attention.tiled_softmax import _attend_kernel, _merge_kernel
from kernels_smoke.launch import (
    DTYPES,
    architecture,
    check_scale,
    check_written,
    multiprocessors,
    on_device_of,
    require,
)

WIDEST = 256  # elements of a head
FILL = 2  # of the stages that divide short sequences, when they are asked for by name


def paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    page_table: torch.Tensor,
    cumulative_query_lengths: torch.Tensor,
    sequence_lengths: torch.Tensor,
    *,
    scale: float | None = None,
    variant: str = "auto",
    longest_query: int | None = None,
    longest_sequence: int | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``softmax(scale * q K^T) V`` for each query token and head, over the positions that the token sees.

    A sequence of length L, of which the last n tokens are in ``query``, may have any n from 0 (it is left out) over 1
    (decoding) to L (a prompt); its query token i sees the positions 0 to L - n + i, its own among them. Position p is
    row ``p % page_size`` of page ``page_table[sequence, p // page_size]``. Query head h uses head
    ``h // (heads / kv_heads)`` of keys and values. Sources: Kwon et al., "Efficient Memory Management for Large
    Language Model Serving with PagedAttention" (2023), section 4; the stages are those of Ringlein et al., "The
    Anatomy of a Triton Attention Kernel", section 4.

    - ``query``: [tokens, heads, head_dim], bfloat16, float16 or float32; the tokens of one sequence after those of the
      other. Rows of it, of the caches and of the result may be strided.
    - ``key_cache``, ``value_cache``: [pages, page_size, kv_heads, head_dim], of that dtype, with the same strides.
    - ``page_table``: [sequences, most pages of a sequence], int32. What stands behind a sequence's last page is not
      read, nor is what stands in that page behind its last position.
    - ``cumulative_query_lengths``: [sequences + 1], int32: where the query tokens of each sequence begin, and the end.
      Tokens before the first sequence, and behind the last one, are left as they are in ``out``.
    - ``sequence_lengths``: [sequences], int32, each at least the sequence's number of query tokens.
    - ``scale``: of the scores, positive; 1 / sqrt(head_dim) unless said otherwise.
    - ``variant``: one of ``STAGES``, or "auto", which looks into ``decision.py``. All compute the same.
    - ``longest_query``, ``longest_sequence``: upper bounds of the lengths, which help to choose, and which the
      values must keep; without them, all that there is room for. Decoding is much faster with ``longest_query``.
    - ``out``: the result, like ``query``; no gradient is recorded for it.

    The values of the three integer tensors are read on the GPU only, and the launch does not depend on them: captured
    in a CUDA graph, a call serves every batch for which there is room. Values that break what is said here give
    results that mean nothing, as do page numbers beyond the cache, which are not checked.

    Raises TypeError when an argument should be a tensor and is not, ValueError when a shape, dtype, device or stride
    is not as said, when the variant is unknown, or, up to the stage "segments", the page size is no power of two from
    16 on.
    """
    tensors = {
        "query": query,
        "key_cache": key_cache,
        "value_cache": value_cache,
        "page_table": page_table,
        "cumulative_query_lengths": cumulative_query_lengths,
        "sequence_lengths": sequence_lengths,
    }
    out = torch.empty_like(query) if out is None and isinstance(query, torch.Tensor) else out
    _check({**tensors, "out": out})
    assert out is not None  # noqa: S101  # for mypy: _check has seen that it is a tensor
    (tokens, heads, head_dim), (_, page_size, kv_heads, _) = query.shape, key_cache.shape
    sequences, most_pages = page_table.shape
    capacity = most_pages * page_size
    scale = 1.0 / math.sqrt(head_dim) if scale is None else scale
    check_scale(scale)
    require(variant in {"auto", *STAGES}, f"variant must be auto or one of {', '.join(STAGES)}, not {variant!r}")
    for name, bound in (("longest_query", longest_query), ("longest_sequence", longest_sequence)):
        require(bound is None or (isinstance(bound, int) and bound > 0), f"{name} must be 1 or more, not {bound}")
    require(
        variant not in POWERS_OF_TWO or (page_size >= FEW_ROWS and page_size & (page_size - 1) == 0),
        f"pages of {page_size} positions take the variant 'tiles' or 'static': 'naive', 'query_blocks' and 'segments' "
        f"want a power of two from {FEW_ROWS} on",
    )
    if not (tokens and sequences):
        return out
    batch = Batch(
        tokens=tokens,
        sequences=sequences,
        longest_query=min(tokens if longest_query is None else longest_query, tokens),
        longest_sequence=min(capacity if longest_sequence is None else longest_sequence, capacity),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        page_size=page_size,
        element_size=query.itemsize,
        multiprocessors=multiprocessors(query),
    )
    choice = choose(batch) if variant == "auto" else Choice(variant, fill=FILL)
    with on_device_of(query):
        _launch(tensors, out, scale * math.log2(math.e), batch, configure(batch, choice, architecture().name))
    return out


def _launch(
    tensors: dict[str, torch.Tensor], out: torch.Tensor, scale: float, batch: Batch, configuration: Configuration
) -> None:
    """Launch what ``configuration`` says: blocks, short sequences, the merging of their segments; each if any."""
    query, cache, page_table, *lengths = (
        tensors[name] for name in ("query", "key_cache", "page_table", "cumulative_query_lengths", "sequence_lengths")
    )
    group, heads = batch.heads // batch.kv_heads, configuration.heads
    head_blocks = batch.kv_heads * triton.cdiv(group, heads)
    capacity = page_table.shape[1] * batch.page_size
    short, segments = configuration.short, configuration.segments
    # Without a GPU there are fewer programs than items, too: the loop over items is interpreted as it will run.
    most = configuration.programs * (batch.multiprocessors if query.device.type != "cpu" else 3)
    block_d = max(triton.next_power_of_2(batch.head_dim), FEW_ROWS)
    shape = {"HEAD_DIM": batch.head_dim, "BLOCK_D": block_d}
    partial = _partial_results(query, batch, short, segments)

    def attend(layout: Layout, items: int, above: int, *, of_short: bool) -> None:
        _attend_kernel[(min(items, most) or items,)](
            *tensors.values(),
            *(out, *partial),
            *(batch.sequences, batch.heads, capacity, segments, above, scale),
            *query.stride()[:2],
            *cache.stride()[:3],
            page_table.stride(0),
            *out.stride()[:2],
            **shape,
            SHORT=of_short,
            GROUP=group,
            HEADS=heads,
            QUERIES=layout.queries,
            BLOCK_M=max(triton.next_power_of_2(layout.queries * heads), FEW_ROWS),
            TILE=layout.tile,
            PAGE_SIZE=batch.page_size,
            STATIC=configuration.programs > 0,
            num_warps=layout.warps,
            num_stages=layout.stages,
        )

    if blocks := configuration.blocks:
        items = (batch.tokens // blocks.queries + batch.sequences) * head_blocks
        attend(blocks, items, short.queries if short else 0, of_short=False)
    if short:
        attend(short, batch.sequences * segments * head_blocks, 0, of_short=True)
    if short and segments > 1:
        _merge_kernel[(batch.sequences, batch.heads)](
            *(*partial, *lengths, out, batch.heads, capacity, segments, *out.stride()[:2]),
            **shape,
            QUERIES=short.queries,
            TILE=short.tile,
            BLOCK_SEGMENTS=triton.next_power_of_2(segments),
            num_warps=4,
        )


def _partial_results(
    query: torch.Tensor, batch: Batch, short: Layout | None, segments: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Room for what segments leave: accumulators, maxima and sums, float32; nothing where there is one segment."""
    slots = batch.sequences * short.queries * batch.heads * segments if short and segments > 1 else 0
    room = query.new_empty(slots * (batch.head_dim + 2), dtype=torch.float32)
    accumulators, maxima, totals = room.split([slots * batch.head_dim, slots, slots])
    return accumulators, maxima, totals


def _check(tensors: dict[str, torch.Tensor | None]) -> None:
    """Raise TypeError or ValueError unless the arguments fit each other as the docstring above says."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(tensor).__name__}")
    given: dict[str, torch.Tensor] = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    query, keys = given["query"], given["key_cache"]
    require(query.ndim == 3, f"query must be [tokens, heads, head_dim], not {query.ndim}-dimensional")
    require(keys.ndim == 4, f"key_cache must be [pages, page_size, kv_heads, head_dim], not {keys.ndim}-dimensional")
    (_, heads, head_dim), (_, page_size, kv_heads, _) = query.shape, keys.shape
    require(given["page_table"].ndim == 2, "page_table must be [sequences, most pages of a sequence]")
    sequences = given["page_table"].shape[0]
    shapes = {
        "query": tuple(query.shape),
        "key_cache": (keys.shape[0], page_size, kv_heads, head_dim),
        "value_cache": tuple(keys.shape),
        "page_table": tuple(given["page_table"].shape),
        "cumulative_query_lengths": (sequences + 1,),
        "sequence_lengths": (sequences,),
        "out": tuple(query.shape),
    }
    require(0 < head_dim <= WIDEST, f"heads are {head_dim} elements wide; 1 to {WIDEST} are possible")
    require(page_size > 0, "pages must hold at least one position")
    require(
        kv_heads > 0 and heads > 0 and heads % kv_heads == 0,
        f"the number of query heads must be a multiple of that of key heads, not {heads} and {kv_heads}",
    )
    require(query.dtype in DTYPES, f"query must be {' or '.join(map(str, DTYPES))}, not {query.dtype}")
    for name, tensor in given.items():
        wanted = query.dtype if tensor.ndim > 2 else torch.int32
        require(
            tuple(tensor.shape) == shapes[name], f"{name} must have the shape {shapes[name]}, not {tuple(tensor.shape)}"
        )
        require(tensor.dtype == wanted, f"{name} must be {wanted}, not {tensor.dtype}")
        require(tensor.device == query.device, f"{name} is on {tensor.device}, query is on {query.device}")
        dense = not tensor.numel() or tensor.shape[-1] == 1 or tensor.stride(-1) == 1
        require(dense, f"the rows of {name} must be contiguous")
    # Offsets within a page and within a token are computed in 32 bits.
    require(page_size * keys.stride(1) < 2**31, "a page of the caches spans 2^31 elements or more")
    for name in ("query", "out"):
        require(heads * given[name].stride(1) < 2**31, f"a token of {name} spans 2^31 elements or more")
    require(keys.stride() == given["value_cache"].stride(), "key_cache and value_cache must have the same strides")
    check_written("out", given["out"])
