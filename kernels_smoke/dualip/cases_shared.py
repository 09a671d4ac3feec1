"""What the cases of this family draw: segments of known lengths in unknown order, and how they travel among inputs."""

from collections.abc import Mapping
from typing import Any

import torch

from kernels_smoke.dualip.segments import Segments, segments
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Inputs

Travelling = Mapping[str, Any]


def draw_lengths(draw: Draw, count: int, low: int, high: int) -> torch.Tensor:
    """``count`` lengths, as many of each from ``low`` to ``high``, shuffled; on the CPU, with values on any device."""
    lengths = torch.arange(count) * (high - low + 1) // max(count, 1) + low
    return lengths[torch.randperm(count, generator=torch.Generator().manual_seed(draw.seed))]


def offsets_of(lengths: torch.Tensor, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """The offsets of segments of these ``lengths``."""
    return torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(dtype)


def placed(draw: Draw, made: Segments, name: str = "segments") -> Travelling:
    """``made`` as inputs: its tensors guarded, on the device of ``draw``."""
    return {
        f"{name}_offsets": draw.place(made.offsets, name=f"{name}_offsets"),
        f"{name}_order": draw.place(made.order, name=f"{name}_order"),
        f"{name}_classes": made.classes,
        f"{name}_elements": made.elements,
    }


def found(inputs: Inputs, name: str = "segments") -> Segments:
    """The segments that ``placed`` made inputs of."""
    return Segments(*(inputs[f"{name}_{field}"] for field in ("offsets", "order", "classes", "elements")))


def draw_segments(
    draw: Draw, *, count: int, low: int, high: int, offsets: torch.dtype = torch.int32, long: int = 0
) -> Segments:
    """``count`` segments of ``low`` to ``high`` elements, and one more of ``long`` in their middle; on the CPU."""
    lengths = draw_lengths(draw, count, low, high)
    if long:
        lengths = torch.cat((lengths[: count // 2], torch.tensor([long]), lengths[count // 2 :]))
    return segments(offsets_of(lengths, offsets))
