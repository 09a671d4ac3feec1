"""Calls that are checked and laid out once: a plan, and the cache of plain calls.

A public function that is ``plannable`` launches by :func:`launch`, and allocates by :func:`allocated`. So one run
records all launches of a call, and the origin of their pointers. Two things follow:

- ``function.plan(...)`` takes the arguments of a call, checks them, compiles, and launches nothing. Each ``plan()`` is
  then such a call on the same tensors, at the cost of the launches alone.
- A plain call looks whether there was one like it: tensors of the same shapes, strides, dtypes, device and alignment,
  the same memory in the same arguments, the rest equal. Then nothing is checked and laid out again: only the pointers
  are new.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import torch
from triton.runtime.jit import JITFunction

from kernels_smoke.launching.direct import Call, hooked, keep
from kernels_smoke.launching.recording import PLAIN, Recorder, Recording, active, allocated, extent, launch

__all__ = ["Plan", "Plannable", "allocated", "launch", "plannable", "plannable_apart"]

P = ParamSpec("P")
R = TypeVar("R")
MOST_LAYOUTS = 256  # per function
TENSORS = (torch.Tensor, torch.nn.Parameter)  # any other kind may do anything when it is asked for its pointer
RUN = JITFunction.run  # who replaces it wants to see every launch


class Plannable(Generic[P, R]):
    """A function that launches kernels, with ``plan``: see the module."""

    apart = False  # whether the function compares where its tensors end, as check_apart does

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._names = function.__globals__
        self._kept: dict[Hashable, Recording] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, with the recording of an equal call if there is one."""
        if torch.compiler.is_compiling() or active.recorder is not None:
            return self.function(*args, **kwargs)
        # A replaced `configure`, as in benchmarks/tune.py, gives another layout.
        key: list[Any] = [self._names.get("configure"), *kwargs]
        sources: list[torch.Tensor] = []
        pointers: list[int] = []
        if not _describe((*args, *kwargs.values()), key, sources, pointers) or hooked() or JITFunction.run is not RUN:
            return self.function(*args, **kwargs)
        if self.apart:
            key.extend(_shared(sources, pointers))
        elif len(set(pointers)) < len(pointers):
            key.extend(map(pointers.index, pointers))
        layout = tuple(key)
        recording = self._kept.get(layout)
        if recording is not None and recording.valid():
            return recording.replay(sources, pointers)  # type: ignore[no-any-return]  # as the function returned it
        recorder = Recorder(sources, launching=True)
        with recorder:
            result = self.function(*args, **kwargs)
        with contextlib.suppress(RuntimeError):  # then no call of this layout is kept
            keep(self._kept, layout, recorder.recording(result), MOST_LAYOUTS)
        return result

    def plan(self, *args: P.args, **kwargs: P.kwargs) -> Plan[R]:
        """Check the arguments of a call and compile for them; calling the plan then makes that call.

        Raises the errors of the call.
        """
        return Plan(self.function, inspect.signature(self.function).bind(*args, **kwargs).arguments)


class PlannableApart(Plannable[P, R]):
    """One whose function refuses tensors that share memory: looking for these takes 4 microseconds of each call."""

    apart = True


plannable, plannable_apart = Plannable, PlannableApart  # as decorators


