"""Sustained load: matrix products one after another, their results compared bit for bit, and how their rate falls."""

import time
from collections.abc import Callable
from typing import Any

import torch

from kernels_smoke.suite.correctness.judge import same_bits
from kernels_smoke.suite.model import Emit
from kernels_smoke.suite.probes.answer import Answer, record
from kernels_smoke.suite.probes.gpu import HEALTH
from kernels_smoke.suite.speed.calibration import MATRIX, monitor
from kernels_smoke.suite.speed.gpu_state import Monitor

PER_LOOK = 1.0  # seconds between two comparisons of results
BATCH = 64  # products that are queued at once: 0.1 s of an H200
MOST_LOOKS = 600  # readings that are kept


def soak(emit: Emit, *, seconds: float, size: int = MATRIX, device: str = "cuda") -> None:
    """Multiply for ``seconds``; one record of kind "soak": rates at the beginning, at the end and the lowest, in
    operations a second, how many results were ``wrong`` of how many that were ``compared``, and the GPU's states; and a
    probe.
    """
    gpu = monitor() if device == "cuda" else Monitor()
    generator = torch.Generator(device)
    generator.manual_seed(0)
    a, b = (torch.randn(size, size, generator=generator, device=device).to(torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    wanted = torch.mm(a, b.t(), out=torch.empty_like(a)).clone()
    wait = torch.cuda.synchronize if device == "cuda" else _nothing
    wait()
    before, wrong, begun = gpu.read(), 0, time.monotonic()
    looks: list[tuple[float, dict[str, Any]]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or not looks:
        looks.append(_look(lambda: torch.mm(a, b.t(), out=out), size, wait, gpu))
        wrong += not same_bits(out, wanted)
        out.fill_(torch.nan)
        emit({"kind": "alive"})
    counts = {"wrong": wrong, "compared": len(looks)}
    emit({"kind": "soak", "asked_seconds": seconds, **summary(looks), **counts, "before": before})
    answer = Answer("pass", f"{len(looks)} results under {seconds:g} s of load are equal, bit for bit")
    if wrong:
        answer = Answer("fail", f"{wrong} of {len(looks)} results under {seconds:g} s of load are wrong", {}, HEALTH)
    emit(record("soak", answer, time.monotonic() - begun))


def _nothing() -> None:
    pass


def _look(
    multiply: Callable[[], object], size: int, wait: Callable[[], object], gpu: Monitor
) -> tuple[float, dict[str, Any]]:
    """Operations a second over some ``PER_LOOK`` seconds, and the state of the GPU while it multiplies."""
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < PER_LOOK or not count:
        for _ in range(BATCH):
            multiply()
        count += BATCH
        state = gpu.read()  # of the GPU at work: what was queued takes longer than this
        wait()
    return 2 * size**3 * count / (time.monotonic() - begun), state


def summary(looks: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Of readings one after another: rates at both ends (the median of a tenth of them), the lowest, the last state.

    ``held_down_by`` are all reasons for which the clocks were held down, the most frequent first; ``fall`` is the part
    of the first rate that was lost.
    """
    tenth = max(1, len(looks) // 10)
    rates = [rate for rate, _ in looks]
    first, last = sorted(rates[:tenth])[tenth // 2], sorted(rates[-tenth:])[tenth // 2]
    reasons = [reason for _, state in looks for reason in state.get("held_down_by", [])]
    by_count = sorted(dict.fromkeys(reasons), key=reasons.count, reverse=True)
    known = [state["temperature_celsius"] for _, state in looks if "temperature_celsius" in state]
    return {
        "first": first,
        "last": last,
        "lowest": min(rates),
        "fall": round(1 - last / first, 4),
        "held_down_by": by_count,
        "hottest_celsius": max(known, default=None),
        "after": looks[-1][1],
        "rates": rates[:: max(1, len(rates) // MOST_LOOKS)],
    }
