"""What the cases of the fused operations share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kernels_smoke.suite.model import Check, Mutant

FAR = 2**30 + 64  # elements from one row to the next, so that the third row is beyond 2^31
MANY = 2**31 + 4099  # elements of one row, the last of them beyond 2^31
WIDTHS = (1, 127, 300, 1025, 4097, 5137)


@dataclass(frozen=True)
class InChunks:
    """``check``, applied to ``elements`` at a time, so that an output of gigabytes is not copied as a whole."""

    check: Check
    elements: int = 2**27

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return the result of the first chunk that is wrong, or of the one with the greatest error."""
        if output.shape != reference.shape or output.numel() <= self.elements:
            return self.check(output, reference)
        results = []
        for chunk, wanted in zip(
            output.reshape(-1).split(self.elements), reference.reshape(-1).split(self.elements), strict=True
        ):
            results.append(self.check(chunk, wanted))
            if results[-1]["message"]:
                return results[-1]
        return max(results, key=lambda result: float(result["error"]))


def large(name: str, old: str, new: str, module: str = "") -> Mutant:
    """A fault that shows beyond 2^31 elements alone."""
    why = "it takes offsets beyond 2^31 elements, gigabytes for a slow interpreter"
    return Mutant(name, old, new, module=module, where=("cuda",), why=why)


POINTWISE_MUTANTS = (
    large(
        "rows in 32 bits",
        "row = (program // blocks).to(tl.int64)",
        "row = program // blocks",
        module="kernels_smoke.fusion.pointwise",
    ),
    large(
        "columns in 32 bits",
        "first = (program % blocks).to(tl.int64) * BLOCK",
        "first = ((program % blocks) * BLOCK).to(tl.int32)",
        module="kernels_smoke.fusion.pointwise",
    ),
    Mutant(
        "all programs on the first row",
        "row = (program // blocks).to(tl.int64)",
        "row = (program // blocks).to(tl.int64) * 0",
        module="kernels_smoke.fusion.pointwise",
    ),
)
