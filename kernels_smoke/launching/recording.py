"""Record the allocations and launches of one run of a function, to launch it again on other tensors."""

from __future__ import annotations

import copy
import functools
import operator
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

from kernels_smoke.launching.direct import MOST_BINDINGS, Call, Launch, Place, hooked, ignore, keep, listen

PLAIN = (int, float, bool, str, torch.dtype, type(None))  # arguments without memory


class Active(threading.local):
    """The recorder that listens in this thread."""

    recorder: Recorder | None = None


active = Active()


def launch(kernel: Any, grid: tuple[int, ...], /, **arguments: Any) -> None:
    """``kernel[grid](**arguments)``, of which a plan can be made."""
    if torch.compiler.is_compiling() or active.recorder is None:
        kernel[grid](**arguments)
    else:
        active.recorder.launch(kernel, grid, arguments)


def allocated(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor``, which the function has just allocated: its result, or memory to work in."""
    if not torch.compiler.is_compiling() and active.recorder is not None:
        active.recorder.sources.append(tensor)
    return tensor


class Recorder:
    """Records the allocations and launches of one run of a function; with ``launching``, also launches."""

    def __init__(self, sources: list[torch.Tensor], *, launching: bool) -> None:
        self.sources, self.launching = sources, launching
        self._given = len(sources)
        self._launches: list[Launch] = []
        self._fault = ""  # why no plan can be made of it
        self._device: int | None = None  # the current one while launching
        self._thread = threading.get_ident()
        self._unexpected = 0  # launches on the GPU that were not made by this recorder

    def __enter__(self) -> None:
        active.recorder = self
        self._listening = listen(self._count)

    def __exit__(self, *_: object) -> None:
        ignore(self._count)
        active.recorder = None

    def _count(self, _: object) -> None:
        self._unexpected += threading.get_ident() == self._thread

    def launch(self, kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> None:
        """Note a launch of ``kernel[grid](**arguments)``, and make it or only compile for it."""
        compiled = None
        if self.launching:
            compiled = kernel[grid](**arguments)
            self._unexpected -= self._listening and compiled is not None
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

    def recording(self, result: object) -> Recording:
        """The recording. Raises RuntimeError if it is incomplete for a call."""
        returned = self._returned(result)
        if self._unexpected:
            self._fault = "a kernel was launched by other means than launch()"
        if self._fault:
            raise RuntimeError(f"no plan can be made: {self._fault}")
        made = [_allocation(tensor) for tensor in self.sources[self._given :]]
        return Recording(self._launches, made, returned, self._device)

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
        """The place of ``tensor``: the source that begins there, or else the only one of which it is a part."""
        pointer = tensor.data_ptr()
        begins = [source.data_ptr() for source in self.sources]
        if pointer in begins:
            index = begins.index(pointer)
        else:
            parts = [
                number
                for number, source in enumerate(self.sources)
                if 0 < pointer - begins[number] < extent(source.shape, source.stride(), source.dtype)
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


@functools.lru_cache(maxsize=4096)
def extent(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> int:
    """Bytes from the first element of a tensor to the end of the last one."""
    if 0 in shape:
        return 0
    itemsize: int = dtype.itemsize
    return (1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))) * itemsize


def _allocation(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    shape, strides = tuple(tensor.shape), tensor.stride()
    return functools.partial(torch.empty_strided, shape, strides, dtype=tensor.dtype, device=tensor.device)


class Recording:
    """All that a call launches on ``device`` (None: in the interpreter), apart from where its tensors are."""

    def __init__(
        self, launches: list[Launch], made: list[Callable[[], torch.Tensor]], returned: Any, device: int | None
    ) -> None:
        self.launches, self.made = launches, made
        self.result = _result(returned)  # picks the returned tensors from all
        self._device = device
        self._bound: dict[tuple[int, ...], list[Call]] = {}
        self.compiled = device is not None
        self._caches: list[tuple[Any, Any]] = []
        if self.compiled:
            driver = triton.runtime.driver.active
            self._current_device, self._current_stream = driver.get_current_device, driver.get_current_stream
            kernels = [each.kernel for each in launches if hasattr(each.kernel, "device_caches")]  # since Triton 3.3
            caches = {id(kernel): kernel.device_caches for kernel in kernels}
            self._caches = [(cache, cache[self._device]) for cache in caches.values()]

    def valid(self) -> bool:
        """Whether Triton still has the compiled kernels: replacing a kernel's source empties its caches."""
        for cache, entry in self._caches:  # noqa: SIM110  # `all` would take three times as long, in each call
            if cache.get(self._device) is not entry:
                return False
        return True

    def replay(self, sources: list[torch.Tensor], pointers: list[int]) -> Any:
        """The call for ``sources``, which are at ``pointers``: its result."""
        for allocate in self.made:
            tensor = allocate()
            sources.append(tensor)
            pointers.append(tensor.data_ptr())
        self.run(self.bind(pointers), pointers, sources)
        return self.result(sources)

    def bind(self, pointers: Sequence[int]) -> list[Call]:
        """The launches for tensors at ``pointers``."""
        if not self.compiled:
            return []
        key = tuple(pointers)
        calls = self._bound.get(key)
        if calls is None:
            calls = [each.call(key) for each in self.launches]
            keep(self._bound, key, calls, MOST_BINDINGS)
        return calls

    def run(self, calls: Sequence[Call], pointers: Sequence[int], sources: Sequence[torch.Tensor]) -> None:
        """Launch ``calls``, which are bound to the ``pointers`` of ``sources``."""
        if not self.compiled:
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


def _result(returned: Any) -> Callable[[Sequence[torch.Tensor]], Any]:
    """A function that picks the ``returned`` tensors from all: a number, None, or tuples of these."""
    if isinstance(returned, tuple) and (len(returned) < 2 or not all(type(each) is int for each in returned)):
        parts = [_result(each) for each in returned]
        return lambda sources: tuple(part(sources) for part in parts)
    if returned is None:
        return lambda _: None
    return operator.itemgetter(*returned) if isinstance(returned, tuple) else operator.itemgetter(returned)
