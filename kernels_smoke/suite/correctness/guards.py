"""What a kernel from outside allocates itself, poisoned and guarded as the tensors of the suite are.

A function of another package makes its results with ``torch.empty``: memory that is not written would hold what was
there before, often the right values of an earlier run, and what is written behind it would be another tensor's.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernels_smoke.suite.correctness.draw import Draw

MOST_BYTES = 1 << 32  # of guarded memory, which is kept to the end of the case; what comes later has no guards
EDGE = 0xFB  # no NaN in any dtype, and far from all that a kernel computes
TORCH = {"aten", "prim", "prims"}  # the namespaces of torch's own operators
EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FILLED = {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full"}


class guarded(TorchDispatchMode):  # type: ignore[misc]  # noqa: N801  # torch is Any here; called as a function is
    """While this is active, what torch allocates on the device of ``draw`` is between guards as wide as its own.

    ``trespasses()`` names the tensors around which something was written.
    """

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.draw, self.bytes = Draw(draw.seed, draw.device, draw.guard, edge=EDGE), 0
        self.busy = False
        self.trespasses = self.draw.trespasses

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operator; replace what it allocated."""
        name = func.overloadpacket.__name__ if isinstance(func, torch._ops.OpOverload) else ""  # noqa: SLF001  # public by use
        if getattr(func, "namespace", "aten") in TORCH:
            return self.replace(name, func(*args, **(kwargs or {})))
        with _calls(self), _filled():  # within the operator of a library this mode is off
            return func(*args, **(kwargs or {}))

    def replace(self, name: str, made: Any) -> Any:
        """What the function ``name`` allocated, between guards; anything else as it is."""
        if self.busy or name not in EMPTY | FILLED or not self._guardable(made):
            return made
        self.busy = True  # what draws allocates, too
        self.bytes += made.nbytes
        called = f"a tensor of {tuple(made.shape)}"
        place = self.draw.empty(*made.shape, dtype=made.dtype, row_stride=tuple(made.stride()), name=called)
        self.busy = False
        return place if name in EMPTY else place.copy_(made)

    def _guardable(self, made: Any) -> bool:
        """Whether it is a plain tensor with memory of the device."""
        return (
            type(made) is torch.Tensor
            and made.layout is torch.strided
            and made.device.type == self.draw.device
            and not made.is_quantized
            and made.numel() > 0
            and not (made.device.type == "cpu" and made.is_pinned())
            and self.bytes + made.nbytes <= MOST_BYTES
        )


@contextlib.contextmanager
def _calls(guards: guarded) -> Iterator[None]:
    """The same for what an operator that is written in Python allocates: it calls these, and no mode is on in it."""
    before = [(place, name, vars(place).get(name)) for place in (torch, torch.Tensor) for name in EMPTY | FILLED]
    for place, name, _ in before:
        if (function := getattr(place, name, None)) is not None:
            setattr(place, name, _replacing(guards, name, function))
    try:
        yield
    finally:
        for place, name, function in before:
            if function is not None:
                setattr(place, name, function)
            elif name in vars(place):  # it was inherited
                delattr(place, name)


def _replacing(guards: guarded, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: guards.replace(name, function(*args, **kwargs))


@contextlib.contextmanager
def _filled() -> Iterator[None]:
    """Let torch fill with NaN what an operator that is written in C++ allocates: there are no guards around that."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.use_deterministic_algorithms(mode=True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
