"""What a kernel from outside allocates itself, poisoned and guarded as the tensors of the suite are.

A function of another package makes its results with ``torch.empty``: memory that is not written would hold what was
there before, often the right values of an earlier run, and what is written behind it would be another tensor's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernels_smoke.suite.correctness.draw import Draw

MOST_BYTES = 1 << 32  # of guarded memory, which is kept to the end of the case; what comes later has no guards
EDGE = 0xFB  # no NaN in any dtype, and far from all that a kernel computes
EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FILLED = {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"}


class guarded(TorchDispatchMode):  # type: ignore[misc]  # noqa: N801  # torch is Any here; called as a function is
    """While this is active, what torch allocates on the device of ``draw`` lies between guards as wide as its own.

    ``trespasses()`` names the tensors around which something was written.
    """

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.draw, self.bytes = Draw(draw.seed, draw.device, draw.guard, edge=EDGE), 0
        self.trespasses = self.draw.trespasses

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operator; replace what it allocated."""
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__ if isinstance(func, torch._ops.OpOverload) else ""  # noqa: SLF001  # public by use
        if name not in EMPTY | FILLED or not self._guardable(made):
            return made
        self.bytes += made.nbytes
        place = self.draw.empty(
            *made.shape, dtype=made.dtype, row_stride=tuple(made.stride()), name=f"a tensor of {tuple(made.shape)}"
        )
        return place if name in EMPTY else place.copy_(made)

    def _guardable(self, made: Any) -> bool:
        """Whether it is a plain tensor with memory of the device; poison is no value of a bool."""
        return (
            type(made) is torch.Tensor
            and made.layout is torch.strided
            and made.device.type == self.draw.device
            and made.dtype is not torch.bool
            and not made.is_quantized
            and made.numel() > 0
            and not (made.device.type == "cpu" and made.is_pinned())
            and self.bytes + made.nbytes <= MOST_BYTES
        )
