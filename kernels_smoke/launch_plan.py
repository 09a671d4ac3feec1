"""Calls that are checked and laid out once: a plan, and what plain calls keep from one to the next.

A public function that is ``plannable`` launches by :func:`launch`, and hands what it allocates to :func:`allocated`.
So one run of it says all that a call launches, and where the pointers of the launches come from. Two things follow:

- ``function.plan(...)`` takes the arguments of a call, checks them, compiles, and launches nothing. Each ``plan()`` is
  then such a call on the same tensors, at the cost of the launches alone.
- A plain call looks whether there was one like it: tensors of the same shapes, strides, dtypes, device and alignment,
  the rest equal. Then nothing is checked and laid out again, and only the pointers are new.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar

import torch
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

from kernels_smoke.direct_launch import MOST_BINDINGS, Call, Launch, Place, hooked, ignore, keep, listen

P = ParamSpec("P")
R = TypeVar("R")
MOST_LAYOUTS = 256  # that one function keeps
TENSORS = (torch.Tensor, torch.nn.Parameter)  # any other kind may do anything when it is asked for its pointer
PLAIN = (int, float, bool, str, torch.dtype, type(None))
RUN = JITFunction.run  # who replaces it wants to see every launch


class _Active(threading.local):
    recorder: _Recorder | None = None


_active = _Active()


def launch(kernel: Any, grid: tuple[int, ...], /, **arguments: Any) -> None:
    """``kernel[grid](**arguments)``, of which a plan can be made."""
    if torch.compiler.is_compiling() or _active.recorder is None:
        kernel[grid](**arguments)
    else:
        _active.recorder.launch(kernel, grid, arguments)


def allocated(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor``, which the function has just allocated: its result, or memory to work in."""
    if not torch.compiler.is_compiling() and _active.recorder is not None:
        _active.recorder.sources.append(tensor)
    return tensor


