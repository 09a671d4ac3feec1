"""A chain of symmetric products for Hopper, in Gluon: one launch, in which a tile waits for what it needs alone.

A launch for each product leaves multiprocessors idle at its end, and 288 tiles on 132 of them take as long as 396. Here
the tiles of the next product follow at once: those of the first matrix of a batch, which is complete by then. One warp
loads, ahead of the tile that is multiplied, and two warpgroups take turns: one multiplies while the other one stores.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels_smoke.launch import multiprocessors
from kernels_smoke.launch_plan import launch
from kernels_smoke.muon.product import _place_in_triangle

BLOCK, BLOCK_K, STAGES = 128, 64, 5
LEAST_ROWS = (STAGES + 2) * BLOCK_K  # so that a tile's sums are being taken when its addend is loaded: see _load
LEAST_TILES = (528, 132)  # of a product, of one matrix and of several: fewer are faster one product after the other
WARPS = 4  # of a warpgroup: each signals that its part of a tile is stored


@gluon.jit
def _picked(product, PRODUCTS: gl.constexpr, FIELD: gl.constexpr):
    """One number of a product: the products are constants, but which one a tile is of is not."""
    value = gl.to_tensor(PRODUCTS[0][FIELD])
    for number in gl.static_range(1, len(PRODUCTS)):
        value = gl.where(product == number, PRODUCTS[number][FIELD], value)
    return value


@gluon.jit
def _place_of(tile, matrices, rows, BLOCK: gl.constexpr):
    """Of which product and matrix ``tile`` is, the row of its matrix in a workspace, and its row and column in that."""
    side = rows // BLOCK
    triangle = side * (side + 1) // 2
    product = tile // (matrices * triangle)
    matrix = tile // triangle % matrices
    tile_m, tile_n = _place_in_triangle(tile % triangle)
    return product, matrix, matrix * rows, tile_m * BLOCK, tile_n * BLOCK


@gluon.jit
def _load(
    x, squares, whole_tiles, stored, buffers, sizes,
    PRODUCTS: gl.constexpr, BLOCK: gl.constexpr, BLOCK_K: gl.constexpr, STAGES: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip  # descriptors, how many warps have stored, buffers and their barriers, sizes, constants
    """The warp that loads: the blocks of all tiles of this program, each as soon as a stage is free."""
    full, empty, added, _, left_tiles, right_tiles, staged = buffers
    matrices, rows, columns = sizes
    height = matrices * rows
    side = rows // BLOCK
    triangle = side * (side + 1) // 2
    step = 0
    number = 0
    for tile in range(gl.program_id(0), len(PRODUCTS) * matrices * triangle, gl.num_programs(0)):
        product, matrix, first, row, column = _place_of(tile, matrices, rows, BLOCK)
        # Until this matrix's earlier products are complete: then no program reads what this one overwrites.
        while gl.load(stored + matrix, volatile=True) < product * triangle * WARPS:
            pass
        gl.inline_asm_elementwise(
            "fence.acq_rel.gpu; fence.proxy.async; mov.u32 $0, $1;",
            "=r,r",
            [product],
            dtype=gl.int32,
            is_pure=False,
            pack=1,
        )
        left = _picked(product, PRODUCTS, 0) * height + first + row
        right = _picked(product, PRODUCTS, 1) * height + first + column
        of_x = product == 0
        for k in range(0, gl.where(of_x, columns, rows), BLOCK_K):
            stage = step % STAGES
            there = full.index(stage)
            mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)
            mbarrier.expect(there, 4 * BLOCK * BLOCK_K)
            # [BLOCK, BLOCK_K] each: of x, or of squares
            tma.async_copy_global_to_shared(x, [first + row, k], there, left_tiles.index(stage), pred=of_x)
            tma.async_copy_global_to_shared(x, [first + column, k], there, right_tiles.index(stage), pred=of_x)
            tma.async_copy_global_to_shared(squares, [left, k], there, left_tiles.index(stage), pred=product > 0)
            tma.async_copy_global_to_shared(squares, [right, k], there, right_tiles.index(stage), pred=product > 0)
            step += 1
        if _picked(product, PRODUCTS, 4) != 0.0:
            # Its warpgroup has freed a stage of this tile, so that it has stored the tile before from here.
            there = added.index(number % 2)
            mbarrier.expect(there, 2 * BLOCK * BLOCK)
            tma.async_copy_global_to_shared(whole_tiles, [left, column], there, staged.index(number % 2))
        number += 1  # noqa: SIM113  # Gluon has no enumerate


@gluon.jit
def _multiply(
    whole_tiles, stored, buffers, sizes,
    PART: gl.constexpr, PRODUCTS: gl.constexpr, BLOCK: gl.constexpr, BLOCK_K: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # descriptor, how many warps have stored, buffers and their barriers, sizes, constants
    """A warpgroup that multiplies: every second tile of this program, from the first (``PART`` 0) or the second on."""
    full, empty, added, turns, left_tiles, right_tiles, staged = buffers
    matrices, rows, columns = sizes
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK, 16])
    height = matrices * rows
    side = rows // BLOCK
    own = staged.index(PART)
    offs_m = gl.arange(0, BLOCK, gl.SliceLayout(1, layout))
    offs_n = gl.arange(0, BLOCK, gl.SliceLayout(0, layout))
    step = 0
    number = 0
    addends = 0
    for tile in range(gl.program_id(0), len(PRODUCTS) * matrices * (side * (side + 1) // 2), gl.num_programs(0)):
        product, matrix, first, row, column = _place_of(tile, matrices, rows, BLOCK)
        steps = gl.where(product == 0, columns, rows) // BLOCK_K
        if number % 2 == PART:
            mbarrier.wait(turns.index(PART), number // 2 & 1 ^ (1 - PART))
            acc = gl.zeros([BLOCK, BLOCK], gl.float32, layout)
            for following in range(step, step + steps):
                stage = following % STAGES
                mbarrier.wait(full.index(stage), following // STAGES & 1)
                columns_of = right_tiles.index(stage).permute((1, 0))  # [BLOCK_K, BLOCK]
                acc = warpgroup_mma(left_tiles.index(stage), columns_of, acc, is_async=True)  # [BLOCK, BLOCK]
                acc = warpgroup_mma_wait(1, deps=[acc])
                mbarrier.arrive(empty.index((following + STAGES - 1) % STAGES), pred=following > step)
            mbarrier.arrive(turns.index(1 - PART))
            acc = warpgroup_mma_wait(0, deps=[acc])
            mbarrier.arrive(empty.index((step + steps - 1) % STAGES))

            result = acc * _picked(product, PRODUCTS, 3)
            beta = _picked(product, PRODUCTS, 4)
            if beta != 0.0:
                mbarrier.wait(added.index(PART), addends & 1)
                more = own.load(layout)  # [BLOCK, BLOCK]
                diagonal = (row + offs_m)[:, None] == (column + offs_n)[None, :]
                result += beta * more.to(gl.float32) + gl.where(diagonal, _picked(product, PRODUCTS, 5), 0.0)
                addends += 1
            rounded = result.to(own.dtype)
            target = _picked(product, PRODUCTS, 2) * height + first
            own.store(rounded)  # [BLOCK, BLOCK]
            fence_async_shared()
            tma.async_copy_shared_to_global(whole_tiles, [target + row, column], own)
            tma.store_wait(0)  # until it has been read
            own.permute((1, 0)).store(rounded)  # [BLOCK, BLOCK]
            fence_async_shared()
            tma.async_copy_shared_to_global(whole_tiles, [target + column, row], own)
            # Each warp waits until what it stored has been written, and signals that.
            gl.inline_asm_elementwise(
                "{ .reg .pred first; .reg .u32 lane; cp.async.bulk.wait_group 0; bar.warp.sync 0xffffffff;"
                " mov.u32 lane, %laneid; setp.eq.u32 first, lane, 0;"
                " @first red.release.gpu.global.add.u32 [$1], 1; mov.u32 $0, 0; }",
                "=r,l",
                [stored + matrix],
                dtype=gl.int32,
                is_pure=False,
                pack=1,
            )
        step += steps
        number += 1  # noqa: SIM113  # Gluon has no enumerate


@gluon.jit
def _chain_kernel(
    x, squares, whole_tiles, stored, matrices, rows, columns,
    PRODUCTS: gl.constexpr, BLOCK: gl.constexpr, BLOCK_K: gl.constexpr, STAGES: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip  # descriptors, how many warps have stored a tile of each matrix, sizes, constants
    left_tiles = gl.allocate_shared_memory(squares.dtype, [STAGES, BLOCK, BLOCK_K], squares.layout)
    right_tiles = gl.allocate_shared_memory(squares.dtype, [STAGES, BLOCK, BLOCK_K], squares.layout)
    staged = gl.allocate_shared_memory(squares.dtype, [2, BLOCK, BLOCK], whole_tiles.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    added = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    for part in gl.static_range(2):
        mbarrier.init(added.index(part), count=1)
        mbarrier.init(turns.index(part), count=1)
    fence_async_shared()
    buffers = (full, empty, added, turns, left_tiles, right_tiles, staged)
    sizes = (matrices, rows, columns)
    gl.warp_specialize(
        [
            (_multiply, (whole_tiles, stored, buffers, sizes, 0, PRODUCTS, BLOCK, BLOCK_K, STAGES)),
            (_multiply, (whole_tiles, stored, buffers, sizes, 1, PRODUCTS, BLOCK, BLOCK_K, STAGES)),
            (_load, (x, squares, whole_tiles, stored, buffers, sizes, PRODUCTS, BLOCK, BLOCK_K, STAGES, WARPS)),
        ],
        [4, 1],
        [240, 24],
    )


def chainable(matrices: int, rows: int) -> bool:
    """Whether workspaces of ``matrices`` of ``rows`` rows can be multiplied by ``chain``, and have tiles enough."""
    side = rows // BLOCK
    return rows % BLOCK == 0 and rows >= LEAST_ROWS and matrices * side * (side + 1) // 2 >= LEAST_TILES[matrices > 1]


def chain(
    products: tuple[tuple[float, ...], ...],
    x: torch.Tensor,
    squares: torch.Tensor,
    stored: torch.Tensor,
    matrices: int,
) -> None:
    """Compute ``products``, of which the first is x x^T.

    Each is (left, right, out, alpha, beta, gamma): ``out = alpha left right^T + beta left + gamma I``, without the
    identity where beta is 0. ``x`` is [matrices * rows, columns], ``squares`` are [workspaces * matrices * rows, rows]
    in float16, and left, right and out are numbers of workspaces. ``stored`` is [matrices], int32, zero before.
    """
    rows, side = squares.shape[1], squares.shape[1] // BLOCK
    count = len(products) * matrices * side * (side + 1) // 2
    launch(
        _chain_kernel,
        (min(count, multiprocessors(x)),),
        x=_descriptor(x, BLOCK, BLOCK_K),
        squares=_descriptor(squares, BLOCK, BLOCK_K),
        whole_tiles=_descriptor(squares, BLOCK, BLOCK),
        stored=stored,
        matrices=matrices,
        rows=rows,
        columns=x.shape[1],
        PRODUCTS=products,
        BLOCK=BLOCK,
        BLOCK_K=BLOCK_K,
        STAGES=STAGES,
        WARPS=WARPS,
        num_warps=4,
        launch_cooperative_grid=True,  # programs wait for one another
    )


def _descriptor(matrix: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """The descriptor of ``matrix`` for tiles of [rows, columns], swizzled as tensor cores read them."""
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], gl.float16)
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), [rows, columns], layout)
