"""Of paged attention of prompts for Hopper: which items a program has, and the warps that load what these need."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def _sequence_of(block, cumulative_query_lengths, sequences, QUERIES: gl.constexpr, WARPS: gl.constexpr):
    """The sequence that has block number ``block``: see ``tiled_softmax.py``."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [WARPS], [0])
    found = 0
    for begin in range(0, sequences, 128):
        sequence = begin + gl.arange(0, 128, layout)
        exists = sequence < sequences
        start = gl.load(cumulative_query_lengths + sequence, mask=exists, other=0)  # [128]
        found += gl.sum((exists & (start // QUERIES + sequence <= block)).to(gl.int32), axis=0)
    return found - 1


@gluon.jit
def _count(metadata, sizes, KV_HEADS: gl.constexpr, QUERIES: gl.constexpr):
    """How many items there are, and how many blocks: those before the first sequence's count, and have no items."""
    _, cumulative_query_lengths, _ = metadata
    sequences, _, _ = sizes
    blocks = gl.load(cumulative_query_lengths + sequences) // QUERIES + sequences  # [1]
    return (blocks - gl.load(cumulative_query_lengths) // QUERIES) * KV_HEADS, blocks


@gluon.jit
def _find(
    turn, work, metadata, sizes,
    KV_HEADS: gl.constexpr, QUERIES: gl.constexpr, TILE: gl.constexpr, SINGLE: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip  # sizes and tensors, constants
    """The item of this program in ``turn``, and what it is.

    Returns whether there is one; its head of keys; its sequence; of that the first token, the number of query tokens
    and the length; the item's first token in it and the first position that it does not see; its tiles, and those that
    all of its rows see wholly. Programs take items forth and back, so that each gets as many long ones as the others.
    """
    items, blocks = work
    _, cumulative_query_lengths, sequence_lengths = metadata
    sequences, capacity, above = sizes
    programs = gl.num_programs(0)
    item = turn * programs + gl.where(turn % 2 == 0, gl.program_id(0), programs - 1 - gl.program_id(0))
    exists = item < items
    item = gl.where(exists, item, 0)
    block = blocks - 1 - item // KV_HEADS  # the last ones see most positions: they begin first
    sequence = 0
    if not SINGLE:
        sequence = _sequence_of(block, cumulative_query_lengths, sequences, QUERIES, WARPS)
    start = gl.load(cumulative_query_lengths + sequence)  # [1]
    queries = gl.load(cumulative_query_lengths + sequence + 1) - start  # [1]
    length = min(gl.load(sequence_lengths + sequence), capacity)  # [1]
    first = (block - start // QUERIES - sequence) * QUERIES
    context = length - queries
    end = max(context + min(first + QUERIES, queries), 0)  # the first position that the block does not see
    wanted = exists & (queries > above) & (first < queries)
    tiles = max(gl.cdiv(end, TILE), 1)
    whole = min(max(context + first + 1, 0) // TILE, tiles - 1)  # tiles that all rows see wholly, without the last
    return wanted, item % KV_HEADS, sequence, (start, queries, length), (first, end), (tiles, whole)


@gluon.jit
def _row_of(box, pages, tile, end, rows, TILE: gl.constexpr, ROWS: gl.constexpr, PAGE_SIZE: gl.constexpr):
    """The row of the cache at which a box of a tile begins; a row outside, where TMA reads zero, from ``end`` on.

    ``rows``: from page to page, and the first one outside.
    """
    position = tile * TILE + box * ROWS
    page = gl.load(pages + position // PAGE_SIZE, mask=position < end, other=0)  # [1]
    return gl.where(position < end, page * rows[0] + position % PAGE_SIZE, rows[1])


@gluon.jit
def _load_tiles(
    source, pages, end, column, rows, boxes, full, empty, step, tiles,
    TILE: gl.constexpr, HALF_D: gl.constexpr, ROWS: gl.constexpr, PAGE_SIZE: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # descriptor, table, positions, where to, constants
    """Load all tiles of keys, or of values, of an item, from the last to the first, page by page in two halves."""
    count: gl.constexpr = TILE // ROWS
    for back in range(tiles):
        tile = tiles - 1 - back
        starts = (_row_of(0, pages, tile, end, rows, TILE, ROWS, PAGE_SIZE),)
        for box in gl.static_range(1, count):  # all of them before the first copy, which no load overtakes
            # Triton has no (*starts, start).
            starts = starts + (  # type: ignore[assignment]  # noqa: RUF005  # see above
                _row_of(box, pages, tile, end, rows, TILE, ROWS, PAGE_SIZE),
            )
        stage = step % STAGES
        mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)
        mbarrier.expect(full.index(stage), TILE * HALF_D * 4)
        for box in gl.static_range(count):
            for half in gl.static_range(2):
                target = boxes.index(stage * (2 * count) + half * count + box)  # [ROWS, HALF_D]
                tma.async_copy_global_to_shared(
                    source, [starts[box], column + half * HALF_D], full.index(stage), target
                )
        step += 1
    return step


@gluon.jit
def _load(
    query, source, metadata, query_barriers, full, empty, query_boxes, boxes, sizes, kv_head_stride, table_stride,
    rows,
    OF_KEYS: gl.constexpr, KV_HEADS: gl.constexpr, QUERIES: gl.constexpr, HEADS: gl.constexpr, TILE: gl.constexpr,
    HALF_D: gl.constexpr, ROWS: gl.constexpr, PAGE_SIZE: gl.constexpr, STAGES: gl.constexpr, SINGLE: gl.constexpr,
):  # fmt: skip  # descriptors, tensors, barriers and buffers, sizes, strides, constants
    """A warp that loads: the queries and keys (``OF_KEYS``) or the values of all items."""
    q_full, q_empty = query_barriers
    step = 0
    done = 0
    work = _count(metadata, sizes, KV_HEADS, QUERIES)
    for turn in range(gl.cdiv(work[0], gl.num_programs(0))):
        wanted, kv_head, sequence, of_sequence, of_item, tile_counts = _find(
            turn, work, metadata, sizes, KV_HEADS, QUERIES, TILE, SINGLE, 1
        )
        if wanted:
            if OF_KEYS:
                slot = done % 2
                mbarrier.wait(q_empty.index(slot), (done // 2 & 1) ^ 1)
                mbarrier.expect(q_full.index(slot), QUERIES * HEADS * HALF_D * 4)
                for part in gl.static_range(4):  # half of the rows, half of the width
                    token = of_sequence[0] + of_item[0] + part // 2 * (QUERIES // 2)
                    place = [token, kv_head * HEADS, part % 2 * HALF_D]
                    target = query_boxes.index(slot * 4 + part)  # [QUERIES / 2, HEADS, HALF_D]
                    tma.async_copy_global_to_shared(query, place, q_full.index(slot), target)
                done += 1
            pages = metadata[0] + sequence.to(gl.int64) * table_stride
            step = _load_tiles(
                source, pages, of_item[1], kv_head * kv_head_stride, rows, boxes, full, empty, step, tile_counts[0],
                TILE, HALF_D, ROWS, PAGE_SIZE, STAGES,
            )  # fmt: skip
