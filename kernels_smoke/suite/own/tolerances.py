"""How near a result of a kernel from outside must be where its author says nothing: by its dtype."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kernels_smoke.suite.correctness.compare import Exact, Near
from kernels_smoke.suite.model import Check

# The relative error of the whole, in the norm. Rounding the exact result once gives 1.7e-3 in bfloat16, 2.1e-4 in
# float16 and 3e-8 in float32, and 2.6e-2 and 5.2e-2 in the two fp8 formats; this allows for three to five roundings,
# and in float32 for sums of thousands of terms in another order. Products in TF32 need 1e-3: their authors say so.
TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 1e-3,
    torch.bfloat16: 6e-3,
    torch.float8_e4m3fn: 5e-2,
    torch.float8_e5m2: 1e-1,
}
FAINT = 0.1  # of the rows' root mean square: what is fainter, is mostly the rounding of terms that cancel


@dataclass(frozen=True)
class ByDtype(Near):
    """Floating-point results within the tolerance of their dtype, or within ``tolerance``; all others bit for bit."""

    faint: float = FAINT
    tolerance: float | None = None

    def allowed(self, dtype: torch.dtype) -> float:
        """The tolerance for results of ``dtype``; as for fp8 where a dtype is rarer than those."""
        return self.tolerance or TOLERANCES.get(dtype, TOLERANCES[torch.float8_e5m2])

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return what Near or Exact does."""
        if output.dtype.is_complex and reference.dtype.is_complex:
            return self(torch.view_as_real(output), torch.view_as_real(reference))
        if not output.dtype.is_floating_point:
            return Exact()(output, reference)
        return super().__call__(output, reference)


class Checks(dict[str, Check]):
    """The check of each result, by name; what is not named is judged by its dtype."""

    def __init__(self, said: float | Check | Mapping[str, float | Check] | None) -> None:
        named = said if isinstance(said, Mapping) else {}
        super().__init__({name: _check(each) for name, each in named.items()})
        self.others = _check(None if isinstance(said, Mapping) else said)

    def __missing__(self, name: str) -> Check:
        return self.others


def _check(said: float | Check | None) -> Check:
    return ByDtype(tolerance=said) if said is None or isinstance(said, int | float) else said
