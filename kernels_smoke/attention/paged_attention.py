"""Causal attention over a paged cache of keys and values, for prompts and decoding in one batch."""

import math

import torch
import triton

from kernels_smoke.attention.arguments import check_arguments
from kernels_smoke.attention.batch import POWERS_OF_TWO, STAGES, Batch, Choice
from kernels_smoke.attention.decision import choose
from kernels_smoke.attention.layout import FEW_ROWS, Configuration, Layout, configure
from kernels_smoke.attention.parts import merge, parts
from kernels_smoke.attention.tiled_softmax import _attend_kernel
from kernels_smoke.gluon import GLUON, hopper_gluon
from kernels_smoke.launch import architecture, check_scale, multiprocessors, on_device_of, require
from kernels_smoke.launch_plan import allocated, launch, plannable

if GLUON:
    from kernels_smoke.attention.specialized_prompts import attend_prompts, fits

FILL = 2  # of the stages that divide short sequences, when they are asked for by name


@plannable
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

    A sequence of length L, of which the last n tokens are in ``query``, may have any n from 0 (it is omitted) over 1
    (decoding) to L (a prompt); its query token i sees the positions 0 to L - n + i, its own among them. Position p is
    row ``p % page_size`` of page ``page_table[sequence, p // page_size]``. Query head h uses head
    ``h // (heads / kv_heads)`` of keys and values. Sources: Kwon et al., "Efficient Memory Management for Large
    Language Model Serving with PagedAttention" (2023), section 4; the stages are those of Ringlein et al., "The
    Anatomy of a Triton Attention Kernel", section 4.

    - ``query``: [tokens, heads, head_dim], bfloat16, float16 or float32; the tokens of one sequence after those of the
      other. Rows of it, of the caches and of the result may be strided.
    - ``key_cache``, ``value_cache``: [pages, page_size, kv_heads, head_dim], of that dtype, with the same strides.
    - ``page_table``: [sequences, most pages of a sequence], int32. What is after a sequence's last page is not
      read, nor is what is in that page behind its last position.
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
    is not as said, when the variant is unknown, or, up to the stage "segments", the page size is not a power of two
    from 16 on.
    """
    tensors = {
        "query": query,
        "key_cache": key_cache,
        "value_cache": value_cache,
        "page_table": page_table,
        "cumulative_query_lengths": cumulative_query_lengths,
        "sequence_lengths": sequence_lengths,
    }
    out = allocated(torch.empty_like(query)) if out is None and isinstance(query, torch.Tensor) else out
    check_arguments({**tensors, "out": out})
    assert out is not None  # noqa: S101  # for mypy: check_arguments has seen that it is a tensor
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
    query, cache, page_table = (tensors[name] for name in ("query", "key_cache", "page_table"))
    group, heads = batch.heads // batch.kv_heads, configuration.heads
    head_blocks = batch.kv_heads * triton.cdiv(group, heads)
    capacity = page_table.shape[1] * batch.page_size
    short, segments = configuration.short, configuration.segments
    # Without a GPU there are fewer programs than items, too: the loop over items is interpreted as it will run.
    most = configuration.programs * (batch.multiprocessors if query.device.type != "cpu" else 3)
    block_d = max(triton.next_power_of_2(batch.head_dim), FEW_ROWS)
    made = parts(query, batch.sequences * (short.queries if short else 0), segments)

    def attend(layout: Layout, items: int, above: int, *, of_short: bool) -> None:
        launch(
            _attend_kernel,
            (min(items, most) or items,),
            **tensors,
            out=out,
            **made.arguments,
            sequences=batch.sequences,
            heads=batch.heads,
            capacity=capacity,
            above=above,
            scale=scale,
            query_stride=query.stride(0),
            query_head_stride=query.stride(1),
            page_stride=cache.stride(0),
            position_stride=cache.stride(1),
            kv_head_stride=cache.stride(2),
            table_stride=page_table.stride(0),
            out_stride=out.stride(0),
            out_head_stride=out.stride(1),
            HEAD_DIM=batch.head_dim,
            BLOCK_D=block_d,
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
        above = short.queries if short else 0
        if not (configuration.specialized and hopper_gluon() and _attended(tensors, out, scale, above)):
            items = (batch.tokens // blocks.queries + batch.sequences) * head_blocks
            attend(blocks, items, above, of_short=False)
    if short:
        attend(short, batch.sequences * segments * head_blocks, 0, of_short=True)
        merge(
            made,
            out,
            tensors["sequence_lengths"],
            capacity,
            short.tile,
            cumulative_query_lengths=tensors["cumulative_query_lengths"],
            queries=short.queries,
        )


def _attended(tensors: dict[str, torch.Tensor], out: torch.Tensor, scale: float, above: int) -> bool:
    """Attend with the kernel in Gluon; False, and nothing is done, where the tensors' strides do not allow it."""
    if not fits(tensors["query"], tensors["key_cache"], tensors["value_cache"]):
        return False
    attend_prompts(tensors, out, scale=scale, above=above, programs=1)
    return True
