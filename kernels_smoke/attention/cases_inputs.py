"""What cases over paged caches are drawn from: page tables in any order, NaN in what no sequence has, batches."""

from collections.abc import Sequence

import torch

from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Inputs, Strides

METADATA = ("page_table", "cumulative_query_lengths", "sequence_lengths")
ARGUMENTS = ("query", "key_cache", "value_cache", *METADATA, "scale", "variant", "longest_query", "longest_sequence")
UNUSED = -1  # what is in a page table behind the last page of a sequence

Lengths = Sequence[tuple[int, int]]  # of each sequence: its query tokens, and all its positions


def draw_inputs(
    draw: Draw,
    *,
    batch: Lengths,
    earlier: Lengths = (),
    tokens: int = 0,
    first: int = 0,
    heads: tuple[int, int] = (32, 8),
    head_dim: int = 128,
    page_size: int = 16,
    dtype: torch.dtype = torch.bfloat16,
    variant: str = "auto",
    longest: bool = False,
    spare: int = 1,
    dense: bool = False,
    queries: float = 1.0,
    keys: float = 1.0,
    values: float = 1.0,
    scale: float | None = None,
    row_stride: Strides = 0,
    query_stride: Strides = 0,
    table_stride: int = 0,
    out_stride: Strides = 0,
) -> Inputs:
    """Draw the arguments for ``batch``, and with ``earlier`` the metadata of a batch that had the memory before.

    ``tokens``: for how many query tokens there is room; for those of the batch when 0. ``first``: the first token of
    the batch. ``heads``: of queries, and of keys. ``longest``: say the upper bounds of the lengths. ``queries``,
    ``keys``, ``values``: standard deviations. ``row_stride``: of the caches, and of the query unless
    ``query_stride`` is given.
    ``spare``: pages that no sequence has. All of the cache that no sequence has is NaN. ``dense``: add the same keys
    and values without pages, [sequences, length, heads, head_dim], for what knows no pages; of whole pages alone.
    """
    most = max((pages_of(length, page_size) for _, length in (*batch, *earlier)), default=0)
    pages = max(sum(pages_of(length, page_size) for _, length in lengths) for lengths in (batch, earlier)) + spare
    key_cache, value_cache = (
        draw.normal(pages, page_size, heads[1], head_dim, dtype=dtype, scale=size, row_stride=row_stride, name=name)
        for name, size in (("key_cache", keys), ("value_cache", values))
    )
    room = tokens or sum(count for count, _ in batch)
    apart = query_stride or row_stride
    query = draw.normal(room, heads[0], head_dim, dtype=dtype, scale=queries, row_stride=apart, name="query")
    metadata = _metadata(draw, batch, most, pages, page_size, first, table_stride)
    if earlier:
        before = _metadata(draw, earlier, most, pages, page_size, first)
        metadata |= {f"earlier_{name}": tensor for name, tensor in before.items()}
    if query.device.type != "meta" and not earlier:
        for cache in (key_cache, value_cache):
            spoil(cache, metadata["page_table"], [length for _, length in batch])
    if dense:
        rows = metadata["page_table"].long()
        metadata |= {"dense_keys": key_cache[rows].flatten(1, 2), "dense_values": value_cache[rows].flatten(1, 2)}
    return {
        "query": query,
        "key_cache": key_cache,
        "value_cache": value_cache,
        **metadata,
        "scale": scale,
        "variant": variant,
        "longest_query": max(count for count, _ in batch) if longest else None,
        "longest_sequence": max(length for _, length in batch) if longest else None,
        "batch": tuple(batch),
        "out_stride": out_stride,
    }


def pages_of(length: int, page_size: int) -> int:
    """How many pages hold ``length`` positions."""
    return -(-length // page_size)


def draw_table(
    draw: Draw, lengths: Sequence[int], page_size: int, *, pages: int, most: int, row_stride: int = 0
) -> torch.Tensor:
    """A page table [sequences, most] for sequences of ``lengths``, with those of all ``pages`` in random order."""
    order = draw.permutation(pages, dtype=torch.int32, name="order")
    table = torch.full((len(lengths), most), UNUSED, dtype=torch.int32, device=order.device)
    taken = 0
    for row, length in enumerate(lengths):
        count = pages_of(length, page_size)
        table[row, :count] = order[taken : taken + count]
        taken += count
    return draw.place(table, row_stride=row_stride, name="page_table")


def _metadata(
    draw: Draw, batch: Lengths, most: int, pages: int, page_size: int, first: int, table_stride: int = 0
) -> dict[str, torch.Tensor]:
    """The three integer tensors for ``batch``, with pages in random order."""
    lengths = [length for _, length in batch]
    ends = torch.tensor([first, *(count for count, _ in batch)], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    return {
        "page_table": draw_table(draw, lengths, page_size, pages=pages, most=most, row_stride=table_stride),
        "cumulative_query_lengths": draw.place(ends, name="cumulative_query_lengths"),
        "sequence_lengths": draw.place(torch.tensor(lengths, dtype=torch.int32), name="sequence_lengths"),
    }


def spoil(cache: torch.Tensor, table: torch.Tensor, lengths: Sequence[int]) -> None:
    """Fill with NaN what no sequence of ``lengths`` has of ``cache`` [pages, page_size, ...]."""
    page_size = cache.shape[1]
    used = torch.zeros(cache.shape[:2], dtype=torch.bool, device=cache.device)
    for row, length in enumerate(lengths):
        whole, rest = divmod(length, page_size)
        used[table[row, :whole].long()] = True
        if rest:
            used[table[row, whole].long(), :rest] = True
    cache.masked_fill_(~used.reshape(*used.shape, *(1,) * (cache.ndim - 2)), float("nan"))
