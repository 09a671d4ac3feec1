"""Three of our kernels in Helion, one row a program, in one configuration: the search for the best takes minutes."""

from __future__ import annotations

import helion  # type: ignore[import-not-found]  # optional
import helion.language as hl  # type: ignore[import-not-found]  # likewise
import torch

from benchmarks.eager import EPSILON, FP8, FP8_MAX, LEAST_SCALE, Results
from kernels_smoke.suite.model import Inputs

EIGHT_WARPS = helion.Config(block_sizes=[1], num_warps=8)
SIXTEEN_WARPS = helion.Config(block_sizes=[1], num_warps=16)


@helion.kernel(config=EIGHT_WARPS, static_shapes=True)  # type: ignore[untyped-decorator]  # optional, so it has no types
def _quantise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, width = x.size()
    codes = torch.empty([rows, width], dtype=FP8, device=x.device)
    scales = torch.empty([rows, 1], dtype=torch.float32, device=x.device)
    for tile in hl.tile(rows):
        values = x[tile, :].to(torch.float32)
        scale = torch.clamp(torch.amax(torch.abs(values), dim=-1, keepdim=True) / FP8_MAX, min=LEAST_SCALE)
        codes[tile, :] = torch.clamp(values * (1.0 / scale), -FP8_MAX, FP8_MAX).to(FP8)
        scales[tile, :] = scale
    return codes, scales


@helion.kernel(config=EIGHT_WARPS, static_shapes=True)  # type: ignore[untyped-decorator]  # optional, so it has no types
def _add_norm_quantise(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows, width = x.size()
    codes = torch.empty([rows, width], dtype=FP8, device=x.device)
    scales = torch.empty([rows, 1], dtype=torch.float32, device=x.device)
    total = torch.empty_like(x)
    for tile in hl.tile(rows):
        rounded = (x[tile, :].to(torch.float32) + residual[tile, :].to(torch.float32)).to(x.dtype)
        total[tile, :] = rounded
        values = rounded.to(torch.float32)
        inverse = torch.rsqrt(torch.mean(values * values, dim=-1, keepdim=True) + EPSILON)
        normed = values * inverse * weight[:].to(torch.float32)
        scale = torch.clamp(torch.amax(torch.abs(normed), dim=-1, keepdim=True) / FP8_MAX, min=LEAST_SCALE)
        codes[tile, :] = torch.clamp(normed * (1.0 / scale), -FP8_MAX, FP8_MAX).to(FP8)
        scales[tile, :] = scale
    return codes, scales, total


@helion.kernel(config=SIXTEEN_WARPS, static_shapes=True)  # type: ignore[untyped-decorator]  # optional, so it has no types
def _silu_quantise(gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, width = gate.size()
    codes = torch.empty([rows, width], dtype=FP8, device=gate.device)
    scales = torch.empty([rows, 1], dtype=torch.float32, device=gate.device)
    for tile in hl.tile(rows):
        gates = gate[tile, :].to(torch.float32)
        products = gates * torch.sigmoid(gates) * up[tile, :].to(torch.float32)
        scale = torch.clamp(torch.amax(torch.abs(products), dim=-1, keepdim=True) / FP8_MAX, min=LEAST_SCALE)
        codes[tile, :] = torch.clamp(products * (1.0 / scale), -FP8_MAX, FP8_MAX).to(FP8)
        scales[tile, :] = scale
    return codes, scales


def dynamic_per_token_scaled_fp8_quant(inputs: Inputs) -> Results:
    """One scale for each row."""
    codes, scales = _quantise(inputs["x"])
    return {"codes": codes, "scales": scales}


def rms_norm_dynamic_per_token_quant(inputs: Inputs) -> Results:
    """The sum, and its norm quantised."""
    codes, scales, total = _add_norm_quantise(inputs["x"], inputs["residual"], inputs["weight"])
    return {"codes": codes, "scales": scales, "residual": total}


def silu_and_mul_dynamic_per_token_quant(inputs: Inputs) -> Results:
    """SwiGLU, quantised."""
    codes, scales = _silu_quantise(*inputs["x"].chunk(2, dim=-1))
    return {"codes": codes, "scales": scales}
