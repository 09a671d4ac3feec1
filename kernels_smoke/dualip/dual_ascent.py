"""Accelerated dual ascent for linear programs whose variables fall into blocks, each with its own simplex."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from kernels_smoke.dualip.segments import Segments, segments
from kernels_smoke.dualip.simplex_projection import simplex_projection
from kernels_smoke.dualip.sparse_product import Compressed, sparse_product
from kernels_smoke.launch import check_rows, check_scale, require


@dataclass(frozen=True)
class LinearProgram:
    """Minimise ``cost x`` subject to ``A x <= limits``, ``x >= 0``, and in each block ``sum(x) <= radius``.

    ``columns`` and ``rows`` are the matrix A, compressed by columns (A^T) and by rows. ``cost``: [variables],
    ``limits``: [rows], float32. ``blocks``: the segments of the variables.
    """

    cost: torch.Tensor
    limits: torch.Tensor
    columns: Compressed
    rows: Compressed
    blocks: Segments
    radius: float = 1.0


@dataclass(frozen=True)
class Certificate:
    """What proves a solution, in float64: no feasible point costs less than ``bound``, and ``feasible`` costs a point
    that is feasible (infinity: none was found). ``violation`` is the most by which x itself exceeds a limit, and
    ``outside`` that by which it leaves the simplices of its blocks.
    """

    feasible: torch.Tensor
    bound: torch.Tensor
    violation: torch.Tensor
    outside: torch.Tensor

    @property
    def gap(self) -> torch.Tensor:
        """How far the optimum may be away, relative to the bound."""
        return (self.feasible - self.bound) / torch.clamp(self.bound.abs(), min=torch.finfo(torch.float64).tiny)


def linear_program(
    cost: torch.Tensor,
    limits: torch.Tensor,
    offsets: torch.Tensor,
    indices: torch.Tensor,
    values: torch.Tensor,
    blocks: torch.Tensor,
    radius: float = 1.0,
) -> LinearProgram:
    """The program whose matrix is compressed by columns: ``offsets`` [variables + 1], ``indices`` (rows), ``values``.

    ``cost``, ``values`` and ``limits`` are float32 and finite, ``indices`` int32, offsets int32 or int64. ``blocks``:
    the offsets of the blocks of variables. Waits for the GPU. Raises ValueError when a shape, dtype, device or index is
    not as said, the radius is not positive, or there is no variable or no limit.
    """
    require(cost.ndim == limits.ndim == indices.ndim == 1, "cost, limits and indices must be vectors")
    require(len(cost) > 0 and len(limits) > 0, "a program needs a variable and a limit")
    for name, tensor in (("cost", cost), ("limits", limits), ("values", values)):
        check_rows(name, tensor, tuple(tensor.shape), (torch.float32,), cost)
    check_rows("indices", indices, tuple(indices.shape), (torch.int32,), cost)
    for name, tensor in (("cost", cost), ("limits", limits), ("values", values)):
        require(bool(torch.isfinite(tensor).all()), f"{name} must be finite")
    check_scale(radius, "radius")
    by_column, of_blocks = segments(offsets), segments(blocks)
    require(by_column.count == len(cost), f"offsets are for {by_column.count} variables, cost for {len(cost)}")
    require(of_blocks.elements == len(cost), f"blocks have {of_blocks.elements} variables, cost has {len(cost)}")
    require(by_column.elements == len(indices) == len(values), "offsets, indices and values differ in their length")
    fits = not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < len(limits))
    require(fits, f"indices must be from 0 to {len(limits) - 1}: a row for each limit")
    permutation = torch.argsort(indices, stable=True)
    by_row = torch.bincount(indices, minlength=len(limits)).cumsum(0)
    row_offsets = torch.cat((by_row.new_zeros(1), by_row)).to(offsets.dtype)
    return LinearProgram(
        cost,
        limits,
        Compressed(by_column, indices, values),
        Compressed(segments(row_offsets), _members(by_column)[permutation].to(torch.int32), values[permutation]),
        of_blocks,
        radius,
    )


def dual_ascent(
    program: LinearProgram,
    *,
    smoothing: Sequence[float] = (1.0, 0.3, 0.1, 0.03, 0.01),
    iterations: int = 500,
    group: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(x, dual)`` after ``iterations`` for each of ``smoothing``: [variables] and [rows], float32.

    For the program smoothed by ``s |x|^2 / 2``, ``x = project(-(cost + A^T y) / s)`` is the best for a dual y, and
    ``A x - limits`` is the gradient of the dual, which Nesterov's method with restarts (O'Donoghue and Candes 2015)
    ascends, in rows scaled to norm 1. Smoothing falls from stage to stage; below some value, the smoothed optimum is
    one of the linear program itself. The method is that of DuaLip (Basu, Ghoting, Mazumder, Pan 2020).

    Nothing waits for the GPU, so that all of it can be captured in a graph.

    With ``group``, a process group of torch.distributed, each of its ranks has some of the blocks, and ``program`` is
    that share (see :func:`kernels_smoke.dualip.share.share`); limits are those of the whole. An iteration sums ``A x``
    over all ranks, and nothing else: every rank takes the same step, and returns the x of its share and the same dual.
    Raises ValueError when ``smoothing`` is empty or not positive, or there is no iteration.
    """
    positive = len(smoothing) > 0 and all(0 < strength < math.inf for strength in smoothing)
    require(positive, f"smoothing must be positive numbers, not {tuple(smoothing)}")
    require(iterations > 0, f"iterations must be 1 or more, not {iterations}")
    scaled, scale = _rows_scaled(program, group)
    # At least the square of A's norm, and so of a row's, which is 1 where A has any effect.
    of_columns = _over_ranks(_sums(scaled.columns).max(), group, "MAX")
    of_rows = _over_ranks(_sums(scaled.rows), group).max()
    curvature = torch.clamp(of_columns * of_rows, min=1.0)
    dual = torch.zeros_like(program.limits)
    for strength in smoothing:
        step = strength / curvature
        ahead, momentum = dual, torch.ones_like(step)
        for _ in range(iterations):
            used = sparse_product(scaled.rows, _best(scaled, ahead, strength))
            gradient = _over_ranks(used, group) - scaled.limits
            raised = torch.clamp(ahead + step * gradient, min=0.0)
            overshot = torch.sum(gradient * (raised - dual)) < 0
            momentum = torch.where(overshot, torch.ones_like(momentum), momentum)
            following = (1 + torch.sqrt(1 + 4 * momentum * momentum)) / 2
            ahead = raised + (momentum - 1) / following * (raised - dual)
            dual, momentum = raised, following
    return _best(scaled, dual, smoothing[-1]), dual * scale


