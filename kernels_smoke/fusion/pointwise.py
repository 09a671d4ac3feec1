"""What pointwise kernels share: any tensors of one shape as rows, and the place of a program in them."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES, check_rows, check_written, require


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out: each program takes ``block`` elements (a power of two) of a row with ``warps`` warps.

    ``eviction`` is the cache's hint for the inputs, which are read once.
    """

    block: int
    warps: int
    eviction: str = ""


def as_rows(tensors: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """Views [rows, width] of tensors that have one shape: a single row when all of them are contiguous.

    Those whose names begin with "out" are written. Raises ValueError when shapes, dtypes or devices differ from those
    of the first, its dtype is not in ``DTYPES``, or a tensor is neither contiguous nor [rows, width] with contiguous
    rows.
    """
    like = next(iter(tensors.values()))
    require(like.dtype in DTYPES, f"tensors must be {' or '.join(map(str, DTYPES))}, not {like.dtype}")
    for name, tensor in tensors.items():
        check_rows(name, tensor, tuple(like.shape), (like.dtype,), like)
        if name.startswith("out"):
            check_written(name, tensor)
    if all(tensor.is_contiguous() for tensor in tensors.values()):
        return [tensor.view(1, -1) for tensor in tensors.values()]
    require(like.ndim == 2, "tensors that are not contiguous must be [rows, width]")
    return list(tensors.values())


def programs(rows: torch.Tensor, block: int) -> int:
    """How many programs work on ``rows`` [rows, width] in blocks of ``block`` elements."""
    return len(rows) * int(triton.cdiv(rows.shape[1], block))


@triton.jit
def _place(width, BLOCK: tl.constexpr):
    """The row (int64) and the columns (int64, [BLOCK]) of this program: both may reach beyond 2^31."""
    blocks = (width - 1) // BLOCK + 1  # just below 2^31, a sum would be beyond
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    first = (program % blocks).to(tl.int64) * BLOCK
    return row, first + tl.arange(0, BLOCK)
