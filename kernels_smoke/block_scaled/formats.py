"""The formats of the operands: elements, and the scale of each block of them. Plain data."""

from dataclasses import dataclass

import torch

FP8 = torch.float8_e4m3fn
E8M0 = torch.float8_e8m0fnu
E2M1 = getattr(torch, "float4_e2m1fn_x2", torch.uint8)  # torch 2.8 and newer


@dataclass(frozen=True)
class Format:
    """One format: the name that ``tl.dot_scaled`` has for its elements, and how they lie in memory.

    - ``elements``, ``scales``: the dtypes of both; bytes (uint8) will do for all but float8_e4m3fn.
    - ``packed``: elements of one byte, of which the first is in its lower bits.
    - ``group``: elements of K that share a scale.
    """

    name: str
    element: str
    elements: torch.dtype
    scales: torch.dtype
    packed: int
    group: int


FORMATS = (
    Format("mxfp8", "e4m3", FP8, E8M0, packed=1, group=32),
    Format("mxfp4", "e2m1", E2M1, E8M0, packed=2, group=32),
    Format("nvfp4", "e2m1", E2M1, FP8, packed=2, group=16),
)


def format_of(elements: torch.dtype, scales: torch.dtype) -> Format | None:
    """The format of elements and scales of these dtypes; None for others."""
    for known in FORMATS:
        same_elements = elements == known.elements or (elements == torch.uint8 and known.packed == 2)
        if same_elements and scales in ({known.scales, torch.uint8} if known.scales == E8M0 else {known.scales}):
            return known
    return None