class Plan(Generic[R]):
    """A call of which only the launches are left.

    ``plan()`` makes the call on the tensors of the plan, and returns its results, without checks. Memory is allocated
    once: every ``plan()`` writes into the same results. ``plan(x=other)`` makes the call with other tensors instead of
    some arguments, once; they must have the same layout. Results can be replaced, too, if the function takes ``out``.

    A plan keeps its tensors' memory, even when a tensor is deleted or gets other memory (``x.data = y``), of which the
    plan then knows nothing. It launches on the current stream, and can be captured in a CUDA graph. Calls of one
    plan share its results and the memory that it works in: on several streams, use a plan for each.
    """

    def __init__(self, function: Callable[..., R], arguments: Mapping[str, Any]) -> None:
        self._function, self._arguments = function, dict(arguments)
        self._indices: dict[str, range] = {}
        sources: list[torch.Tensor] = []
        for name, value in self._arguments.items():
            begin = len(sources)
            sources.extend(_tensors(value))
            self._indices[name] = range(begin, len(sources))
        self._recording: Recording | None = None
        self._calls: list[Call] = []
        if any(tensor.is_meta for tensor in sources):
            return  # there is nothing to launch: a call of the plan compiles, as one of the function does
        recorder = Recorder(sources, launching=False)
        with recorder:
            self._result = function(**self._arguments)
        self._recording = recorder.recording(self._result)
        if self._recording.compiled and (elsewhere := [tensor.device for tensor in sources if not tensor.is_cuda]):
            raise ValueError(f"a plan launches on a GPU; there are tensors on {elsewhere[0]}")
        self._sources = sources
        self._memory = [tensor.detach() for tensor in sources]
        self._layouts = [_layout(tensor) for tensor in sources]
        self._pointers = [tensor.data_ptr() for tensor in sources]
        self._shared = _shared(sources, self._pointers)
        self._calls = self._recording.bind(self._pointers)

    def __call__(self, **others: Any) -> R:
        """Make the call. Raises ValueError when one of ``others`` is no argument or has another layout."""
        if others:
            return self._with(others)
        if self._recording is None:
            return self._function(**self._arguments)
        self._recording.run(self._calls, self._pointers, self._memory)
        return self._result

    def _with(self, others: Mapping[str, Any]) -> R:
        if self._recording is None:
            return self._function(**{**self._arguments, **others})
        sources, pointers = list(self._sources), list(self._pointers)
        for name, other in others.items():
            indices, tensors = self._replaceable(name), _tensors(other)
            if len(indices) != len(tensors):
                raise ValueError(f"{name} must have {len(indices)} tensors, as in the plan, not {len(tensors)}")
            if _without_tensors(other) != _without_tensors(self._arguments[name]):
                raise ValueError(f"{name} differs from that of the plan in more than its tensors")
            for index, tensor in zip(indices, tensors, strict=True):
                wanted, got = self._layouts[index], _layout(tensor)
                if wanted != got:
                    raise ValueError(f"{name} must be {_described(wanted)}, as in the plan, not {_described(got)}")
                sources[index], pointers[index] = tensor, tensor.data_ptr()
        if _shared(sources, pointers) != self._shared:
            raise ValueError(f"{' and '.join(others)}: tensors are the same memory as others, or no longer are")
        self._recording.run(self._recording.bind(pointers), pointers, sources)
        return self._recording.result(sources)  # type: ignore[no-any-return]  # as the function returned it

    def _replaceable(self, name: str) -> range:
        indices = self._indices.get(name, range(0))
        if not indices:
            tensors = ", ".join(name for name, indices in self._indices.items() if indices)
            raise ValueError(f"{name} is not a tensor of the plan; its tensors are {tensors}")
        return indices


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of one argument: itself, or those of a tuple or a frozen dataclass."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in _parts(value) for tensor in _tensors(part)]


def _without_tensors(value: Any) -> Any:
    """One argument, with None for each of its tensors."""
    if isinstance(value, torch.Tensor):
        return None
    parts = _parts(value)
    return (type(value), [_without_tensors(part) for part in parts]) if parts else value


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, (tuple, list)):
        return value
    kind: Any = type(value)
    return [getattr(value, name) for name in _compared(kind) or ()]


@functools.lru_cache(maxsize=256)
def _compared(kind: Any) -> tuple[str, ...] | None:
    """The fields by which two of a frozen dataclass are compared; None for any other type."""
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare)


Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype, torch.device, int]


def _layout(tensor: torch.Tensor) -> Layout:
    """All of a tensor that a launch is made for, but where it is."""
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device, tensor.data_ptr() & 15


def _described(layout: Layout) -> str:
    shape, strides, dtype, device, behind = layout
    alignment = f", {behind} bytes behind a multiple of 16" if behind else ""
    return f"{dtype} {shape} with strides {strides} on {device}{alignment}"


def _shared(sources: Sequence[torch.Tensor], pointers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Which of ``sources`` lie within each other's bytes: (number, number, distance in bytes) of each such pair.

    So a function may refuse tensors that share memory (``launch.check_apart``): a call that is like one which was
    checked shares the same bytes.
    """
    places = sorted(
        (pointer, pointer + extent(source.shape, source.stride(), source.dtype), number)
        for number, (source, pointer) in enumerate(zip(sources, pointers, strict=True))
    )
    return [
        (number, other, begin - start)
        for index, (start, end, number) in enumerate(places)
        for begin, _, other in itertools.takewhile(lambda place: place[0] < end, places[index + 1 :])  # noqa: B023  # used at once
    ]


def _describe(values: Sequence[Any], key: list[Any], sources: list[torch.Tensor], pointers: list[int]) -> bool:
    """Add ``values`` to the key; False when they are not all plain values and tensors on a GPU, or made of these."""
    for value in values:
        kind: Any = type(value)
        if kind in TENSORS:
            if not value.is_cuda:
                return False
            pointer = value.data_ptr()
            key.append((value.shape, value.stride(), value.dtype, value.get_device(), pointer & 15))
            sources.append(value)
            pointers.append(pointer)
        elif kind in PLAIN:
            key.append((kind, value))
        elif kind is tuple or _compared(kind) is not None:
            parts = _parts(value)
            key.append((kind, len(parts)))
            if not _describe(parts, key, sources, pointers):
                return False
        else:
            return False
    return True
