"""The time of one call on the GPU: in a CUDA graph, over input sets that no cache holds, the median of replays.

A graph, because launching costs some 14 microseconds of CPU, more than many a kernel takes. Several input sets, because
what was just written is in the L2 cache (50 MB on an H200, 126 MB on a GB200) and is read faster than memory is.
"""

import contextlib
import functools
import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Inputs, Kernel, Tensors

ROTATION = 256 * 2**20  # bytes that all input sets have together, at least
MOST_SETS = 64
GRAPH = 2000.0  # microseconds that one replay should take: its own start of some 5 is lost in that
BUDGET = 15000.0  # microseconds that all replays take together
REPLAYS = (5, 50)  # at least, at most
MOST_CALLS = 1024  # in one graph

Call = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """What was measured: the median over ``replays`` of a graph (or loop) of ``calls`` calls, per call.

    ``spread``: the middle half of the replays is within this part of the median. ``note`` says why no graph was used.
    """

    microseconds: float
    spread: float
    calls: int
    replays: int
    note: str = ""


@dataclass(frozen=True)
class InputSet:
    """What one call of a kernel needs."""

    inputs: Inputs
    outputs: Tensors


def input_sets(
    kernel: Kernel, shape: Mapping[str, Any], *, device: str, seed: int, most: int = MOST_SETS
) -> list[InputSet]:
    """As many sets of inputs and outputs as have ``ROTATION`` bytes together; at least one, ``most`` at most.

    The first is drawn, the others are copies: equal values in other memory.
    """
    draw = Draw(seed, device)
    inputs = kernel.inputs(draw, **shape)
    outputs = draw.outputs(kernel.outputs(inputs))
    size = sum(value.nbytes for value in (*inputs.values(), *outputs.values()) if isinstance(value, torch.Tensor))
    count = min(max(-(-ROTATION // max(size, 1)), 1), most)
    return [InputSet(inputs, outputs), *(InputSet(copied(inputs), copied(outputs)) for _ in range(count - 1))]


def fresh(inputs: InputSet, device: str) -> InputSet:
    """A set with the same inputs and outputs full of poison, all in their own memory."""
    draw = Draw(0, device)
    outputs = draw.outputs(
        {name: (tuple(out.shape), out.dtype, _row_stride(out)) for name, out in inputs.outputs.items()}
    )
    return InputSet(copied(inputs.inputs), outputs)


def _row_stride(tensor: torch.Tensor) -> int:
    return tensor.stride(-2) if tensor.ndim > 1 and tensor.numel() else 0


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values with tensors in their own memory, in which they lie with the same strides."""
    return {name: _copy(value) if isinstance(value, torch.Tensor) else value for name, value in values.items()}


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor)


def measure(calls: Sequence[Call], *, device: str = "cuda", while_running: Call = lambda: None) -> Timing:
    """The time of one of ``calls``, which do the same to different inputs, and are run in turn.

    They are called once first, so that what is compiled, loaded or allocated once is not timed. ``while_running`` is
    called while the GPU works on the replays. When a call cannot be captured in a graph, it is launched one by one, and
    the note says so. What a call raises comes through. ``device`` "cpu" reads the clock instead: it exercises the code
    around a measurement where there is no GPU, and has no meaning as a speed.
    """
    if device != "cuda":
        return _on_the_cpu(calls, while_running)
    torch.cuda.synchronize()
    with torch.cuda.stream(_side_stream()):
        for call in calls:
            call()
        (once,) = replayed(lambda: _run(calls), 1)
        rounds = min(max(round(GRAPH / max(once, 1.0)), 1), max(MOST_CALLS // len(calls), 1))
        several = [*calls] * rounds
        note = ""
        try:
            replay: Call = _captured(several).replay
        except RuntimeError as error:  # CUDA's and torch's ways to refuse; what is wrong otherwise is raised again
            note = f"timed without a CUDA graph, which refused it: {str(error).strip().splitlines()[0]}"
            torch.cuda.synchronize()
            replay = lambda: _run(several)  # noqa: E731  # the other branch has a bound method
        (graph,) = replayed(replay, 1)
        replays = min(max(round(BUDGET / max(graph, 1.0)), REPLAYS[0]), REPLAYS[1])
        return _summary(replayed(replay, replays, while_running), len(several), note)


def replayed(replay: Call, count: int, while_running: Call = lambda: None) -> list[float]:
    """Microseconds of each of ``count`` runs of ``replay``, queued without a pause, by CUDA events."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    marks[0].record()
    for mark in marks[1:]:
        replay()
        mark.record()
    while_running()
    torch.cuda.synchronize()
    return [1000.0 * before.elapsed_time(after) for before, after in itertools.pairwise(marks)]


@functools.cache
def _side_stream() -> torch.cuda.Stream:
    """A stream for all measurements: none can be captured on the default one, and torch keeps memory for each."""
    return torch.cuda.Stream()


def _captured(calls: Sequence[Call]) -> torch.cuda.CUDAGraph:
    """A graph of ``calls`` on the current stream. torch.cuda.graph would empty torch's cache of memory each time."""
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    try:
        _run(calls)
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the capture is void, and only the first error says why
            graph.capture_end()
        raise
    graph.capture_end()
    return graph


def _run(calls: Sequence[Call]) -> None:
    for call in calls:
        call()


def _on_the_cpu(calls: Sequence[Call], while_running: Call) -> Timing:
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - start))
    while_running()
    return _summary(times, 1, "timed by the clock, without a GPU")


def _summary(times: Sequence[float], calls: int, note: str) -> Timing:
    median = statistics.median(times)
    low, _, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else (median,) * 3
    spread = (high - low) / median if median else 0.0
    return Timing(median / calls, spread, calls, len(times), note)
