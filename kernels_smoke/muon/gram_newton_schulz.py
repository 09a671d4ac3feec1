"""Newton-Schulz iteration on the Gram matrix: for wide matrices, whose Gram matrix is small."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from kernels_smoke.gluon import GLUON, hopper_gluon
from kernels_smoke.launch import on_device_of, require
from kernels_smoke.launch_plan import allocated, plannable
from kernels_smoke.muon.frobenius_norm import scale_into
from kernels_smoke.muon.newton_schulz import COEFFICIENTS, as_wide, checked_result, configure, workspaces
from kernels_smoke.muon.product import Tiles, product

if GLUON:
    from kernels_smoke.muon.specialized_chain import chain, chainable

__all__ = ["configure", "gram_newton_schulz"]

# Workspaces are float16, and hold numbers times these powers of two: small elements would be subnormal otherwise.
MATRIX, SQUARE = 256.0, 2048.0
SQUARES = 5  # workspaces of the Gram matrix and the factors
LARGEST = 2.0**15  # of what a product of factors may be, times its scale


@plannable
def gram_newton_schulz(
    x: torch.Tensor,
    *,
    steps: int = 5,
    coefficients: tuple[float, float, float] = COEFFICIENTS,
    restart: int = 2,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return what ``newton_schulz`` does, by fewer operations where a matrix is at least twice as wide as high.

    A step is ``X <- F X`` with ``F = a I + b A + c A A`` and ``A = X X^T``; then ``A <- F A F``. All of these are
    polynomials of the first A, so that they commute and are symmetric: the steps need A alone, m x m, and the product
    of their factors, which is multiplied with X once. That is done after every ``restart`` steps, since A, whose
    eigenvalues are squares, knows the small ones badly: see README.md. Workspaces are float16, scaled.

    - ``x``: [..., m, n], bfloat16, float16 or float32; the leading dimensions count matrices. The rows are contiguous.
      Where m is greater than n, its transpose is iterated. The squares of a matrix must have a sum that float32 holds.
    - ``coefficients``: (a, b, c), with a from 1 to 4. ``restart``: 1 or more.
    - ``out``: the result, [..., m, n], bfloat16 or float16, with contiguous rows; the dtype of ``x`` unless said
      otherwise, and bfloat16 for float32.

    Besides, memory for two of ``x`` and for five squares of its shorter side is allocated, each padded to whole tiles.
    Raises ValueError when a shape, dtype, device, stride or number is not as said.
    """
    require(steps >= 1 and restart >= 1, f"steps and restart must be 1 or more, not {steps} and {restart}")
    out = checked_result(x, coefficients, out)
    require(1.0 <= coefficients[0] <= 4.0, f"the first coefficient must be from 1 to 4, not {coefficients[0]}")
    if x.numel():
        with on_device_of(x):
            source, target = as_wide(x, out)
            wide = source.shape[2] >= 2 * source.shape[1]
            _iterate(source, target, _stages(steps, restart, wide=wide), coefficients)
    return out


def _stages(steps: int, restart: int, *, wide: bool) -> list[int]:
    """How many steps are taken by each Gram matrix: of five, three and two, which are less work than two, two and one.

    A stage of one step more is as exact where others follow, which bring singular values near one, but for matrices
    that are nearly square (and not ``wide``): the least of their singular values are small.
    """
    stages, left = [restart] * (steps // restart), steps % restart
    if wide and left == 1 and len(stages) > 1:
        stages[0] += 1
    elif left:
        stages.append(left)
    return stages


def _iterate(
    source: torch.Tensor, target: torch.Tensor, stages: list[int], coefficients: tuple[float, float, float]
) -> None:
    """``stages`` of so many steps each, from ``source`` into ``target``, both [matrices, p, q] with p <= q."""
    matrices = len(source)
    choice, rows, columns = workspaces(source, torch.float16)
    workspace = functools.partial(torch.empty, dtype=torch.float16, device=target.device)
    x = allocated(workspace(matrices * rows, columns))
    other = allocated(workspace(matrices * rows, columns)) if len(stages) > 1 else x
    squares = allocated(workspace(SQUARES * matrices * rows, rows))
    stored = torch.empty((len(stages), matrices), dtype=torch.int32, device=target.device)
    chained = hopper_gluon() and chainable(matrices, rows)

    scale_into(x, source, MATRIX, zeroed=allocated(stored) if chained else None)
    for number, count in enumerate(stages):
        products, scale = _products(count, coefficients)
        if chained:
            chain(tuple(map(tuple, products)), x, squares, stored[number], matrices)
        else:
            _one_by_one(choice.symmetric, products, x, squares, matrices)
        factor = squares.chunk(SQUARES)[products[-1].out]
        if number < len(stages) - 1:
            product(choice.update, factor, x, other, matrices, alpha=1.0 / scale)
            x, other = other, x
        else:
            product(choice.update, factor, x, target, matrices, alpha=1.0 / (scale * MATRIX), last=True)


class Product(NamedTuple):
    """``out = alpha left right^T + beta left + gamma I``, where left, right and out are numbers of workspaces."""

    left: int
    right: int
    out: int
    alpha: float
    beta: float = 0.0
    gamma: float = 0.0


def _products(count: int, coefficients: tuple[float, float, float]) -> tuple[list[Product], float]:
    """What gives the product of the factors of ``count`` steps, and the power of two that it is multiplied by.

    The first is the Gram matrix: x stands for its left and right.
    """
    a, b, c = coefficients
    gram, between, *others = range(SQUARES)
    whole, scale = gram, SQUARE  # the product of all factors: that of the first step is its factor
    made = [Product(gram, gram, gram, SQUARE / MATRIX**2)]
    for step in range(count):
        factor = others.pop()
        made.append(Product(gram, gram, factor, c / SQUARE, beta=b, gamma=a * SQUARE))
        if step < count - 1:
            made.append(Product(factor, gram, between, 1.0 / SQUARE))
            made.append(Product(factor, between, gram, 1.0 / SQUARE))
        following = factor
        if step:
            following, before = others.pop(), scale
            scale = min(SQUARE, 2.0 ** math.floor(math.log2(LARGEST / a ** (step + 1))))
            made.append(Product(factor, whole, following, scale / (SQUARE * before)))
            others += [factor, whole]
        whole = following
    return made, scale


def _one_by_one(
    tiles: Tiles, products: Sequence[Product], x: torch.Tensor, squares: torch.Tensor, matrices: int
) -> None:
    """Launch each of ``products`` alone."""
    workspaces = squares.chunk(SQUARES)
    for number, each in enumerate(products):
        left, right = (workspaces[each.left], workspaces[each.right]) if number else (x, x)
        addend: dict[str, Any] = {"addend": left, "beta": each.beta, "gamma": each.gamma} if each.beta else {}
        product(tiles, left, right, workspaces[each.out], matrices, symmetric=True, alpha=each.alpha, **addend)
