"""The projection and the sparse product in eager torch: dense rows, and gather and scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from kernels_smoke.suite.model import Inputs


@dataclass(frozen=True)
class Padded:
    """``count`` segments as dense rows of ``longest`` elements: element i goes to ``place[i]`` of all rows."""

    place: torch.Tensor
    count: int
    longest: int


def padded(offsets: torch.Tensor, elements: int, longest: int) -> Padded:
    """The positions of segments' elements in dense rows; the same for all values."""
    lengths = offsets.long().diff()
    row = torch.repeat_interleave(lengths, output_size=elements)
    place = row * longest + torch.arange(elements, device=offsets.device) - offsets.long()[row]
    return Padded(place, len(lengths), longest)


def projected(values: torch.Tensor, rows: Padded, radius: float, *, equality: bool) -> torch.Tensor:
    """The projection of each row onto the simplex, by sorting it."""
    dense = torch.full((rows.count * rows.longest,), float("-inf"), device=values.device)
    dense = dense.index_copy(0, rows.place, values).reshape(-1, rows.longest)
    falling = dense.sort(dim=1, descending=True).values
    thresholds = (falling.cumsum(1) - radius) / torch.arange(1, rows.longest + 1, device=values.device)
    last = (falling > thresholds).sum(1, keepdim=True).clamp(min=1) - 1
    result = torch.clamp(dense - thresholds.gather(1, last), min=0.0)
    if not equality:
        positive = dense.clamp(min=0.0)
        result = torch.where(positive.sum(1, keepdim=True) <= radius, positive, result)
    return result.reshape(-1)[rows.place]


def simplex_projection(inputs: Inputs) -> dict[str, Any]:
    """Segments padded to rows of the longest class, which are sorted."""
    rows = padded(inputs["segments_offsets"], inputs["segments_elements"], inputs["segments_classes"][-1].length)
    return {"out": projected(inputs["values"], rows, inputs["radius"], equality=inputs["equality"])}


def sparse_product(inputs: Inputs) -> dict[str, Any]:
    """Every product of a non-zero, added up where its segment is."""
    offsets, elements = inputs["segments_offsets"].long(), inputs["segments_elements"]
    row = torch.repeat_interleave(offsets.diff(), output_size=elements)
    products = inputs["values"] * inputs["vector"][inputs["indices"]]
    return {"out": products.new_zeros(len(offsets) - 1).index_add(0, row, products)}
