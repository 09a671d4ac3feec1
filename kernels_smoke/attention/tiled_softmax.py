"""The kernels: softmax over tiles of keys, whose pages are looked up on the way, and the merging of segments."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _sequence_of(block, cumulative_query_lengths, sequences, QUERIES: tl.constexpr):
    """The sequence that has block number ``block``: the first block of sequence s is ``cumulative[s] // QUERIES + s``.

    So numbered, a sequence has its blocks at hand without a table, and at most one of them is empty. Blocks before the
    first sequence's, where that does not begin with token 0, belong to none.
    """
    found = 0
    for begin in range(0, sequences, 128):
        sequence = begin + tl.arange(0, 128)
        inside = sequence < sequences
        start = tl.load(cumulative_query_lengths + sequence, mask=inside, other=0)
        found += tl.sum((inside & (start // QUERIES + sequence <= block)).to(tl.int32), axis=0)
    return found - 1


@triton.jit
def _tiles_of_a_segment(positions, segments, TILE: tl.constexpr):
    """How many tiles each segment of a sequence has, but the last, which has the rest: equal parts, and no fraction."""
    return max(tl.cdiv(tl.cdiv(positions, TILE), segments), 1)


@triton.jit
def _pages_of(tile, pages, end, TILE: tl.constexpr, PAGE_SIZE: tl.constexpr):
    """The page of each position of a tile, or of all when one holds the tile; the first page behind the last tile."""
    if PAGE_SIZE % TILE == 0:
        page = tl.load(pages + tile * TILE // PAGE_SIZE, mask=tile * TILE < end, other=0)
    else:
        position = tile * TILE + tl.arange(0, TILE)
        page = tl.load(pages + position // PAGE_SIZE, mask=position < end, other=0)
    return page


@triton.jit
def _attend_tiles(
    q, maximum, total, accumulator, keys, values, pages, first_tile, last_tile, limit, end, scale, page_stride,
    position_stride,
    MASKED: tl.constexpr, TILE: tl.constexpr, PAGE_SIZE: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Let the rows of ``q`` attend to tiles of keys; the softmax goes on from ``maximum``, ``total``, ``accumulator``.

    ``MASKED``: not every row sees every position: row r sees those up to ``limit[r]``, and none is from ``end`` on.
    """
    across = tl.arange(0, BLOCK_D)
    page = _pages_of(first_tile, pages, end, TILE, PAGE_SIZE)
    for tile in range(first_tile, last_tile):
        position = tile * TILE + tl.arange(0, TILE)
        # The next tile's pages are looked up one step ahead: only so can its keys be loaded several steps ahead.
        next_page = _pages_of(tile + 1, pages, end, TILE, PAGE_SIZE)
        within = tile * TILE % PAGE_SIZE + tl.arange(0, TILE) if PAGE_SIZE % TILE == 0 else position % PAGE_SIZE
        offset = (page.to(tl.int64) * page_stride + within * position_stride)[:, None] + across[None, :]
        page = next_page
        # Behind the end may be anything, also what is not a number; and zero times that is not zero.
        if MASKED:
            inside = (position < end)[:, None] & (across < HEAD_DIM)[None, :]
            k = tl.load(keys + offset, mask=inside, other=0.0)
            v = tl.load(values + offset, mask=inside, other=0.0)
        elif BLOCK_D == HEAD_DIM:
            k = tl.load(keys + offset)
            v = tl.load(values + offset)
        else:
            k = tl.load(keys + offset, mask=(across < HEAD_DIM)[None, :], other=0.0)
            v = tl.load(values + offset, mask=(across < HEAD_DIM)[None, :], other=0.0)

        scores = tl.dot(q, k.T, input_precision="ieee")  # [BLOCK_M, TILE]
        if MASKED:
            seen = tl.arange(0, TILE)[None, :] <= (limit - tile * TILE)[:, None]
            scores = tl.where(seen, scores, float("-inf"))
        greatest = tl.maximum(maximum, tl.max(scores, axis=1) * scale)
        base = greatest
        if MASKED:  # a row may have seen nothing yet, and infinity less infinity is no number
            base = tl.where(greatest == float("-inf"), 0.0, greatest)
        weights = tl.exp2(scores * scale - base[:, None])
        rescale = tl.exp2(maximum - base)
        total = total * rescale + tl.sum(weights, axis=1)
        accumulator = tl.dot(weights.to(v.dtype), v, accumulator * rescale[:, None], input_precision="ieee")
        maximum = greatest
    return maximum, total, accumulator