def _best(program: LinearProgram, dual: torch.Tensor, strength: float) -> torch.Tensor:
    """The x that is best for ``dual`` in the program smoothed by ``strength``."""
    price = (program.cost + sparse_product(program.columns, dual)) * (-1 / strength)
    return simplex_projection(price, program.blocks, radius=program.radius, out=price)


def certify(program: LinearProgram, x: torch.Tensor, dual: torch.Tensor) -> Certificate:
    """What is certain about the optimum, from any ``x`` and ``dual``.

    The bound is the Lagrangian's least value, ``-limits dual + sum over blocks of radius min(0, least reduced cost)``;
    a dual below zero proves nothing. The feasible point is ``x`` brought into the simplices, then with every variable
    reduced as the row that is exceeded most demands. That makes it feasible where A and ``limits`` have no negative
    element; whether it is, is looked at again.
    """
    x, dual, cost, limits = (each.double() for each in (x, dual, program.cost, program.limits))
    matrix, blocks, radius = program.columns, _members(program.blocks), program.radius
    column, row, values = _members(matrix.segments), matrix.indices.long(), matrix.values.double()
    smallest, infinity = torch.finfo(torch.float64).tiny, torch.full_like(limits[0], torch.inf)

    def used(point: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(limits).index_add(0, row, values * point[column])

    none = torch.zeros(program.blocks.count, dtype=torch.float64, device=x.device)
    inside = torch.clamp(x, min=0.0)
    sums = none.index_add(0, blocks, inside)
    outside = torch.maximum(torch.clamp(sums - radius, min=0.0).max(), (inside - x).max())
    inside = inside * torch.clamp(radius / torch.clamp(sums, min=smallest), max=1.0)[blocks]
    share = torch.clamp(limits / torch.clamp(used(inside), min=smallest), max=1.0)
    inside = inside * torch.ones_like(x).scatter_reduce(0, column, share[row], "amin")
    holds = (used(inside) <= limits + 1e-12 * limits.abs()).all() & (inside >= 0).all()

    reduced = cost.index_add(0, column, values * dual[row])
    bound = radius * none.scatter_reduce(0, blocks, reduced, "amin").sum() - torch.dot(limits, dual)
    return Certificate(
        feasible=torch.where(holds, torch.dot(cost, inside), infinity),
        bound=torch.where((dual >= 0).all(), bound, -infinity),
        violation=torch.clamp(used(x) - limits, min=0.0).max(),
        outside=outside,
    )


def _members(segments: Segments) -> torch.Tensor:
    """The segment of each element, [elements], int64."""
    return torch.repeat_interleave(segments.offsets.diff().long(), output_size=segments.elements)


def _over_ranks(values: torch.Tensor, group: Any, operation: str = "SUM") -> torch.Tensor:
    """``values`` after an all-reduce in place; as they are without a group."""
    if group is not None:
        from torch import distributed  # noqa: PLC0415  # not every build of torch has it

        distributed.all_reduce(values, op=getattr(distributed.ReduceOp, operation), group=group)
    return values


def _rows_scaled(program: LinearProgram, group: Any) -> tuple[LinearProgram, torch.Tensor]:
    """The program with each row of A over its norm, and the factors [rows]; a row of zeros keeps the factor 1."""
    row, values = program.columns.indices.long(), program.rows.values
    greatest = torch.zeros_like(program.limits).scatter_reduce(0, row, program.columns.values.abs(), "amax")
    greatest = _over_ranks(greatest, group, "MAX")
    greatest = torch.where(greatest > 0, greatest, torch.ones_like(greatest))
    shares = values / greatest[_members(program.rows.segments)]  # whose squares are in the range of float32
    squares = sparse_product(replace(program.rows, values=shares.square()), torch.ones_like(program.cost))
    norms = torch.sqrt(_over_ranks(squares, group))
    scale = torch.where(norms > 0, 1 / (norms * greatest), torch.ones_like(norms))
    by_column = program.columns.values * scale[program.columns.indices.long()]
    by_row = program.rows.values * scale[_members(program.rows.segments)]
    scaled = replace(
        program,
        limits=program.limits * scale,
        columns=replace(program.columns, values=by_column),
        rows=replace(program.rows, values=by_row),
    )
    return scaled, scale


def _sums(matrix: Compressed) -> torch.Tensor:
    """The sum of magnitudes in each segment of ``matrix``."""
    magnitudes = replace(matrix, values=matrix.values.abs(), indices=torch.zeros_like(matrix.indices))
    return sparse_product(magnitudes, matrix.values.new_ones(1))
