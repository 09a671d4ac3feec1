"""The k greatest logits of each row and their softmax: a token's experts, or the tokens to sample from."""

from __future__ import annotations

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
from kernels_smoke.routing.keys import _keys, _position, _value, _without

WIDEST = 2**20  # logits of a row: a program keeps the maxima of their groups
MOST = 128  # of a row that are found: a program keeps as many groups


@dataclass(frozen=True)
class Configuration:
    """How the launches for rows of one width are laid out.

    - ``group``: logits of which the maximum is kept; 0 where a program has whole rows, ``rows`` of them.
    - ``piece``: logits that one program reads for that. ``warps``: of a program that has whole rows, or reads a piece.
    - ``select_warps``: of the program that looks through the greatest groups of a row.
    """

    rows: int
    warps: int
    group: int = 0
    piece: int = 0
    select_warps: int = 0


def configure(width: int) -> Configuration:
    """The layout for rows of ``width`` logits: see "Layouts" in README.md."""
    if width <= (64 if interpreted() else 1024):
        block = triton.next_power_of_2(width)
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
        place = tl.zeros_like(drawn).to(tl.int32)  # [ROWS, 1]
        passed = tl.zeros_like(drawn)
        for number in range(TOP - 1):  # Triton 3.6 cannot compile a scan of this layout
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
    inside = (rows < count) & (o_n < width)
    x = tl.load(logits + rows * logits_stride + o_n, mask=inside, other=0.0)  # [ROWS, BLOCK]
    keys = _keys(x, o_n, inside, SHORT)
    chosen = _greatest(keys, ROWS, TOP, TOP_BLOCK, SHORT)  # [ROWS, TOP_BLOCK]
    greatest = tl.max(tl.where(inside, x.to(tl.float32), float("-inf")), axis=1, keep_dims=True)  # [ROWS, 1]
    shares = tl.where(inside, tl.exp((x.to(tl.float32) - greatest) / temperature), 0.0)
    total = tl.sum(shares, axis=1, keep_dims=True)  # [ROWS, 1]
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
def _in_order(groups_found, TOP_BLOCK: tl.constexpr):
    """``groups_found`` [1, TOP_BLOCK], all different, in rising order, as [TOP_BLOCK]."""
    o_k = tl.arange(0, TOP_BLOCK)
    found = groups_found.reshape(TOP_BLOCK, 1)
    rank = tl.sum((groups_found < found).to(tl.int32), axis=1)  # [TOP_BLOCK]
    return tl.sum(tl.where(rank[:, None] == o_k[None, :], found, 0), axis=0)


@triton.jit
def _select_kernel(
    logits, maxima, sums, uniforms, weights, indices, tokens, logits_stride, weights_stride, indices_stride,
    width, groups, temperature,
    TOP: tl.constexpr, TOP_BLOCK: tl.constexpr, GROUP: tl.constexpr, GROUPS_BLOCK: tl.constexpr,
    RENORMALIZE: tl.constexpr, SHORT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One row. Each of its TOP greatest logits is in one of the TOP groups that have the greatest maxima, the first ones
    # of those that are equal: every group before it has a logit before it.
    row = tl.program_id(0).to(tl.int64)
    o_g = tl.arange(0, GROUPS_BLOCK)[None, :]
    of_groups = tl.load(maxima + row * groups + o_g, mask=o_g < groups, other=0.0)  # [1, GROUPS_BLOCK]
    highest = tl.where(o_g < groups, of_groups.to(tl.float32), float("-inf"))
    greatest = tl.max(highest, axis=1, keep_dims=True)  # [1, 1]
    total = tl.zeros((1, 1), tl.float32)
    if sums is not None:
        shares = tl.load(sums + row * groups + o_g, mask=o_g < groups, other=0.0)  # [1, GROUPS_BLOCK]
        total = tl.sum(shares * tl.exp((highest - greatest) / temperature), axis=1, keep_dims=True)
    keys = _keys(of_groups, o_g, o_g < groups, SHORT)
    found = _position(_greatest(keys, 1, TOP, TOP_BLOCK, SHORT), SHORT)  # [1, TOP_BLOCK]
    o_k = tl.arange(0, TOP_BLOCK)
    found = tl.where(o_k[None, :] < tl.minimum(TOP, groups), found, groups + o_k[None, :])
    group = _in_order(found, TOP_BLOCK)  # [TOP_BLOCK]: so that places among the candidates have the order of the row
    o_n = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    place = o_k[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    x = tl.load(logits + row * logits_stride + o_n, mask=o_n < width, other=0.0)  # [TOP_BLOCK, GROUP]
    candidates = _keys(x, place, o_n < width, SHORT).reshape(1, TOP_BLOCK * GROUP)
    chosen = _greatest(candidates, 1, TOP, TOP_BLOCK, SHORT)  # [1, TOP_BLOCK]
    places = _position(chosen, SHORT).reshape(TOP_BLOCK, 1)
    of_place = tl.sum(tl.where(places // GROUP == o_k[None, :], group[None, :], 0), axis=1)  # [TOP_BLOCK]
    positions = (of_place[:, None] * GROUP + places % GROUP).reshape(1, TOP_BLOCK)

    _finish(
        chosen, positions, greatest, total, row + tl.zeros((1, 1), tl.int64), tl.full((1, 1), 1, tl.int1), uniforms,
        weights, indices, tokens, weights_stride, indices_stride, temperature, TOP, TOP_BLOCK, RENORMALIZE,
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
    choice = configure(width)
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
        "SHORT": logits.dtype in DTYPES_16,
    }
    with on_device_of(logits):
        if not choice.group:
            launch(
                _rows_kernel,
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
            logits_stride=logits.stride(0),
            width=width,
            groups=groups,
            temperature=temperature,
            GROUP=choice.group,
            GROUPS_BLOCK=triton.next_power_of_2(groups),
            **results,
            num_warps=choice.select_warps,
        )
