"""The sum over all ranks, the residual addition and the RMS norm in one launch: how tensor-parallel layers end."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES, check_matrix, check_rows, check_written, on_device_of, require, whole_rows
from kernels_smoke.launch_plan import allocated, launch, plannable
from kernels_smoke.norm.fused_add_rms_norm import _store_sum_and_norm
from kernels_smoke.norm.peers import PROGRAMS, Peers

WIDEST = 16384  # elements of a row: one program holds whole rows in registers
MOST_RANKS = 8  # each reads the inputs of all others
configure = whole_rows  # benchmarks/tune.py tries others


@triton.jit
def _meet(signals, rank, RANKS: tl.constexpr, LANES: tl.constexpr, LEAVING: tl.constexpr):
    """Wait until the program of this number has come here on every rank; the signals are zero again afterwards.

    There are signals for entering and others for leaving. So no rank signals what another one has not yet cleared: it
    leaves when all have entered, and enters again when all have left. So a signal is sent without waiting for anything.
    """
    tl.debug_barrier()  # what other threads of this program did is done before it is signalled
    peer = tl.arange(0, LANES)
    others = (peer < RANKS) & (peer != rank)
    first = (2 * tl.program_id(0) + LEAVING) * RANKS  # of this program's signals
    theirs = tl.load(signals + peer, mask=others, other=0).to(tl.pointer_type(tl.int32))  # [LANES]
    own = tl.load(signals + rank).to(tl.pointer_type(tl.int32)) + first + peer
    # Entering publishes what was written before. Leaving says that inputs were read: they have arrived.
    tl.atomic_add(theirs + first + rank, 1, mask=others, sem="relaxed" if LEAVING else "release", scope="sys")
    left = RANKS - 1
    while left > 0:
        came = tl.atomic_xchg(own, 0, mask=others, sem="relaxed" if LEAVING else "acquire", scope="sys")  # [LANES]
        left -= tl.sum(tl.where(others, came, 0))
    tl.debug_barrier()  # no thread reads before the one that waited is back


@triton.jit
def _all_reduce_add_rms_norm_kernel(
    pointers, signals, residual_pointer, weight_pointer, normed_pointer, sum_pointer, rank,
    x_stride, residual_stride, normed_stride, sum_stride, count, width, epsilon,
    RANKS: tl.constexpr, LANES: tl.constexpr, ZERO_CENTRED: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    if signals is not None:
        _meet(signals, rank, RANKS, LANES, LEAVING=False)  # every rank has written its input
    dtype = sum_pointer.dtype.element_ty
    columns = tl.arange(0, BLOCK)[None, :]
    for tile in range(tl.program_id(0), tl.cdiv(count, ROWS), tl.num_programs(0)):
        rows = (tile * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        mask = (rows < count) & (columns < width)
        # [ROWS, BLOCK]
        residual = tl.load(residual_pointer + rows * residual_stride + columns, mask=mask, other=0.0)
        total = tl.zeros((ROWS, BLOCK), tl.float32)
        for peer in tl.static_range(RANKS):  # in the order of the ranks on each of them: all get the same bits
            x_pointer = tl.multiple_of(tl.load(pointers + peer).to(tl.pointer_type(dtype)), 16)
            # [ROWS, BLOCK]
            x = tl.load(x_pointer + rows * x_stride + columns, mask=mask, other=0.0, cache_modifier=".cg")
            total += x.to(tl.float32)
        exact = total + residual.to(tl.float32)
        _store_sum_and_norm(
            exact, weight_pointer, normed_pointer, sum_pointer, rows, columns, mask, normed_stride, sum_stride, width,
            epsilon, ZERO_CENTRED,
        )  # fmt: skip
    if signals is not None:
        _meet(signals, rank, RANKS, LANES, LEAVING=True)  # every rank has read: the inputs may be overwritten


@plannable
def all_reduce_add_rms_norm(
    peers: Peers,
    residual: torch.Tensor,
    weight: torch.Tensor,
    *,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(norm(S), S)`` for ``S = sum over the ranks of x + residual``, the same bits on every rank.

    What ``fused_add_rms_norm`` does, of inputs that are summed over all ranks first, in float32; S is rounded once,
    where a separate all-reduce would round before. Each rank reads the inputs of all others through NVLink or PCIe,
    without multicast, which is the least for two ranks. Every rank of the group calls it, with rows and widths
    that are equal. Source: the fused all-reduce of TensorRT-LLM, and its form for Gemma's weights in TokenSpeed.

    - ``peers``: the inputs, each [rows, width], bfloat16, float16 or float32; see :func:`kernels_smoke.norm.peers`.
    - ``residual``: [rows, width], of that dtype; rows may be strided. ``weight``: [width], of that dtype or float32.
    - ``out``: the two results, [rows, width], of that dtype; ``residual`` may be the second, which then is updated in
      place.

    Raises ValueError when a shape, dtype, device or stride is not as said, rows are wider than 16,384 elements, or
    there are more than eight ranks.
    """
    rows, width = check_matrix("x", peers.x, WIDEST)
    x, ranks = peers.x, peers.ranks
    require(1 <= ranks <= MOST_RANKS, f"there are {ranks} ranks; 1 to {MOST_RANKS} are possible")
    require(0 <= peers.rank < ranks, f"rank must be from 0 to {ranks - 1}, not {peers.rank}")
    require(x.dtype in DTYPES, f"x must be {' or '.join(map(str, DTYPES))}, not {x.dtype}")
    for name, numbers in (("pointers", peers.pointers), ("signals", peers.signals)):
        if numbers is not None:
            check_rows(name, numbers, (ranks,), (torch.int64,), x)
    check_rows("residual", residual, (rows, width), (x.dtype,), x)
    check_rows("weight", weight, (width,), (x.dtype, torch.float32), x)
    normed, total = out or (allocated(torch.empty_like(x)), allocated(torch.empty_like(x)))
    for name, tensor in (("out[0]", normed), ("out[1]", total)):
        check_rows(name, tensor, (rows, width), (x.dtype,), x)
        check_written(name, tensor)
    if rows:
        configuration = configure(width)
        tiles = triton.cdiv(rows, configuration.rows)
        programs = tiles if peers.signals is None else min(tiles, PROGRAMS)
        with on_device_of(x):
            launch(
                _all_reduce_add_rms_norm_kernel,
                (programs,),
                pointers=peers.pointers,
                signals=peers.signals,
                residual_pointer=residual,
                weight_pointer=weight,
                normed_pointer=normed,
                sum_pointer=total,
                rank=peers.rank,
                x_stride=x.stride(0),
                residual_stride=residual.stride(0),
                normed_stride=normed.stride(0),
                sum_stride=total.stride(0),
                count=rows,
                width=width,
                epsilon=epsilon,
                RANKS=ranks,
                LANES=triton.next_power_of_2(ranks),
                ZERO_CENTRED=zero_centred,
                BLOCK=configuration.block,
                ROWS=configuration.rows,
                num_warps=configuration.warps,
            )
    return normed, total
