"""AdaSplash: 1.5-entmax and sparsemax of rows, against a bisection of the threshold in float64."""

import torch
from adasplash import triton_entmax15, triton_sparsemax

from kernels_smoke.suite.model import Function, case


def entmax(x, alpha):
    x = x.double() * (alpha - 1)
    low, high = x.amax(-1, keepdim=True) - 1, x.amax(-1, keepdim=True)
    for _ in range(60):
        middle = (low + high) / 2
        above = (x - middle).clamp(min=0).pow(1 / (alpha - 1)).sum(-1, keepdim=True) >= 1
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    found = (x - low).clamp(min=0).pow(1 / (alpha - 1))
    return found / found.sum(-1, keepdim=True)


def rows(draw, rows, width, dtype=torch.float32):
    return {"x": draw.normal(rows, width, dtype=dtype)}


CASES = [case("odd width", rows=5, width=127), case("wide", rows=257, width=4000)]
KERNELS = [
    Function(triton_entmax15, rows, lambda x: entmax(x, 1.5), CASES, tolerance=1e-3),
    # Two iterations, the default, leave the threshold of sparsemax 6e-3 off.
    Function(
        lambda x: triton_sparsemax(x, n_iter=8), rows, lambda x: entmax(x, 2.0), CASES, name="sparsemax", tolerance=1e-3
    ),
]