@triton.jit
def _find(
    item, head_blocks, blocks, cumulative_query_lengths, sequences,
    SHORT: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr, QUERIES: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Of an item: its head of keys, its first query head, its sequence, its segment, its first token in that."""
    parts: tl.constexpr = (GROUP + HEADS - 1) // HEADS  # blocks of heads that share a head of keys
    head_block = item % head_blocks
    kv_head = head_block // parts
    if SHORT:
        sequence = item // head_blocks % sequences
        segment = item // (head_blocks * sequences)
        first = 0
    else:
        block = blocks - 1 - item // head_blocks  # the last ones see most positions: they begin first
        sequence = _sequence_of(block, cumulative_query_lengths, sequences, QUERIES)
        segment = 0
        first = (block - tl.load(cumulative_query_lengths + sequence) // QUERIES - sequence) * QUERIES
    return kv_head, kv_head * GROUP + head_block % parts * HEADS, sequence, segment, first


@triton.jit
def _attend_item(
    item, head_blocks, blocks, tensors, metadata, parts, sizes, strides, out_strides,
    SHORT: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr, QUERIES: tl.constexpr, BLOCK_M: tl.constexpr,
    TILE: tl.constexpr, PAGE_SIZE: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Attend with the rows of one item, and store the result, or what there is of it in one segment of several."""
    query, key_cache, value_cache, out = tensors
    page_table, cumulative_query_lengths, sequence_lengths = metadata
    sequences, heads, capacity, segments, above, scale = sizes
    query_stride, query_head_stride, page_stride, position_stride, kv_head_stride, table_stride = strides
    out_stride, out_head_stride = out_strides

    kv_head, first_head, sequence, segment, first = _find(
        item, head_blocks, blocks, cumulative_query_lengths, sequences, SHORT, GROUP, HEADS, QUERIES
    )
    start = tl.load(cumulative_query_lengths + sequence)
    queries = tl.load(cumulative_query_lengths + sequence + 1) - start
    context = min(tl.load(sequence_lengths + sequence), capacity) - queries
    end = max(context + min(first + QUERIES, queries), 0)  # the first position that the block does not see
    tiles = tl.cdiv(end, TILE)
    share = _tiles_of_a_segment(end, segments, TILE) if SHORT else tiles
    first_tile = segment * share
    last_tile = min(first_tile + share, tiles)
    wanted = (queries > above) & (queries <= QUERIES if SHORT else first < queries)
    if wanted & ((segment == 0) | (first_tile < tiles)):
        row = tl.arange(0, BLOCK_M)
        token = first + row // HEADS
        head = first_head + row % HEADS
        across = tl.arange(0, BLOCK_D)
        there = (row < QUERIES * HEADS) & (token < queries)
        there = there & ((GROUP % HEADS == 0) | (head < kv_head * GROUP + GROUP))  # the last of some blocks has fewer
        mask = there[:, None] & (across < HEAD_DIM)[None, :]
        place = (start + token).to(tl.int64)
        q_offset = place * query_stride + head * query_head_stride
        q = tl.load(query + q_offset[:, None] + across[None, :], mask=mask, other=0.0)

        keys = key_cache + kv_head.to(tl.int64) * kv_head_stride
        values = value_cache + kv_head.to(tl.int64) * kv_head_stride
        pages = page_table + sequence.to(tl.int64) * table_stride
        limit = context + token  # the last position that a row sees
        maximum = tl.full((BLOCK_M,), float("-inf"), tl.float32)
        total = tl.zeros((BLOCK_M,), tl.float32)
        accumulator = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
        masked_tile = first_tile
        if not SHORT:  # the tiles that all rows see wholly need no masks
            masked_tile = max(context + first + 1, 0) // TILE
            maximum, total, accumulator = _attend_tiles(
                *(q, maximum, total, accumulator, keys, values, pages, first_tile, masked_tile, limit, end, scale),
                *(page_stride, position_stride, False, TILE, PAGE_SIZE, HEAD_DIM, BLOCK_D),
            )
        maximum, total, accumulator = _attend_tiles(
            *(q, maximum, total, accumulator, keys, values, pages, masked_tile, last_tile, limit, end, scale),
            *(page_stride, position_stride, True, TILE, PAGE_SIZE, HEAD_DIM, BLOCK_D),
        )

        if share < tiles:  # a part of several
            slot = ((sequence * QUERIES + token).to(tl.int64) * heads + head) * segments + segment
            tl.store(parts[0] + slot[:, None] * HEAD_DIM + across[None, :], accumulator, mask=mask)
            tl.store(parts[1] + slot, maximum, mask=there)
            tl.store(parts[2] + slot, total, mask=there)
        else:
            total = tl.where(total > 0.0, total, 1.0)  # a row that sees nothing is zero
            result = (accumulator / total[:, None]).to(out.dtype.element_ty)
            out_offset = place * out_stride + head * out_head_stride
            tl.store(out + out_offset[:, None] + across[None, :], result, mask=mask)


@triton.jit
def _attend_kernel(
    query, key_cache, value_cache, page_table, cumulative_query_lengths, sequence_lengths, out, partial,
    partial_maximum, partial_total, sequences, heads, capacity, segments, above, scale,
    query_stride, query_head_stride, page_stride, position_stride, kv_head_stride, table_stride, out_stride,
    out_head_stride,
    SHORT: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr, QUERIES: tl.constexpr, BLOCK_M: tl.constexpr,
    TILE: tl.constexpr, PAGE_SIZE: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    STATIC: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # A row of a block is a query token and one of HEADS heads, all of which share a head of keys and values.
    # SHORT: an item is a segment of a sequence of at most QUERIES query tokens, which are one block; other sequences
    # are left alone. Otherwise it is a block of a sequence of any length. Both: of more than `above` query tokens.
    head_blocks = heads // GROUP * ((GROUP + HEADS - 1) // HEADS)
    blocks = tl.load(cumulative_query_lengths + sequences) // QUERIES + sequences
    items = (sequences * segments if SHORT else blocks - tl.load(cumulative_query_lengths) // QUERIES) * head_blocks
    tensors = (query, key_cache, value_cache, out)
    metadata = (page_table, cumulative_query_lengths, sequence_lengths)
    parts = (partial, partial_maximum, partial_total)
    sizes = (sequences, heads, capacity, segments, above, scale)
    strides = (query_stride, query_head_stride, page_stride, position_stride, kv_head_stride, table_stride)
    out_strides = (out_stride, out_head_stride)
    if STATIC:
        for item in range(tl.program_id(0), items, tl.num_programs(0)):
            _attend_item(
                *(item, head_blocks, blocks, tensors, metadata, parts, sizes, strides, out_strides),
                *(SHORT, GROUP, HEADS, QUERIES, BLOCK_M, TILE, PAGE_SIZE, HEAD_DIM, BLOCK_D),
            )
    elif tl.program_id(0) < items:  # apart: the loop costs 40 registers, for what is the same for all items
        _attend_item(
            *(tl.program_id(0), head_blocks, blocks, tensors, metadata, parts, sizes, strides, out_strides),
            *(SHORT, GROUP, HEADS, QUERIES, BLOCK_M, TILE, PAGE_SIZE, HEAD_DIM, BLOCK_D),
        )


@triton.jit
def _merge_kernel(
    partial, partial_maximum, partial_total, cumulative_query_lengths, sequence_lengths, out, heads, capacity,
    segments, out_stride, out_head_stride,
    QUERIES: tl.constexpr, TILE: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_SEGMENTS: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One program merges the segments of one head of one short sequence, token by token.
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    start = tl.load(cumulative_query_lengths + sequence)
    queries = tl.load(cumulative_query_lengths + sequence + 1) - start
    end = max(min(tl.load(sequence_lengths + sequence), capacity), 0)
    tiles = tl.cdiv(end, TILE)
    share = _tiles_of_a_segment(end, segments, TILE)
    if (queries <= QUERIES) & (share < tiles):
        across = tl.arange(0, BLOCK_D)
        segment = tl.arange(0, BLOCK_SEGMENTS)
        there = segment < tl.cdiv(tiles, share)
        for token in range(queries):
            slot = ((sequence * QUERIES + token).to(tl.int64) * heads + head) * segments + segment
            mask = there[:, None] & (across < HEAD_DIM)[None, :]
            accumulators = tl.load(partial + slot[:, None] * HEAD_DIM + across[None, :], mask=mask, other=0.0)
            maxima = tl.load(partial_maximum + slot, mask=there, other=float("-inf"))
            totals = tl.load(partial_total + slot, mask=there, other=0.0)
            greatest = tl.max(maxima, axis=0)
            rescale = tl.exp2(maxima - tl.where(greatest == float("-inf"), 0.0, greatest))
            total = tl.sum(totals * rescale, axis=0)
            merged = tl.sum(accumulators * rescale[:, None], axis=0) / tl.where(total > 0.0, total, 1.0)
            offset = (start + token).to(tl.int64) * out_stride + head * out_head_stride
            tl.store(out + offset + across, merged.to(out.dtype.element_ty), mask=across < HEAD_DIM)
