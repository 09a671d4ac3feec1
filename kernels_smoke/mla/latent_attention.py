"""The kernel of latent attention: all heads attend to the same tiles of a paged cache."""

import triton
import triton.language as tl

from kernels_smoke.attention.parts import _share, _store


@triton.jit
def _pages_of(tile, pages, end, TILE: tl.constexpr, PAGE_SIZE: tl.constexpr):
    """The page of each position of a tile, or of all when one holds the tile; the last page behind the end."""
    if PAGE_SIZE % TILE == 0:
        page = tl.load(pages + tl.minimum(tile * TILE, end - 1) // PAGE_SIZE, mask=end > 0, other=0)  # [1]
    else:
        position = tl.minimum(tile * TILE + tl.arange(0, TILE), end - 1)
        page = tl.load(pages + position // PAGE_SIZE, mask=end > 0, other=0)  # [TILE]
    return page


@triton.jit
def _attend_tiles(
    q_latent, q_rope, m_i, l_i, acc, latent, rope, pages, first_tile, last_tile, end, scale, page_stride,
    position_stride,
    MASKED: tl.constexpr, DESCRIBE: tl.constexpr, TILE: tl.constexpr,
    PAGE_SIZE: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr, BLOCK_LATENT: tl.constexpr,
    BLOCK_ROPE: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Let all heads attend to tiles of positions; the softmax continues from ``m_i``, ``l_i`` and ``acc``.

    ``MASKED``: positions from ``end`` on are in the tiles. ``DESCRIBE``: ``latent`` and ``rope`` are descriptors of
    the cache's rows, [pages * PAGE_SIZE, LATENT + ROPE], and not pointers to them.
    """
    offs_c = tl.arange(0, BLOCK_LATENT)
    offs_r = tl.arange(0, BLOCK_ROPE)
    page = _pages_of(first_tile, pages, end, TILE, PAGE_SIZE)
    for tile in range(first_tile, last_tile):
        position = tile * TILE + tl.arange(0, TILE)
        # The next tile's pages are looked up one step ahead: only so can its rows be loaded several steps ahead.
        next_page = _pages_of(tile + 1, pages, end, TILE, PAGE_SIZE)
        if DESCRIBE:
            row = page * PAGE_SIZE + tile * TILE % PAGE_SIZE
            c = latent.load([row, 0])  # [TILE, BLOCK_LATENT]
            r = rope.load([row, LATENT])  # [TILE, BLOCK_ROPE]
        else:
            # Behind the end may be anything, also what is not a number, and zero times that is not zero: the last
            # position is loaded there instead.
            loaded = tl.minimum(position, end - 1) if MASKED else position
            within = tile * TILE % PAGE_SIZE + loaded - tile * TILE if PAGE_SIZE % TILE == 0 else loaded % PAGE_SIZE
            offset = (page.to(tl.int64) * page_stride + within * position_stride)[:, None]
            if BLOCK_LATENT == LATENT:
                c = tl.load(latent + offset + offs_c[None, :])  # [TILE, BLOCK_LATENT]
            else:
                c = tl.load(latent + offset + offs_c[None, :], mask=(offs_c < LATENT)[None, :], other=0.0)
            if BLOCK_ROPE == ROPE:
                r = tl.load(rope + offset + offs_r[None, :])  # [TILE, BLOCK_ROPE]
            else:
                r = tl.load(rope + offset + offs_r[None, :], mask=(offs_r < ROPE)[None, :], other=0.0)
        page = next_page
        s = tl.dot(q_rope, r.T, input_precision="ieee")  # [BLOCK_H, TILE]
        s = tl.dot(q_latent, c.T, s, input_precision="ieee")  # [BLOCK_H, TILE]
        if MASKED:
            seen = position < end
            s = tl.where(seen[None, :], s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale)  # [BLOCK_H]
        p = tl.exp2(s * scale - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)  # [BLOCK_H]
        acc = tl.dot(p.to(c.dtype), c, acc * alpha[:, None], input_precision="ieee")  # [BLOCK_H, BLOCK_LATENT]
        m_i = m_new
    return m_i, l_i, acc


@triton.jit
def _attend_kernel(
    query, cache, latent_rows, rope_rows, page_table, sequence_lengths, out, partial, partial_maximum,
    partial_total, heads, capacity, segments, scale,
    query_stride, query_head_stride, page_stride, position_stride, table_stride, out_stride, out_head_stride,
    DESCRIBE: tl.constexpr, BLOCK_H: tl.constexpr, TILE: tl.constexpr, TAIL: tl.constexpr,
    PAGE_SIZE: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr, BLOCK_LATENT: tl.constexpr,
    BLOCK_ROPE: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # Behind the last whole tile, a tile has TAIL positions: few registers for their addresses.
    # One program attends with BLOCK_H heads to one segment of one sequence. Neighbours read the same rows.
    head_blocks = tl.cdiv(heads, BLOCK_H)
    item = tl.program_id(0)
    segment = item // head_blocks % segments
    sequence = item // (head_blocks * segments)
    end = max(min(tl.load(sequence_lengths + sequence), capacity), 0)  # [1]
    tiles = tl.cdiv(end, TILE)
    share = _share(tiles, segments)
    first_tile = segment * share
    last_tile = min(first_tile + share, tiles)
    if (segment == 0) | (first_tile < tiles):
        head = item % head_blocks * BLOCK_H + tl.arange(0, BLOCK_H)
        offs_c = tl.arange(0, BLOCK_LATENT)
        offs_r = tl.arange(0, BLOCK_ROPE)
        row_mask = head < heads
        mask = row_mask[:, None] & (offs_c < LATENT)[None, :]
        rows = query + sequence.to(tl.int64) * query_stride + (head * query_head_stride)[:, None]
        q_latent = tl.load(rows + offs_c[None, :], mask=mask, other=0.0)  # [BLOCK_H, BLOCK_LATENT]
        # [BLOCK_H, BLOCK_ROPE]
        q_rope = tl.load(rows + LATENT + offs_r[None, :], mask=row_mask[:, None] & (offs_r < ROPE)[None, :], other=0.0)
        pages = page_table + sequence.to(tl.int64) * table_stride
        m_i = tl.full((BLOCK_H,), float("-inf"), tl.float32)
        l_i = tl.zeros((BLOCK_H,), tl.float32)
        acc = tl.zeros((BLOCK_H, BLOCK_LATENT), tl.float32)
        whole_tile = min(max(end // TILE, first_tile), last_tile)  # the first that is not whole
        m_i, l_i, acc = _attend_tiles(
            q_latent, q_rope, m_i, l_i, acc, latent_rows if DESCRIBE else cache,
            rope_rows if DESCRIBE else cache + LATENT, pages, first_tile, whole_tile, end, scale, page_stride,
            position_stride,
            MASKED=False, DESCRIBE=DESCRIBE, TILE=TILE, PAGE_SIZE=PAGE_SIZE, LATENT=LATENT, ROPE=ROPE,
            BLOCK_LATENT=BLOCK_LATENT, BLOCK_ROPE=BLOCK_ROPE,
        )  # fmt: skip
        m_i, l_i, acc = _attend_tiles(
            q_latent, q_rope, m_i, l_i, acc, cache, cache + LATENT, pages, whole_tile * (TILE // TAIL),
            tl.cdiv(min(last_tile * TILE, end), TAIL), end, scale, page_stride, position_stride,
            MASKED=True, DESCRIBE=False, TILE=TAIL, PAGE_SIZE=PAGE_SIZE, LATENT=LATENT, ROPE=ROPE,
            BLOCK_LATENT=BLOCK_LATENT, BLOCK_ROPE=BLOCK_ROPE,
        )  # fmt: skip
        slot = (sequence.to(tl.int64) * heads + head) * segments + segment
        target = out + sequence.to(tl.int64) * out_stride + (head * out_head_stride)[:, None] + offs_c[None, :]
        room = partial + slot[:, None] * LATENT + offs_c[None, :]
        _store(acc, m_i, l_i, target, room, partial_maximum + slot, partial_total + slot, mask, row_mask, share < tiles)
