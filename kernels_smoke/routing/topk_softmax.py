"""The k greatest logits of each row and their softmax: a token's experts, or the tokens to sample from."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import (
    DTYPES_16,
    check_matrix,
    check_rows,
    check_scale,
    check_written,
    interpreted,
    on_device_of,
    require,
)
from kernels_smoke.launch_plan import allocated, launch, plannable
from kernels_smoke.routing.eights import _merged, _sorted
from kernels_smoke.routing.keys import _keys, _position, _value, _without

WIDEST = 2**20  # logits of a row: a program keeps the maxima of their groups
MOST = 128  # of a row that are found: a program keeps as many groups


@dataclass(frozen=True)
class Configuration:
    """How the launches for rows of one width are laid out.

    - ``group``: logits of which the maximum is kept; 0 where a program has whole rows, ``rows`` of them.
    - ``eights``: by merging lists of the eight greatest.
    - ``piece``: logits that one program reads for that. ``warps``: of a program that has whole rows, or reads a piece.
    - ``select_warps``: of the program that looks through the greatest groups of a row.
    """

    rows: int
    warps: int
    group: int = 0
    piece: int = 0
    select_warps: int = 0
    eights: bool = False


def configure(width: int, k: int, short: bool) -> Configuration:
    """The layout for the ``k`` greatest of rows of ``width`` logits, ``short``: of 16 bits (README.md, "Layouts")."""
    if width <= (64 if interpreted() else 1024):
        block = triton.next_power_of_2(width)
        if k <= 8 and block >= 64:
            return Configuration(rows=(16384 if short else 8192) // block, warps=4, eights=True)
        return Configuration(rows=max(1024 // block, 1), warps=1)
    if interpreted():
        return Configuration(rows=1, warps=4, group=16, piece=64, select_warps=4)
    return Configuration(rows=1, warps=4, group=64, piece=4096, select_warps=4 if width <= 2**18 else 8)


@triton.jit
def _finish(
    chosen, positions, greatest, total, rows, inside, uniforms, weights, indices, tokens, weights_stride,
    indices_stride, temperature, TOP: tl.constexpr, TOP_BLOCK: tl.constexpr, RENORMALIZE: tl.constexpr,
    DTYPE: tl.constexpr, SHORT: tl.constexpr,
):  # fmt: skip  # keys and positions [ROWS, TOP_BLOCK]; greatest logit, sum of exponentials, rows [ROWS, 1]
    o_k = tl.arange(0, TOP_BLOCK)[None, :]
    b_weights = tl.where(o_k < TOP, tl.exp((_value(chosen, DTYPE, SHORT) - greatest) / temperature), 0.0)
    kept = tl.sum(b_weights, axis=1, keep_dims=True)  # [ROWS, 1]
    if weights is not None:
        divisor = kept if RENORMALIZE else total
        mask = inside & (o_k < TOP)
        tl.store(weights + rows * weights_stride + o_k, b_weights / divisor, mask=mask)
        tl.store(indices + rows * indices_stride + o_k, positions, mask=mask)
    if tokens is not None:
        drawn = tl.load(uniforms + rows, mask=inside, other=0.0) * kept  # [ROWS, 1]
        if b_weights.shape[0] == 1:
            passed = (tl.cumsum(b_weights, axis=1) <= drawn) & (o_k < TOP - 1)  # [ROWS, TOP_BLOCK]
            place = tl.sum(passed.to(tl.int32), axis=1, keep_dims=True)  # [ROWS, 1]
        else:  # of several rows: Triton 3.6 cannot compile such a scan
            place = tl.zeros_like(drawn).to(tl.int32)  # [ROWS, 1]
            passed = tl.zeros_like(drawn)
            for number in range(TOP - 1):
                passed += tl.sum(tl.where(o_k == number, b_weights, 0.0), axis=1, keep_dims=True)  # [ROWS, 1]
                place += (passed <= drawn).to(tl.int32)
        token = tl.sum(tl.where(o_k == place, positions, 0), axis=1, keep_dims=True)  # [ROWS, 1]
        tl.store(tokens + rows, token, mask=inside)


@triton.jit
def _greatest(keys, ROWS: tl.constexpr, TOP: tl.constexpr, TOP_BLOCK: tl.constexpr, SHORT: tl.constexpr):
    """The TOP greatest of ``keys`` [ROWS, columns], in falling order, as [ROWS, TOP_BLOCK]; the rest repeats one."""
    o_k = tl.arange(0, TOP_BLOCK)[None, :]
    chosen = tl.zeros((ROWS, TOP_BLOCK), keys.dtype)
    for number in range(TOP):
        best = tl.max(keys, axis=1, keep_dims=True)  # [ROWS, 1]
        chosen = tl.where(o_k >= number, best, chosen)
        keys = _without(keys, best, SHORT)
    return chosen


@triton.jit
def _rows_kernel(
    logits, uniforms, weights, indices, tokens, logits_stride, weights_stride, indices_stride, count, width,
    temperature, TOP: tl.constexpr, TOP_BLOCK: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    RENORMALIZE: tl.constexpr, SHORT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    o_n = tl.arange(0, BLOCK)[None, :]
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    starts = logits + tl.minimum(rows, count - 1) * logits_stride  # the last row again, instead of none
    x = tl.load(starts + o_n, mask=o_n < width, other=float("-inf"))  # [ROWS, BLOCK]
    chosen = _greatest(_keys(x, o_n, SHORT), ROWS, TOP, TOP_BLOCK, SHORT)  # [ROWS, TOP_BLOCK]
    greatest = tl.max(x.to(tl.float32), axis=1, keep_dims=True)  # [ROWS, 1]
    shares = tl.exp((x.to(tl.float32) - greatest) / temperature)
    total = tl.sum(shares, axis=1, keep_dims=True)  # [ROWS, 1]
    _finish(
        chosen, _position(chosen, SHORT), greatest, total, rows, rows < count, uniforms, weights, indices, tokens,
        weights_stride, indices_stride, temperature, TOP, TOP_BLOCK, RENORMALIZE, logits.dtype.element_ty, SHORT,
    )  # fmt: skip


@triton.jit
def _part(starts, width, number: tl.constexpr, PART: tl.constexpr, SHORT: tl.constexpr):
    """Part ``number`` of the whole rows that begin at ``starts``: its logits and keys, [ROWS, PART]."""
    o_n = number * PART + tl.arange(0, PART)[None, :]
    x = tl.load(starts + o_n, mask=o_n < width, other=float("-inf"))  # [ROWS, PART]
    return x, _keys(x, o_n, SHORT)


@triton.jit
def _share(x, greatest, coldness):
    """Exponentials of a part of rows, whose greatest logits are ``greatest``; 1 / temperature is ``coldness``."""
    return tl.exp((x.to(tl.float32) - greatest) * coldness)


@triton.jit
def _eights_kernel(
    logits, uniforms, weights, indices, tokens, logits_stride, weights_stride, indices_stride, count, width,
    temperature, TOP: tl.constexpr, TOP_BLOCK: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    RENORMALIZE: tl.constexpr, SHORT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # Whole rows in eight parts: the same column of all parts is a list of eight, and lists are merged.
    part: tl.constexpr = BLOCK // 8
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    starts = logits + tl.minimum(rows, count - 1) * logits_stride  # as above
    x0, k0 = _part(starts, width, 0, part, SHORT)
    x1, k1 = _part(starts, width, 1, part, SHORT)
    x2, k2 = _part(starts, width, 2, part, SHORT)
    x3, k3 = _part(starts, width, 3, part, SHORT)
    x4, k4 = _part(starts, width, 4, part, SHORT)
    x5, k5 = _part(starts, width, 5, part, SHORT)
    x6, k6 = _part(starts, width, 6, part, SHORT)
    x7, k7 = _part(starts, width, 7, part, SHORT)
    lists = _sorted(k0, k1, k2, k3, k4, k5, k6, k7)
    k0, k1, k2, k3, k4, k5, k6, k7 = tl.reduce(lists, 1, _merged, keep_dims=True)  # [ROWS, 1] each
    o_k = tl.arange(0, TOP_BLOCK)[None, :]
    chosen = tl.where(o_k == 0, k0, k1)
    chosen = tl.where(o_k == 2, k2, tl.where(o_k == 3, k3, chosen))
    chosen = tl.where(o_k == 4, k4, tl.where(o_k == 5, k5, chosen))
    chosen = tl.where(o_k == 6, k6, tl.where(o_k == 7, k7, chosen))  # [ROWS, TOP_BLOCK]
    greatest = _value(k0, logits.dtype.element_ty, SHORT)  # [ROWS, 1]
    total = tl.zeros((ROWS, 1), tl.float32)
    if weights is not None and not RENORMALIZE:
        coldness = 1.0 / temperature
        shares = _share(x0, greatest, coldness) + _share(x1, greatest, coldness)
        shares += _share(x2, greatest, coldness) + _share(x3, greatest, coldness)
        shares += _share(x4, greatest, coldness) + _share(x5, greatest, coldness)
        shares += _share(x6, greatest, coldness) + _share(x7, greatest, coldness)
        total = tl.sum(shares, axis=1, keep_dims=True)
    _finish(
        chosen, _position(chosen, SHORT), greatest, total, rows, rows < count, uniforms, weights, indices, tokens,
        weights_stride, indices_stride, temperature, TOP, TOP_BLOCK, RENORMALIZE, logits.dtype.element_ty, SHORT,
    )  # fmt: skip


@triton.jit
def _groups_kernel(
    logits, maxima, sums, logits_stride, width, groups, pieces, coldness, GROUP: tl.constexpr, PIECE: tl.constexpr
):
    # The greatest logit of each group, and its sum of exponentials. `coldness` is one over the temperature.
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    piece = (program % pieces).to(tl.int32)
    o_g = tl.arange(0, PIECE // GROUP)
    o_n = piece * PIECE + o_g[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    # [PIECE / GROUP, GROUP]
    x = tl.load(logits + row * logits_stride + o_n, mask=o_n < width, other=float("-inf")).to(tl.float32)
    of_group = tl.max(x, axis=1)  # [PIECE / GROUP]
    group = piece * (PIECE // GROUP) + o_g
    tl.store(maxima + row * groups + group, of_group.to(maxima.dtype.element_ty), mask=group < groups)
    if sums is not None:
        finite = tl.where(of_group == float("-inf"), 0.0, of_group)  # a group may have nothing but minus infinity
        shares = tl.sum(tl.exp((x - finite[:, None]) * coldness), axis=1)  # [PIECE / GROUP]
        tl.store(sums + row * groups + group, shares, mask=group < groups)


@triton.jit
def _threshold(keys, TOP: tl.constexpr):
    """A number that TOP of ``keys`` are not less than, which are all different: by bisection."""
    low = tl.min(keys, axis=0)
    high = tl.max(keys, axis=0)
    count = TOP + 1  # of keys that are not less than `low`: at least TOP
    while (low < high) & (count != TOP):
        middle = (low | high) - ((low ^ high) >> 1)  # half of the sum, rounded up
        counted = tl.sum((keys >= middle).to(tl.int32), axis=0)
        low = tl.where(counted < TOP, low, middle)
        high = tl.where(counted < TOP, middle - 1, high)
        count = tl.where(counted < TOP, count, counted)
    return low


@triton.jit
def _keep(keys, numbers, kept, TOP: tl.constexpr, TOP_BLOCK: tl.constexpr):
    """The ``numbers`` of the TOP greatest of ``keys``, as they come, through the memory at ``kept``; then -1."""
    o_k = tl.arange(0, TOP_BLOCK)
    chosen = keys >= _threshold(keys, TOP)
    place = tl.cumsum(chosen.to(tl.int32), axis=0) - 1
    tl.store(kept + place, numbers, mask=chosen)
    tl.debug_barrier()
    return tl.load(kept + o_k, mask=o_k < TOP, other=-1)  # [TOP_BLOCK]


@triton.jit
def _select_kernel(
    logits, maxima, sums, kept, uniforms, weights, indices, tokens, logits_stride, weights_stride, indices_stride,
    width, groups, temperature,
    TOP: tl.constexpr, TOP_BLOCK: tl.constexpr, GROUP: tl.constexpr, GROUPS_BLOCK: tl.constexpr,
    RENORMALIZE: tl.constexpr, SHORT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One row. Each of its TOP greatest logits is in one of the TOP groups that have the greatest maxima, the first ones
    # of those that are equal: every group before it has a logit before it.
    row = tl.program_id(0).to(tl.int64)
    logits += row * logits_stride
    kept += row * 2 * TOP_BLOCK
    o_k = tl.arange(0, TOP_BLOCK)
    o_g = tl.arange(0, GROUPS_BLOCK)
    of_groups = tl.load(maxima + row * groups + o_g, mask=o_g < groups, other=float("-inf"))  # [GROUPS_BLOCK]
    greatest = tl.max(of_groups.to(tl.float32), axis=0)
    total = 0.0
    if sums is not None:
        shares = tl.load(sums + row * groups + o_g, mask=o_g < groups, other=0.0)  # [GROUPS_BLOCK]
        total = tl.sum(shares * tl.exp((of_groups.to(tl.float32) - greatest) / temperature), axis=0)
    group = _keep(_keys(of_groups, o_g, SHORT), o_g, kept, TOP, TOP_BLOCK)  # [TOP_BLOCK]
    o_n = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    x = tl.load(logits + o_n, mask=(o_n >= 0) & (o_n < width), other=float("-inf"))  # [TOP_BLOCK, GROUP]
    # Groups have the order of the row, and so have places among the candidates.
    place = tl.arange(0, TOP_BLOCK * GROUP)
    candidates = _keys(x.reshape(TOP_BLOCK * GROUP), place, SHORT)
    place = _keep(candidates, place, kept + TOP_BLOCK, TOP, TOP_BLOCK)  # [TOP_BLOCK]
    position = tl.load(kept + place // GROUP, mask=o_k < TOP, other=0) * GROUP + place % GROUP
    x = tl.load(logits + position, mask=o_k < TOP, other=float("-inf"))  # [TOP_BLOCK]
    keys = _keys(x, place, SHORT)
    before = (keys[None, :] > keys[:, None]) & (o_k < TOP)[None, :]
    rank = tl.where(o_k < TOP, tl.sum(before.to(tl.int32), axis=1), o_k)
    there = rank[:, None] == o_k[None, :]
    chosen = tl.sum(tl.where(there, keys[:, None], 0), axis=0)[None, :]  # [1, TOP_BLOCK]
    positions = tl.sum(tl.where(there, position[:, None], 0), axis=0)[None, :]  # [1, TOP_BLOCK]
    one = tl.zeros((1, 1), tl.float32)
    _finish(
        chosen, positions, greatest + one, total + one, row + one.to(tl.int64), one == 0.0, uniforms, weights,
        indices, tokens, weights_stride, indices_stride, temperature, TOP, TOP_BLOCK, RENORMALIZE,
        logits.dtype.element_ty, SHORT,
    )  # fmt: skip


@plannable
def topk_softmax(
    logits: torch.Tensor,
    k: int,
    *,
    renormalize: bool = False,
    temperature: float = 1.0,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(weights, indices)`` of the ``k`` greatest logits of each row, in falling order.

    The weights are those of ``softmax(logits / temperature)`` over the whole row; with ``renormalize`` they are divided
    by their sum, which is the softmax over the k alone. Of equal logits the first one comes first, so that the result
    is the same on each run. Source: the routers of mixtures of experts (Shazeer et al. 2017, with the softmax first as
    in Fedus, Zoph and Shazeer 2021), and top-k sampling (Fan, Lewis and Dauphin 2018).

    - ``logits``: [rows, width], bfloat16, float16 or float32; rows may be strided. Values are finite or minus infinity,
      and each row has a finite one.
    - ``k``: 1 to 128, and at most ``width``.
    - ``out``: the weights [rows, k] in float32, and the indices [rows, k] in int32.

    Raises ValueError when a shape, dtype, device, stride or number is not as said, or rows are wider than 2^20.
    """
    rows, _ = check_arguments(logits, k, temperature)
    device = logits.device
    weights, indices = out or (
        allocated(torch.empty((rows, k), dtype=dtype, device=device)) for dtype in (torch.float32, torch.int32)
    )
    for name, tensor, dtype in (("out[0]", weights, torch.float32), ("out[1]", indices, torch.int32)):
        check_rows(name, tensor, (rows, k), (dtype,), logits)
        check_written(name, tensor)
    select(logits, k, temperature, weights=weights, indices=indices, renormalize=renormalize)
    return weights, indices


