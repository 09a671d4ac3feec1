"""Conch: a residual is added and normed, both in place."""

import torch
from conch.ops.normalization.rms_norm import fused_add_rms_norm

from kernels_smoke.suite.model import Function, case, here


def inputs(draw, rows, width, dtype=torch.bfloat16):
    weight = draw.normal(width, dtype=dtype)
    return {**{n: draw.normal(rows, width, dtype=dtype) for n in ("x", "residual")}, "weight": weight, "epsilon": 1e-5}


def reference(x, residual, weight, epsilon):
    residual += x
    x.copy_(torch.nn.functional.rms_norm(residual, weight.shape, weight, epsilon))
    return x, residual


KERNELS = [
    Function(
        fused_add_rms_norm,
        inputs=inputs,
        reference=reference,
        cases=[
            here("odd width", rows=5, width=127, dtype=torch.float32),
            case("4096 wide", rows=257, width=4096),
            case("beyond 2^31 elements", "deep", rows=2**19 + 8, width=4096),
        ],
        name="conch_fused_add_rms_norm",
        modifies=("x", "residual"),
        precise=False,
        timed={"rows": 16384, "width": 4096},
        bar=1.5,
    )
]