class Plannable(Generic[P, R]):
    """A function that launches kernels, with ``plan``: see the module."""

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._names = function.__globals__
        self._kept: dict[Hashable, _Recording] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, by what was kept of a call like this one where there was one."""
        if torch.compiler.is_compiling() or _active.recorder is not None:
            return self.function(*args, **kwargs)
        # Whoever replaces `configure`, as benchmarks/tune.py does, wants to have another layout.
        key: list[Any] = [self._names.get("configure"), *kwargs]
        sources: list[torch.Tensor] = []
        pointers: list[int] = []
        if not _describe((*args, *kwargs.values()), key, sources, pointers) or hooked() or JITFunction.run is not RUN:
            return self.function(*args, **kwargs)
        if len(set(pointers)) < len(pointers):
            key.extend(map(pointers.index, pointers))
        layout = tuple(key)
        recording = self._kept.get(layout)
        if recording is not None and recording.valid():
            return recording.replay(sources, pointers)  # type: ignore[no-any-return]  # as the function returned it
        recorder = _Recorder(sources, launching=True)
        with recorder:
            result = self.function(*args, **kwargs)
        with contextlib.suppress(RuntimeError):  # then no call of this layout is kept
            keep(self._kept, layout, recorder.recording(result), MOST_LAYOUTS)
        return result

    def plan(self, *args: P.args, **kwargs: P.kwargs) -> Plan[R]:
        """Check the arguments of a call and compile for them; calling the plan then makes that call.

        Raises what the call would.
        """
        return Plan(self.function, inspect.signature(self.function).bind(*args, **kwargs).arguments)


plannable = Plannable  # as a decorator


class Plan(Generic[R]):
    """A call of which only the launches are left.

    ``plan()`` makes the call on the tensors with which the plan was made, and returns what the call would, without
    checks. What the call allocates is allocated once: every ``plan()`` writes into the same results. ``plan(x=other)``
    makes the call with other tensors instead of some arguments, for this time; they must have the same layout. Results
    can be such arguments where the function takes ``out``.

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
        self._given = len(sources)
        self._recording: _Recording | None = None
        self._calls: list[Call] = []
        if any(tensor.is_meta for tensor in sources):
            return  # there is nothing to launch: a call of the plan compiles, as one of the function does
        recorder = _Recorder(sources, launching=False)
        with recorder:
            self._result = function(**self._arguments)
        self._recording = recorder.recording(self._result)
        self._sources = sources
        self._memory = [tensor.detach() for tensor in sources]
        self._pointers = [tensor.data_ptr() for tensor in sources]
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
            for index, tensor in zip(indices, tensors, strict=True):
                wanted, got = _described(self._memory[index], self._pointers[index]), _described(tensor)
                if wanted != got:
                    raise ValueError(f"{name} must be as the plan was made for, {wanted}, not {got}")
                sources[index], pointers[index] = tensor, tensor.data_ptr()
        if _pattern(pointers) != _pattern(self._pointers):
            raise ValueError(f"{' and '.join(others)}: tensors are the same memory as others, or no longer are")
        self._recording.run(self._recording.bind(pointers), pointers, sources)
        return self._recording.result(sources)  # type: ignore[no-any-return]  # as the function returned it

    def _replaceable(self, name: str) -> range:
        indices = self._indices.get(name, range(0))
        if not indices:
            tensors = ", ".join(name for name, indices in self._indices.items() if indices)
            raise ValueError(f"{name} is no tensor of the plan; its tensors are {tensors}")
        return indices


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of one argument: itself, or those of a tuple."""
    if isinstance(value, (tuple, list)):
        return [each for each in value if isinstance(each, torch.Tensor)]
    return [value] if isinstance(value, torch.Tensor) else []


def _described(tensor: torch.Tensor, pointer: int | None = None) -> str:
    """All of a tensor that a launch is made for, but where it is."""
    pointer = tensor.data_ptr() if pointer is None else pointer
    layout = f"{tensor.dtype} {tuple(tensor.shape)}, strides {tensor.stride()}, on {tensor.device}"
    return layout + (f", {pointer % 16} bytes behind a multiple of 16" if pointer % 16 else "")


def _pattern(pointers: Sequence[int]) -> list[int]:
    return [pointers.index(pointer) for pointer in pointers]


def _describe(
    values: Sequence[Any], key: list[Any], sources: list[torch.Tensor], pointers: list[int], depth: int = 0
) -> bool:
    """Add ``values`` to the key; False when they are not all plain values and tensors on a GPU."""
    for value in values:
        kind = type(value)
        if kind in TENSORS:
            if not value.is_cuda:
                return False
            pointer = value.data_ptr()
            key.append((value.shape, value.stride(), value.dtype, value.get_device(), pointer & 15))
            sources.append(value)
            pointers.append(pointer)
        elif kind in PLAIN:
            key.append((kind, value))
        elif kind is tuple and not depth:
            key.append(len(value))
            if not _describe(value, key, sources, pointers, 1):
                return False
        else:
            return False
    return True


class _Recorder:
    """Hears what one run of a function allocates and launches; ``launching``: and launches it."""

    def __init__(self, sources: list[torch.Tensor], *, launching: bool) -> None:
        self.sources, self.launching = sources, launching
        self._given = len(sources)
        self._launches: list[Launch] = []
        self._fault = ""  # why no plan can be made of it
        self._device: int | None = None  # the current one while launching
        self._thread = threading.get_ident()
        self._unexpected = 0  # launches on the GPU that were not made by this recorder

    def __enter__(self) -> None:
        _active.recorder = self
        listen(self._count)

    def __exit__(self, *_: object) -> None:
        ignore(self._count)
        _active.recorder = None

    def _count(self, _: object) -> None:
        self._unexpected += threading.get_ident() == self._thread

    def launch(self, kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> None:
        compiled = None
        if self.launching:
            compiled = kernel[grid](**arguments)
            self._unexpected -= compiled is not None
        elif isinstance(kernel, JITFunction):
            compiled = kernel.warmup(grid=grid, **arguments)
            compiled.run  # noqa: B018  # loads the kernel: now the GPU is the current one
        if compiled is not None:
            device = triton.runtime.driver.active.get_current_device()
            if self._device not in {None, device}:
                self._fault = "launches are on several GPUs"
            self._device = device
        elif isinstance(kernel, JITFunction):  # a hook (triton.knobs.runtime.jit_cache_hook) took it
            self._fault = "a kernel was not compiled"
        self._launches.append(Launch(kernel, grid, {n: self._placed(n, v) for n, v in arguments.items()}, compiled))

    def recording(self, result: object) -> _Recording:
        """What was heard. Raises RuntimeError when that does not say all that a call needs."""
        returned = self._returned(result)
        if self._unexpected:
            self._fault = "a kernel was launched by other means than launch()"
        if self._fault:
            raise RuntimeError(f"no plan can be made: {self._fault}")
        made = [_allocation(tensor) for tensor in self.sources[self._given :]]
        return _Recording(self._launches, made, returned, self._device)

    def _placed(self, name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._place(name, value)
        if isinstance(base := getattr(value, "base", None), torch.Tensor):  # a descriptor, Triton's or Gluon's
            empty = copy.copy(value)
            empty.base = None
            return replace(self._place(name, base), descriptor=empty)
        if not _without_memory(value):
            self._fault = f"{name} is a {type(value).__name__}, which may hold a tensor"
        return value

    def _place(self, name: str, tensor: torch.Tensor) -> Place:
        """Where ``tensor`` is: the source that begins there, or else the only one of which it is a part."""
        pointer = tensor.data_ptr()
        begins = [source.data_ptr() for source in self.sources]
        if pointer in begins:
            index = begins.index(pointer)
        else:
            parts = [
                number for number, source in enumerate(self.sources) if 0 < pointer - begins[number] < _extent(source)
            ]
            if len(parts) != 1:
                self._fault = f"{name} is part of {len(parts)} of the call's tensors, those that it allocated included"
            index = parts[0] if parts else 0
        return Place(index, pointer - begins[index], tuple(tensor.shape), tensor.stride(), tensor.dtype)

    def _returned(self, result: Any) -> Any:
        """The numbers of the tensors that are returned, in the same tuples."""
        if isinstance(result, tuple):
            return tuple(self._returned(each) for each in result)
        numbers = [number for number, source in enumerate(self.sources) if source is result]
        if not numbers and result is not None and not self._fault:
            self._fault = "something is returned that is neither an argument nor was allocated"
        return numbers[0] if numbers else None


def _without_memory(value: Any) -> bool:
    """Whether an argument of a launch is the same for all tensors of one layout."""
    if isinstance(value, tuple):
        return all(map(_without_memory, value))
    return isinstance(value, (*PLAIN, tl.dtype, tl.constexpr, JITFunction))


def _extent(tensor: torch.Tensor) -> int:
    """Bytes from the first element to behind the last one."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return (1 + sum((size - 1) * step for size, step in steps)) * tensor.itemsize if tensor.numel() else 0


