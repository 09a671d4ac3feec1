"""Where the ranks of a group keep their parts of a sum: addresses that a kernel of each rank can read."""

from dataclasses import dataclass, field
from typing import Any

import torch

from kernels_smoke.launch import require

PROGRAMS = 128  # of a launch that waits for its peers: all of them must run at the same time


@dataclass(frozen=True)
class Peers:
    """The inputs of all ranks, each [rows, width] of one dtype, with rows ``row_stride`` elements apart.

    - ``pointers``: [ranks], int64, on this rank's GPU: the addresses of the inputs, in the order of the ranks, each a
      multiple of 16 bytes. ``x`` is the input of rank ``rank``, this one.
    - ``signals``: [ranks], int64: the addresses of as many arrays [PROGRAMS, 2, ranks] of int32, zero at first, by
      which programs of different ranks wait for one another. None where all inputs are there before the launch.
    - ``owner``: what keeps the memory alive.
    """

    x: torch.Tensor
    pointers: torch.Tensor
    rank: int = 0
    signals: torch.Tensor | None = None
    owner: Any = field(default=None, compare=False)  # a plan looks at what is compared

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.pointers)


def symmetric(rows: int, width: int, dtype: torch.dtype, group: Any) -> Peers:
    """An input of each rank of ``group`` in torch's symmetric memory: for GPUs that can read each other's memory.

    Each rank calls it with the same arguments, with its GPU as the current one, and writes its part of the sum into
    ``x`` of the result. Raises RuntimeError where torch has no symmetric memory for these GPUs, and ValueError when
    the rows are not a multiple of 16 bytes.
    """
    from torch.distributed import _symmetric_memory as symmetric_memory  # noqa: PLC0415  # needs torch.distributed

    require(width * dtype.itemsize % 16 == 0, f"rows of {width} elements are not a multiple of 16 bytes")
    device = torch.device("cuda", torch.cuda.current_device())
    x = symmetric_memory.empty((rows, width), dtype=dtype, device=device)
    of_x = symmetric_memory.rendezvous(x, group)
    signals = symmetric_memory.empty((PROGRAMS, 2, of_x.world_size), dtype=torch.int32, device=device)
    of_signals = symmetric_memory.rendezvous(signals, group)
    signals.zero_()
    made = Peers(
        x=x,
        pointers=_addresses(of_x, x),
        rank=of_x.rank,
        signals=_addresses(of_signals, signals),
        owner=(x, signals, of_x, of_signals),
    )
    of_signals.barrier()  # no rank signals before all arrays are zero
    return made


def _addresses(handle: Any, own: torch.Tensor) -> torch.Tensor:
    """Where ``own`` is on each rank: it may begin later than the memory that was exchanged."""
    offset = own.data_ptr() - handle.buffer_ptrs[handle.rank]
    return torch.tensor([base + offset for base in handle.buffer_ptrs], dtype=torch.int64, device=own.device)
