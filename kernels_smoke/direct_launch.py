"""Launching what Triton has compiled, without what Triton does in Python before each launch.

``kernel[grid](...)`` classifies every argument, looks for the compiled kernel by a string that it makes of them, and
encodes every tensor descriptor: 50 to 200 microseconds on the host of an H200. A :class:`Launch` keeps all of that, and
knows only where its pointers come from. Written for the launchers of Triton 3.6 and 3.7 on CUDA; others are called
through their Python.
"""

import copy
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

try:
    from triton import knobs
except ImportError:  # older than Triton 3.4, whose hooks are elsewhere
    knobs = None

# What to call, the grid, and what follows the stream: called with the grid, a stream and the rest.
Call = tuple[Callable[..., object], int, int, int, tuple[Any, ...]]
MOST_BINDINGS = 128  # sets of pointers for which a launch keeps its arguments; a set takes about a kilobyte
NVIDIA = "triton.backends.nvidia.driver"


class _Address:
    """What stands for the tensor of a descriptor: a pointer."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer

    def data_ptr(self) -> int:
        return self.pointer


@dataclass(frozen=True)
class Place:
    """An argument that is in memory: ``offset`` bytes behind the beginning of tensor number ``source``.

    It is a tensor of ``shape``, ``strides`` and ``dtype``; with ``descriptor``, whose base is left empty, that of it.
    """

    source: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    descriptor: Any = None

    def pointer(self, pointers: Sequence[int]) -> Any:
        """The argument of a compiled kernel: a pointer, or a descriptor of it."""
        pointer = pointers[self.source] + self.offset
        return pointer if self.descriptor is None else self._described(_Address(pointer))

    def tensor(self, sources: Sequence[torch.Tensor]) -> Any:
        """The argument of an interpreted kernel: a view of the source, or a descriptor of that."""
        source = sources[self.source]
        first = (source.storage_offset() * source.itemsize + self.offset) // self.dtype.itemsize
        empty = torch.empty(0, dtype=self.dtype, device=source.device)
        view = empty.set_(source.untyped_storage(), first, self.shape, self.strides)
        return view if self.descriptor is None else self._described(view)

    def _described(self, base: object) -> Any:
        made = copy.copy(self.descriptor)
        made.base = base
        return made


@dataclass
class Launch:
    """One launch: ``kernel[grid](**arguments)``, where what is in memory is a :class:`Place`.

    ``compiled`` is Triton's ``CompiledKernel`` for it, None where Triton interprets kernels.
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    compiled: Any

    def __post_init__(self) -> None:
        values = [self.arguments.get(name) for name in self.kernel.arg_names] if self.compiled else []
        self._values = values
        self._places = [(index, value) for index, value in enumerate(values) if isinstance(value, Place)]
        self._bound: dict[tuple[int, ...], Call] = {}

    def values(self, pointers: Sequence[int]) -> list[Any]:
        """All arguments in the order of the kernel's parameters."""
        values = list(self._values)
        for index, place in self._places:
            values[index] = place.pointer(pointers)
        return values

    def call(self, pointers: Sequence[int]) -> Call:
        """What launches it for sources at ``pointers``."""
        key = tuple([pointers[place.source] for _, place in self._places])
        call = self._bound.get(key)
        if call is None:
            call = _call(self.compiled, self.grid, self.values(pointers))
            keep(self._bound, key, call, MOST_BINDINGS)
        return call

    def with_hooks(self, pointers: Sequence[int], stream: int) -> None:
        """Launch it with the hooks that a profiler has set."""
        self.compiled[(*self.grid, 1, 1)[:3]](*self.values(pointers), stream=stream)

    def interpret(self, sources: Sequence[torch.Tensor]) -> None:
        """Launch it in Triton's interpreter."""
        arguments = self.arguments.items()
        self.kernel[self.grid](**{n: v.tensor(sources) if isinstance(v, Place) else v for n, v in arguments})


def keep(kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    """``kept[key] = value``, without what was kept first when there are more than ``most``."""
    if len(kept) >= most:
        kept.pop(next(iter(kept)), None)
    kept[key] = value


def hooked() -> bool:
    """True while a profiler may listen to launches (``triton.knobs.runtime.launch_enter_hook`` and its like)."""
    if knobs is None:
        return True
    enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))  # chains, or a hook before Triton 3.5


def listen(hook: Callable[[Any], None]) -> bool:
    """Have ``hook`` called before each launch by Triton itself; False where that has one hook only (before 3.5)."""
    if knobs is None or not hasattr(knobs.runtime.launch_enter_hook, "add"):
        return False
    knobs.runtime.launch_enter_hook.add(hook)
    return True


def ignore(hook: Callable[[Any], None]) -> None:
    """The opposite of ``listen``."""
    if knobs is not None and hasattr(knobs.runtime.launch_enter_hook, "remove"):
        knobs.runtime.launch_enter_hook.remove(hook)


def _call(compiled: Any, grid: tuple[int, ...], values: list[Any]) -> Call:
    """A launch by the launcher that Triton has in C, or by its wrapper in Python where that is not as expected."""
    x, y, z = (*grid, 1, 1)[:3]
    launcher = compiled.run
    arguments = (compiled.function, compiled.packed_metadata, None, None, None, *values)
    in_c = _launcher_in_c(launcher)
    if in_c is None:
        return launcher, x, y, z, arguments
    found: list[tuple[Any, ...]] = []
    describe = sys.modules[NVIDIA].wrap_handle_tensordesc  # in Triton 3.6 and 3.7; looked for below
    listening = copy.copy(launcher)
    listening.launch = describe(
        lambda *given: found.append(given), compiled.src.signature, getattr(compiled.metadata, "tensordesc_meta", None)
    )
    listening(x, y, z, 0, *arguments)
    return in_c, x, y, z, found[0][4:]


def _launcher_in_c(launcher: Any) -> Callable[..., object] | None:
    """What ``launcher`` calls in the end; None where it does more than that, or is of another kind."""
    kind = type(launcher).__module__
    if kind != NVIDIA or not hasattr(sys.modules[kind], "wrap_handle_tensordesc"):
        return None
    if launcher.global_scratch_size or launcher.profile_scratch_size:  # allocated for each launch
        return None
    within = [cell.cell_contents for cell in getattr(launcher.launch, "__closure__", None) or ()]
    for candidate in (launcher.launch, *within):
        if isinstance(candidate, types.BuiltinFunctionType):
            return candidate
    return None