def _allocation(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    shape, strides = tuple(tensor.shape), tensor.stride()
    return functools.partial(torch.empty_strided, shape, strides, dtype=tensor.dtype, device=tensor.device)


class _Recording:
    """All that a call launches on ``device`` (None: in the interpreter), apart from where its tensors are."""

    def __init__(
        self, launches: list[Launch], made: list[Callable[[], torch.Tensor]], returned: Any, device: int | None
    ) -> None:
        self.launches, self.made, self.returned = launches, made, returned
        self._device = device
        self._bound: dict[tuple[int, ...], list[Call]] = {}
        self._compiled = device is not None
        if self._compiled:
            driver = triton.runtime.driver.active
            self._current_device, self._current_stream = driver.get_current_device, driver.get_current_stream
            caches = {id(each.kernel): each.kernel.device_caches for each in launches}
            self._caches = [(cache, cache[self._device]) for cache in caches.values()]

    def valid(self) -> bool:
        """Whether Triton still has what it compiled: who replaces a kernel's source empties its caches."""
        return not self._compiled or all(cache.get(self._device) is entry for cache, entry in self._caches)

    def replay(self, sources: list[torch.Tensor], pointers: list[int]) -> Any:
        """The call for ``sources``, which are at ``pointers``: what it returns."""
        for allocate in self.made:
            tensor = allocate()
            sources.append(tensor)
            pointers.append(tensor.data_ptr())
        self.run(self.bind(pointers), pointers, sources)
        return self.result(sources)

    def bind(self, pointers: Sequence[int]) -> list[Call]:
        """The launches for tensors at ``pointers``."""
        if not self._compiled:
            return []
        key = tuple(pointers)
        calls = self._bound.get(key)
        if calls is None:
            calls = [each.call(key) for each in self.launches]
            keep(self._bound, key, calls, MOST_BINDINGS)
        return calls

    def run(self, calls: Sequence[Call], pointers: Sequence[int], sources: Sequence[torch.Tensor]) -> None:
        """Launch ``calls``, which are bound to ``pointers``, those of ``sources``."""
        if not self._compiled:
            for each in self.launches:
                each.interpret(sources)
            return
        device = self._device
        if self._current_device() != device:
            with torch.cuda.device(device):
                self.run(calls, pointers, sources)
            return
        stream = self._current_stream(device)
        if hooked():
            for each in self.launches:
                each.with_hooks(pointers, stream)
            return
        for function, x, y, z, arguments in calls:
            function(x, y, z, stream, *arguments)

    def result(self, sources: Sequence[torch.Tensor]) -> Any:
        """What the call returns."""
        returned = self.returned
        if type(returned) is int:
            return sources[returned]
        return _chosen(returned, sources)


def _chosen(returned: Any, sources: Sequence[torch.Tensor]) -> Any:
    if isinstance(returned, tuple):
        return tuple(_chosen(each, sources) for each in returned)
    return None if returned is None else sources[returned]
