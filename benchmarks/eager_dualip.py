"""The projection and the sparse product in eager torch: dense rows for the one, gather and scatter for the other."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.model import Inputs


def simplex_projection(inputs: Inputs) -> dict[str, Any]:
    """Segments padded to rows of the longest class, which are sorted."""
    values, radius = inputs["values"], inputs["radius"]
    offsets, elements = inputs["segments_offsets"].long(), inputs["segments_elements"]
    longest = inputs["segments_classes"][-1].length
    row = torch.repeat_interleave(offsets.diff(), output_size=elements)
    place = row * longest + torch.arange(elements, device=values.device) - offsets[row]
    dense = torch.full(((len(offsets) - 1) * longest,), float("-inf"), device=values.device)
    dense = dense.index_copy(0, place, values).reshape(-1, longest)
    falling = dense.sort(dim=1, descending=True).values
    thresholds = (falling.cumsum(1) - radius) / torch.arange(1, longest + 1, device=values.device)
    last = (falling > thresholds).sum(1, keepdim=True).clamp(min=1) - 1
    projected = torch.clamp(dense - thresholds.gather(1, last), min=0.0)
    if not inputs["equality"]:
        positive = dense.clamp(min=0.0)
        projected = torch.where(positive.sum(1, keepdim=True) <= radius, positive, projected)
    return {"out": projected.reshape(-1)[place]}


def sparse_product(inputs: Inputs) -> dict[str, Any]:
    """Every product of a non-zero, added up where its segment is."""
    offsets, elements = inputs["segments_offsets"].long(), inputs["segments_elements"]
    row = torch.repeat_interleave(offsets.diff(), output_size=elements)
    products = inputs["values"] * inputs["vector"][inputs["indices"]]
    return {"out": products.new_zeros(len(offsets) - 1).index_add(0, row, products)}
