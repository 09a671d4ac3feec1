"""Of the decoding of latent attention for Hopper: what a program has to do, and the warp that loads what it needs."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from kernels_smoke.attention.parts import _share


@gluon.jit
def _find(sequence_lengths, sizes, BLOCK_H: gl.constexpr, TILE: gl.constexpr):
    """Of this program: its first head, sequence and segment; its first tile, the one behind its last; the end.

    The last is the number of positions of the sequence. Returns also whether there are several segments.
    """
    heads, capacity, segments = sizes
    head_blocks = gl.cdiv(heads, BLOCK_H)
    item = gl.program_id(0)  # neighbours read the same rows of the cache
    segment = item // head_blocks % segments
    sequence = item // (head_blocks * segments)
    end = max(min(gl.load(sequence_lengths + sequence), capacity), 0)  # [1]
    tiles = gl.cdiv(end, TILE)
    share = _share(tiles, segments)
    first_tile = min(segment * share, tiles)
    last_tile = min(first_tile + share, tiles)
    return (item % head_blocks * BLOCK_H, sequence, segment), (first_tile, last_tile, end), share < tiles


@gluon.jit
def _load(
    query, cache, page_table, sequence_lengths, sizes, table_stride, query_rows, page_rows, barriers, q_tiles, tiles,
    BLOCK_H: gl.constexpr, TILE: gl.constexpr, PAGE_SIZE: gl.constexpr, LATENT: gl.constexpr, ROPE: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip  # descriptors, tensors, sizes, strides, barriers and buffers, constants
    """The warp that loads: the queries once, and each part of every tile as soon as its place is free."""
    query_latent, query_rope = query
    latent, rope = cache
    q_full, full, empty, _, _ = barriers
    q_left, q_right, q_rope = q_tiles
    left, right, keys = tiles
    place, work, _ = _find(sequence_lengths, sizes, BLOCK_H, TILE)
    head, sequence, _ = place
    first_tile, last_tile, _ = work
    if first_tile < last_tile:
        row = sequence * query_rows + head
        mbarrier.expect(q_full, BLOCK_H * (LATENT + ROPE) * 2)
        tma.async_copy_global_to_shared(query_rope, [row, LATENT], q_full, q_rope)  # [BLOCK_H, ROPE]
        tma.async_copy_global_to_shared(query_latent, [row, 0], q_full, q_left)  # [BLOCK_H, LATENT / 2]
        tma.async_copy_global_to_shared(query_latent, [row, LATENT // 2], q_full, q_right)  # [BLOCK_H, LATENT / 2]
        pages = page_table + sequence.to(gl.int64) * table_stride
        page = gl.load(pages + first_tile * TILE // PAGE_SIZE)  # [1]
        for tile in range(first_tile, last_tile):
            step = tile - first_tile
            stage = step % STAGES
            phase = (step // STAGES & 1) ^ 1
            row = page * page_rows + tile * TILE % PAGE_SIZE
            page = gl.load(pages + (tile + 1) * TILE // PAGE_SIZE, mask=tile + 1 < last_tile, other=0)  # [1]
            mbarrier.wait(empty.index(3 * stage), phase)
            mbarrier.expect(full.index(3 * stage), TILE * ROPE * 2)
            # [TILE, ROPE]
            tma.async_copy_global_to_shared(rope, [row, LATENT], full.index(3 * stage), keys.index(stage))
            mbarrier.wait(empty.index(3 * stage + 1), phase)
            mbarrier.expect(full.index(3 * stage + 1), TILE * LATENT)
            # [TILE, LATENT / 2]
            tma.async_copy_global_to_shared(latent, [row, 0], full.index(3 * stage + 1), left.index(stage))
            mbarrier.wait(empty.index(3 * stage + 2), phase)
            mbarrier.expect(full.index(3 * stage + 2), TILE * LATENT)
            # [TILE, LATENT / 2]
            tma.async_copy_global_to_shared(latent, [row, LATENT // 2], full.index(3 * stage + 2), right.index(stage))
