"""What moves data to and from a GPU, between two, and what a launch costs: rates, one GPU at a time. And its memory.

No bar holds them, since hosts differ in their CPUs and slots. The report has them, so that nodes can be compared.
"""

import functools
import importlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import LEVELS, Emit, Kernel
from kernels_smoke.suite.probes.answer import Answer, record
from kernels_smoke.suite.probes.gpu import HEALTH
from kernels_smoke.suite.speed.timing import Call, replayed

COPIED = 256 << 20  # bytes
ROUNDS = 5
CHUNK = 1 << 27  # numbers of eight bytes: what is allocated and compared at once
SPARED = 4 << 30  # bytes that a test of memory leaves free
SHARED = 0.25  # of memory that is that of the host, too
# Every bit is 0 and 1, next to neighbours that differ and to neighbours that do not; then each number is its place.
PATTERNS = (0x5555555555555555, -0x5555555555555556, 0, -1)
LAUNCHES = 200
LAUNCHING = 0.02  # seconds that the launches of one kernel take at most


def rates(emit: Emit, *, share: float, kernels: Sequence[str], seed: int) -> None:
    """Emit one record of kind "rates", and a probe of ``share`` of the memory that is free.

    Rates are bytes a second; ``launch_microseconds`` is the time that Python takes for one call of each of ``kernels``.
    """
    start = time.monotonic()
    found: dict[str, Any] = dict(_copies("cuda"))
    emit({"kind": "alive"})
    found["launch_microseconds"] = {name: round(value, 2) for name, value in _launches(emit, kernels, seed, "cuda")}
    emit({"kind": "rates", **found, "seconds": time.monotonic() - start})
    begun = time.monotonic()
    free, _ = torch.cuda.mem_get_info()
    if getattr(torch.cuda.get_device_properties(0), "is_integrated", False):
        share = min(share, SHARED)
    answer = memory(int(min(share * free, free - SPARED)), "cuda")
    emit(record("memory_pattern", answer, time.monotonic() - begun))


def _copies(device: str) -> Iterator[tuple[str, float]]:
    host = torch.zeros(COPIED, dtype=torch.uint8, pin_memory=device == "cuda")
    there, elsewhere = (torch.empty(COPIED, dtype=torch.uint8, device=device) for _ in range(2))
    yield "host_to_device", _rate(lambda: there.copy_(host, non_blocking=True))
    yield "device_to_host", _rate(lambda: host.copy_(there, non_blocking=True))
    yield "device_to_device", _rate(lambda: elsewhere.copy_(there))


def _rate(copy: Call) -> float:
    """Bytes a second that ``copy`` moves: those of its source, by the median of a few."""
    replayed(copy, 2)
    return COPIED / statistics.median(replayed(copy, ROUNDS)) * 1e6


def _launches(emit: Emit, kernels: Sequence[str], seed: int, device: str) -> Iterator[tuple[str, float]]:
    """For each kernel the microseconds of the CPU for one call of its public function, on its first small case."""
    for name in kernels:
        emit({"kind": "alive"})
        kernel = registry.load(registry.entry(name))
        yield name, 1e6 * seconds_of_launch(kernel, seed, device)


def seconds_of_launch(kernel: Kernel, seed: int, device: str) -> float:
    """Seconds of one call of ``kernel``, queued among others, without waiting for its result."""
    here = [case for case in kernel.cases if ("cuda" if device == "cuda" else "interpret") in case.where]
    case = min(here, key=lambda case: LEVELS.index(case.level))
    draw = Draw(seed, device)
    inputs = kernel.inputs(draw, **case.shape)
    outputs = draw.outputs(kernel.outputs(inputs))
    launch = functools.partial(kernel.launch, importlib.import_module(kernel.module), inputs, outputs)
    _wait(launch, device)
    begun, count = time.perf_counter(), 0
    while count < LAUNCHES and (not count or time.perf_counter() - begun < LAUNCHING):
        launch()
        count += 1
    passed = time.perf_counter() - begun
    _wait(launch, device)
    return passed / count


def _wait(launch: Callable[[], object], device: str) -> None:
    launch()  # what is compiled or loaded once is not what a launch costs
    if device == "cuda":
        torch.cuda.synchronize()


def memory(size: int, device: str, chunk: int = CHUNK) -> Answer:
    """Write patterns into ``size`` bytes, all of them before any is read again, and compare."""
    chunks = []
    for _ in range(max(size, 0) // (8 * chunk)):
        try:
            chunks.append(torch.empty(chunk, dtype=torch.int64, device=device))
        except torch.cuda.OutOfMemoryError:  # someone else took it meanwhile
            break
    if not chunks:
        return Answer("skip", "too little memory is free for a test of it")
    tested = f"{len(chunks) * 8 * chunk >> 20:,} MiB"
    for pattern in (*PATTERNS, None):
        for number, each in enumerate(chunks):
            _write(each, pattern, number * chunk)
        for number, each in enumerate(chunks):
            if fault := _fault(each, pattern, number * chunk):
                message = f"memory does not hold what is written to it: {fault}"
                return Answer("fail", message, {"tested": tested}, HEALTH)
    return Answer("pass", f"{tested} of memory hold {len(PATTERNS) + 1} patterns", {"tested": tested})


def _write(numbers: torch.Tensor, pattern: int | None, first: int) -> None:
    if pattern is None:
        torch.arange(first, first + len(numbers), out=numbers)
    else:
        numbers.fill_(pattern)


def _fault(numbers: torch.Tensor, pattern: int | None, first: int) -> str:
    wanted: Any = pattern
    if pattern is None:
        wanted = torch.arange(first, first + len(numbers), device=numbers.device)
    wrong = numbers != wanted
    count = int(wrong.sum())
    if not count:
        return ""
    place = int(wrong.nonzero()[0, 0])
    expected = first + place if pattern is None else pattern
    bits = (int(numbers[place]) ^ expected) & (2**64 - 1)
    return f"{count} numbers of 8 bytes differ, the first {8 * (first + place):,} bytes into it, by the bits {bits:#x}"


def peers(emit: Emit) -> None:
    """Copy between every two GPUs that this process sees, and compare; a probe with the rate of each pair."""
    start = time.monotonic()
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[: torch.cuda.device_count()]
    found: dict[str, float] = {}
    faults, without = [], []
    numbers = [torch.arange(COPIED // 8, device=f"cuda:{index}").add_(index) for index in range(len(names))]
    for source in range(len(names)):
        emit({"kind": "alive"})
        for target in range(len(names)):
            if source == target:
                continue
            pair = f"{names[source]} to {names[target]}"
            there = torch.zeros_like(numbers[target])
            with torch.cuda.device(source):
                found[pair] = _rate(functools.partial(there.copy_, numbers[source]))
            torch.cuda.synchronize(target)
            if not torch.equal(there, numbers[target] + (source - target)):
                faults.append(pair)
            if not torch.cuda.can_device_access_peer(source, target):
                without.append(pair)
    slowest = min(found, key=lambda pair: found[pair])
    evidence = {"slowest": f"{slowest}: {found[slowest] / 1e9:.1f} GB/s"}
    if without:
        evidence["through the host, for want of peer access"] = f"{len(without)} of {len(found)} pairs"
    message = f"copies between {len(names)} GPUs, {found[slowest] / 1e9:.1f} GB/s or more"
    answer = Answer("pass", message, evidence, rates=found)
    if faults:
        answer = Answer("fail", f"copies between GPUs changed data: {', '.join(faults)}", evidence, HEALTH)
    emit(record("peers", answer, time.monotonic() - start))