def check_arguments(logits: torch.Tensor, k: int, temperature: float) -> tuple[int, int]:
    """Return (rows, width) of ``logits``. Raises ValueError when an argument is not as ``topk_softmax`` says."""
    rows, width = check_matrix("logits", logits, WIDEST)
    require(1 <= k <= min(width, MOST), f"k must be from 1 to {min(width, MOST)}, not {k}")
    check_scale(temperature, "temperature")
    return rows, width


def select(
    logits: torch.Tensor,
    k: int,
    temperature: float,
    *,
    weights: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    uniforms: torch.Tensor | None = None,
    tokens: torch.Tensor | None = None,
    renormalize: bool = False,
) -> None:
    """Write weights and indices, or the tokens that ``uniforms`` draw from the softmax over the k greatest."""
    rows, width = logits.shape
    if not rows:
        return
    short = logits.dtype in DTYPES_16
    choice = configure(width, k, short)
    results = {
        "uniforms": uniforms,
        "weights": weights,
        "indices": indices,
        "tokens": tokens,
        "weights_stride": 0 if weights is None else weights.stride(0),
        "indices_stride": 0 if indices is None else indices.stride(0),
        "TOP": k,
        "TOP_BLOCK": triton.next_power_of_2(k),
        "RENORMALIZE": renormalize,
        "SHORT": short,
    }
    with on_device_of(logits):
        if not choice.group:
            launch(
                _eights_kernel if choice.eights else _rows_kernel,
                (triton.cdiv(rows, choice.rows),),
                logits=logits,
                logits_stride=logits.stride(0),
                count=rows,
                width=width,
                temperature=temperature,
                ROWS=choice.rows,
                BLOCK=triton.next_power_of_2(width),
                **results,
                num_warps=choice.warps,
            )
            return
        groups, pieces = triton.cdiv(width, choice.group), triton.cdiv(width, choice.piece)
        maxima = allocated(torch.empty((rows, groups), dtype=logits.dtype, device=logits.device))
        top_block = int(results["TOP_BLOCK"])
        kept = allocated(torch.empty((rows, 2, top_block), dtype=torch.int32, device=logits.device))
        sums = None  # where only the softmax over the k is wanted
        if weights is not None and not renormalize:
            sums = allocated(torch.empty((rows, groups), dtype=torch.float32, device=logits.device))
        launch(
            _groups_kernel,
            (rows * pieces,),
            logits=logits,
            maxima=maxima,
            sums=sums,
            logits_stride=logits.stride(0),
            width=width,
            groups=groups,
            pieces=pieces,
            coldness=1.0 / temperature,
            GROUP=choice.group,
            PIECE=choice.piece,
            num_warps=choice.warps,
        )
        launch(
            _select_kernel,
            (rows,),
            logits=logits,
            maxima=maxima,
            sums=sums,
            kept=kept,
            logits_stride=logits.stride(0),
            width=width,
            groups=groups,
            temperature=temperature,
            GROUP=choice.group,
            GROUPS_BLOCK=max(triton.next_power_of_2(groups), top_block),
            **results,
            num_warps=choice.select_warps,
        )
