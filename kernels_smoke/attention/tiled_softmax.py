"""The kernel: softmax over tiles of keys, whose pages are looked up on the way."""

import triton
import triton.language as tl

from kernels_smoke.attention.parts import _share


@triton.jit
def _sequence_of(block, cumulative_query_lengths, sequences, QUERIES: tl.constexpr):
    """The sequence that has block number ``block``: the first block of sequence s is ``cumulative[s] // QUERIES + s``.

    So numbered, a sequence has its blocks at hand without a table, and at most one of them is empty. Blocks before the
    first sequence's, where that does not begin with token 0, belong to none.
    """
    found = 0
    for begin in range(0, sequences, 128):
        sequence = begin + tl.arange(0, 128)
        exists = sequence < sequences
        start = tl.load(cumulative_query_lengths + sequence, mask=exists, other=0)  # [128]
        found += tl.sum((exists & (start // QUERIES + sequence <= block)).to(tl.int32), axis=0)
    return found - 1


@triton.jit
def _pages_of(tile, pages, end, TILE: tl.constexpr, PAGE_SIZE: tl.constexpr):
    """The page of each position of a tile, or of all when one holds the tile; the first page behind the last tile."""
    if PAGE_SIZE % TILE == 0:
        page = tl.load(pages + tile * TILE // PAGE_SIZE, mask=tile * TILE < end, other=0)  # [1]
    else:
        position = tile * TILE + tl.arange(0, TILE)
        page = tl.load(pages + position // PAGE_SIZE, mask=position < end, other=0)  # [TILE]
    return page


@triton.jit
def _attend_tiles(
    q, m_i, l_i, acc, keys, values, pages, first_tile, last_tile, limit, end, scale, page_stride,
    position_stride,
    MASKED: tl.constexpr, TILE: tl.constexpr, PAGE_SIZE: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Let the rows of ``q`` attend to tiles of keys; the softmax continues from ``m_i``, ``l_i`` and ``acc``.

    ``MASKED``: not every row sees every position: row r sees those up to ``limit[r]``, and none is from ``end`` on.
    """
    offs_d = tl.arange(0, BLOCK_D)
    page = _pages_of(first_tile, pages, end, TILE, PAGE_SIZE)
    for tile in range(first_tile, last_tile):
        position = tile * TILE + tl.arange(0, TILE)
        # The next tile's pages are looked up one step ahead: only so can its keys be loaded several steps ahead.
        next_page = _pages_of(tile + 1, pages, end, TILE, PAGE_SIZE)
        within = tile * TILE % PAGE_SIZE + tl.arange(0, TILE) if PAGE_SIZE % TILE == 0 else position % PAGE_SIZE
        offset = (page.to(tl.int64) * page_stride + within * position_stride)[:, None] + offs_d[None, :]
        page = next_page
        # Behind the end may be anything, also what is not a number; and zero times that is not zero.
        if MASKED:
            kv_mask = (position < end)[:, None] & (offs_d < HEAD_DIM)[None, :]
            k = tl.load(keys + offset, mask=kv_mask, other=0.0)  # [TILE, BLOCK_D]
            v = tl.load(values + offset, mask=kv_mask, other=0.0)  # [TILE, BLOCK_D]
        elif BLOCK_D == HEAD_DIM:
            k = tl.load(keys + offset)  # [TILE, BLOCK_D]
            v = tl.load(values + offset)  # [TILE, BLOCK_D]
        else:
            k = tl.load(keys + offset, mask=(offs_d < HEAD_DIM)[None, :], other=0.0)  # [TILE, BLOCK_D]
            v = tl.load(values + offset, mask=(offs_d < HEAD_DIM)[None, :], other=0.0)  # [TILE, BLOCK_D]

        s = tl.dot(q, k.T, input_precision="ieee")  # [BLOCK_M, TILE]
        if MASKED:
            seen = tl.arange(0, TILE)[None, :] <= (limit - tile * TILE)[:, None]
            s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale)  # [BLOCK_M]
        base = m_new
        if MASKED:  # a row may have seen nothing yet, and infinity less infinity is not a number
            base = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp2(s * scale - base[:, None])
        alpha = tl.exp2(m_i - base)
        l_i = l_i * alpha + tl.sum(p, axis=1)  # [BLOCK_M]
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")  # [BLOCK_M, BLOCK_D]
        m_i = m_new
    return m_i, l_i, acc


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
        first = (block - tl.load(cumulative_query_lengths + sequence) // QUERIES - sequence) * QUERIES  # [1]
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
    start = tl.load(cumulative_query_lengths + sequence)  # [1]
    queries = tl.load(cumulative_query_lengths + sequence + 1) - start  # [1]
    context = min(tl.load(sequence_lengths + sequence), capacity) - queries  # [1]
    end = max(context + min(first + QUERIES, queries), 0)  # the first position that the block does not see
    tiles = tl.cdiv(end, TILE)
    share = _share(tiles, segments) if SHORT else tiles
    first_tile = segment * share
    last_tile = min(first_tile + share, tiles)
    wanted = (queries > above) & (queries <= QUERIES if SHORT else first < queries)
    if wanted & ((segment == 0) | (first_tile < tiles)):
        row = tl.arange(0, BLOCK_M)
        token = first + row // HEADS
        head = first_head + row % HEADS
        offs_d = tl.arange(0, BLOCK_D)
        row_mask = (row < QUERIES * HEADS) & (token < queries)
        row_mask = row_mask & (
            (GROUP % HEADS == 0) | (head < kv_head * GROUP + GROUP)
        )  # the last of some blocks has fewer
        mask = row_mask[:, None] & (offs_d < HEAD_DIM)[None, :]
        place = (start + token).to(tl.int64)
        q_offset = place * query_stride + head * query_head_stride
        q = tl.load(query + q_offset[:, None] + offs_d[None, :], mask=mask, other=0.0)  # [BLOCK_M, BLOCK_D]

        keys = key_cache + kv_head.to(tl.int64) * kv_head_stride
        values = value_cache + kv_head.to(tl.int64) * kv_head_stride
        pages = page_table + sequence.to(tl.int64) * table_stride
        limit = context + token  # the last position that a row sees
        m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
        l_i = tl.zeros((BLOCK_M,), tl.float32)
        acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
        masked_tile = first_tile
        if not SHORT:  # the tiles that all rows see wholly need no masks
            masked_tile = max(context + first + 1, 0) // TILE
            m_i, l_i, acc = _attend_tiles(
                q, m_i, l_i, acc, keys, values, pages, first_tile, masked_tile, limit, end, scale, page_stride,
                position_stride,
                MASKED=False, TILE=TILE, PAGE_SIZE=PAGE_SIZE, HEAD_DIM=HEAD_DIM, BLOCK_D=BLOCK_D,
            )  # fmt: skip
        m_i, l_i, acc = _attend_tiles(
            q, m_i, l_i, acc, keys, values, pages, masked_tile, last_tile, limit, end, scale, page_stride,
            position_stride,
            MASKED=True, TILE=TILE, PAGE_SIZE=PAGE_SIZE, HEAD_DIM=HEAD_DIM, BLOCK_D=BLOCK_D,
        )  # fmt: skip

        if share < tiles:  # a part of several
            slot = ((sequence * QUERIES + token).to(tl.int64) * heads + head) * segments + segment
            tl.store(parts[0] + slot[:, None] * HEAD_DIM + offs_d[None, :], acc, mask=mask)
            tl.store(parts[1] + slot, m_i, mask=row_mask)
            tl.store(parts[2] + slot, l_i, mask=row_mask)
        else:
            l_i = tl.where(l_i > 0.0, l_i, 1.0)  # a row that sees nothing is zero
            result = (acc / l_i[:, None]).to(out.dtype.element_ty)
            out_offset = place * out_stride + head * out_head_stride
            tl.store(out + out_offset[:, None] + offs_d[None, :], result, mask=mask)


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
    blocks = tl.load(cumulative_query_lengths + sequences) // QUERIES + sequences  # [1]
    # [1]
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
                item, head_blocks, blocks, tensors, metadata, parts, sizes, strides, out_strides,
                SHORT=SHORT, GROUP=GROUP, HEADS=HEADS, QUERIES=QUERIES, BLOCK_M=BLOCK_M, TILE=TILE, PAGE_SIZE=PAGE_SIZE,
                HEAD_DIM=HEAD_DIM, BLOCK_D=BLOCK_D,
            )  # fmt: skip
    elif tl.program_id(0) < items:  # apart: the loop costs 40 registers, for what is the same for all items
        _attend_item(
            tl.program_id(0), head_blocks, blocks, tensors, metadata, parts, sizes, strides, out_strides,
            SHORT=SHORT, GROUP=GROUP, HEADS=HEADS, QUERIES=QUERIES, BLOCK_M=BLOCK_M, TILE=TILE, PAGE_SIZE=PAGE_SIZE,
            HEAD_DIM=HEAD_DIM, BLOCK_D=BLOCK_D,
        )  # fmt: skip
