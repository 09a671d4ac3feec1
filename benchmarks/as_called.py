"""Measure the cost of a call in a program: the wall time of 1,000 calls back to back over 1,000.

In three ways: a plain call, a plan (of ours), and calls captured in a CUDA graph. All calls use the same tensors, so
small ones are in the L2 cache: times over rotated inputs are the GPU's alone.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.launching.plan import Plannable
from kernels_smoke.suite.model import Kernel
from kernels_smoke.suite.speed.timing import Call, InputSet

CALLS = 1000
CAPTURED = 100  # calls in one graph, which is replayed until all calls are made
MOST_SECONDS = 0.1  # fewer calls are made where 1,000 would take longer
ROUNDS = 3  # of which the fastest counts: another process may have the CPU


def plain_and_plan(kernel: Kernel, module: ModuleType, inputs: InputSet) -> tuple[Call, Call | None]:
    """The call of the public function itself, and a plan for it; None if the function makes none.

    ``Kernel.launch`` calls a stand-in for the module, whose functions return their call.
    """

    class Caller:
        def __init__(self, of: Callable[[Any], Any]) -> None:
            self._of = of

        def __getattr__(self, name: str) -> Any:
            return self._of(getattr(module, name))

    def called(by: Callable[[Any], Any]) -> Any:
        return kernel.launch(Caller(by), inputs.inputs, inputs.outputs)  # type: ignore[arg-type]  # as the module here

    def deferred(function: Any) -> Any:
        return functools.partial(functools.partial, function)

    def planned(function: Any) -> Any:
        return function.plan

    call = called(deferred)
    if not isinstance(call, functools.partial):  # its launch does more than to call one function
        return functools.partial(kernel.launch, module, inputs.inputs, inputs.outputs), None
    return call, called(planned) if isinstance(call.func, Plannable) else None


def microseconds(call: Call, *, device: str = "cuda", calls: int = CALLS) -> float:
    """Wall time of one of ``calls`` back to back, the time that the GPU takes for them included."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    call()
    once = _wall(call, 1, wait)
    count = max(min(calls, int(MOST_SECONDS / max(once, 1e-9))), 1)
    return 1e6 * min(_wall(call, count, wait) for _ in range(ROUNDS)) / count


def in_graph(call: Call) -> float:
    """The same of calls captured in a CUDA graph. Raises RuntimeError when it cannot be captured."""
    call()
    torch.cuda.synchronize()
    once = _wall(call, 1, torch.cuda.synchronize)
    captured = max(min(CAPTURED, int(MOST_SECONDS / max(once, 1e-9))), 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(captured):
            call()
    return microseconds(graph.replay, calls=CALLS // captured) / captured


def _wall(call: Call, count: int, wait: Call) -> float:
    """Seconds of ``count`` calls, from the first to the end of their launches."""
    wait()
    begun = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return time.perf_counter() - begun
