"""Grouped and block-scaled products in eager torch: group by group, and with operands that are scaled beforehand."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.model import Inputs

FP8 = torch.float8_e4m3fn
Results = dict[str, Any]
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def grouped_mm(inputs: Inputs) -> Results:
    """A product for each group, as models have it: the host waits for the offsets."""
    return {"out": _by_group(inputs, inputs["a"], inputs["b"])}


def grouped_mm_blockwise(inputs: Inputs) -> Results:
    """The operands scaled in float32 and rounded to bfloat16 (or their dtype), then a product for each group."""
    a, b, scale_a, scale_b = (inputs[name] for name in ("a", "b", "scale_a", "scale_b"))
    if inputs["transposed"]:
        scale_a, scale_b = scale_a.mT, scale_b.mT
    dtype = torch.bfloat16 if a.dtype == FP8 else a.dtype
    (_, k), n = a.shape, b.shape[1]
    blocks = scale_b.repeat_interleave(128, dim=1)[:, :n].repeat_interleave(128, dim=2)[:, :, :k]
    scaled = (a.float() * scale_a.repeat_interleave(128, dim=1)[:, :k]).to(dtype)
    return {"out": _by_group(inputs, scaled, (b.float() * blocks).to(dtype))}


def _by_group(inputs: Inputs, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    taken = a if inputs["rows"] is None else a[inputs["rows"].long()]
    ends = inputs["offsets"].tolist()
    out = torch.zeros(taken.shape[0], b.shape[1], dtype=inputs["out_dtype"], device=a.device)
    for group in range(b.shape[0]):
        rows = slice(ends[group], ends[group + 1])
        out[rows] = taken[rows] @ b[group].t()
    return out


def block_scaled_mm(inputs: Inputs) -> Results:
    """The operands scaled in float32 and rounded to bfloat16, which is exact, then their product."""
    a, b = (_scaled(inputs[name], inputs[f"scale_{name}"]) for name in ("a", "b"))
    result = a @ b.t()
    if inputs["scale"] is not None:
        result = result * inputs["scale"]
    return {"out": result.to(inputs["out_dtype"])}


def _scaled(stored: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    values = stored.float()
    if stored.dtype == torch.uint8:
        table = torch.tensor([*E2M1, *(-value for value in E2M1)], device=stored.device)
        values = table[torch.stack([stored & 15, stored >> 4], dim=-1).flatten(1).long()]
    factors = scales.float() if scales.dtype == FP8 else torch.exp2(scales.float() - 127.0)
    return (values * factors.repeat_interleave(values.shape[1] // factors.shape[1], dim=1)).to(torch.bfloat16)
