"""The blocks of one rank: a linear program whose columns are split over several GPUs."""

import torch

from kernels_smoke.dualip.dual_ascent import LinearProgram, linear_program
from kernels_smoke.launch import require


def share(
    cost: torch.Tensor,
    limits: torch.Tensor,
    offsets: torch.Tensor,
    indices: torch.Tensor,
    values: torch.Tensor,
    blocks: torch.Tensor,
    radius: float = 1.0,
    *,
    rank: int,
    ranks: int,
) -> LinearProgram:
    """The part of ``linear_program(cost, ...)`` that rank ``rank`` of ``ranks`` solves: neighbouring blocks.

    No block is split, and every rank has nearly as many non-zeros of A as the others, so that they take as long. The
    shares of all ranks in their order are the whole. Waits for the GPU. Raises ValueError when the rank is not one, or
    there are fewer blocks than ranks.
    """
    require(0 <= rank < ranks, f"rank must be from 0 to {ranks - 1}, not {rank}")
    require(len(blocks) - 1 >= ranks, f"there are {len(blocks) - 1} blocks for {ranks} ranks")
    nonzeros = offsets[blocks.long()].long()  # before each block, and in all
    first, last = (_bound(nonzeros, number, ranks) for number in (rank, rank + 1))
    begin, end = int(blocks[first]), int(blocks[last])
    low, high = int(offsets[begin]), int(offsets[end])
    return linear_program(
        cost[begin:end],
        limits,
        offsets[begin : end + 1] - low,
        indices[low:high],
        values[low:high],
        blocks[first : last + 1] - begin,
        radius,
    )


def _bound(nonzeros: torch.Tensor, number: int, ranks: int) -> int:
    """The first block of rank ``number``: where that part of all non-zeros begins, with a block for each rank."""
    blocks = len(nonzeros) - 1
    wanted = torch.tensor(int(nonzeros[-1]) * number // ranks, device=nonzeros.device)
    found = int(torch.searchsorted(nonzeros, wanted))
    return min(max(found, number), blocks - ranks + number)
