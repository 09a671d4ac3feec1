"""The kernels' mathematics in plain torch: float64, and float32 where the definition rounds to it."""

import torch

FP8_MAX = 448.0
FLOAT32_MAX = torch.finfo(torch.float32).max
Quantized = tuple[torch.Tensor, torch.Tensor]  # the clamped quotients before they are rounded, and the scales; float64


def by_row(values: torch.Tensor, least: float, bound: torch.Tensor | None = None) -> Quantized:
    """Quantise ``values`` [rows, width] with one scale for each row: [rows, 1]."""
    greatest = values.double().abs().amax(dim=-1, keepdim=True)
    if bound is not None:
        greatest = torch.minimum(greatest, bound.double())
    scales = _scales(greatest, least)
    return _quotients(values, scales), scales


def by_group(values: torch.Tensor, group: int, least: float, *, ue8m0: bool = False) -> Quantized:
    """Quantise ``values`` [rows, width] with one scale for each ``group`` neighbours: [rows, width / group]."""
    grouped = values.reshape(values.shape[0], values.shape[1] // group, group)
    scales = _scales(grouped.double().abs().amax(dim=-1, keepdim=True), least)
    if ue8m0:
        scales = power_of_two(scales)
    return _quotients(grouped, scales).reshape(values.shape), scales.squeeze(-1)


def power_of_two(scales: torch.Tensor) -> torch.Tensor:
    """``2^ceil(log2 scales)``, exactly."""
    mantissa, exponent = torch.frexp(scales)  # scales = mantissa 2^exponent, and mantissa is in [1/2, 1)
    exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)
    return ((exponent.long() + 1023) << 52).view(torch.float64)  # pow need not be exact; the bits of a float64 are


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up`` in float64 for ``gate`` and ``up``, the halves of the rows of ``x``."""
    gate, up = x.double().chunk(2, dim=-1)
    return gate / (1 + torch.exp(-gate)) * up


def add(x: torch.Tensor, residual: torch.Tensor | None) -> torch.Tensor:
    """``x + residual``, rounded to their dtype."""
    return x if residual is None else (x.float() + residual.float()).to(x.dtype)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, *, epsilon: float) -> torch.Tensor:
    """``x / sqrt(mean(x^2) + epsilon) * weight`` over the last dimension, in float64."""
    x = x.double()
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + epsilon) * weight.double()


def _scales(greatest: torch.Tensor, least: float) -> torch.Tensor:
    """``greatest / 448`` rounded to float32, at least ``least``; infinity counts as the greatest float32."""
    return (greatest.clamp(max=FLOAT32_MAX) / FP8_MAX).float().clamp(min=least).double()


def _quotients(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """``values`` times the reciprocal of ``scales``, which is rounded to float32, clamped to what e4m3 can hold."""
    return (values.double() * (1 / scales).float().double()).clamp(-FP8_MAX, FP8_MAX)
