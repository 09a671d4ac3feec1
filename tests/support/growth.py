"""What work costs, counted in ways that a busy machine does not change: steps of Python, and the peak of memory."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_STEPS = 10_000  # and
_BYTES = 256 << 10  # what may come on top, whatever the size: caches, tables


@dataclass(frozen=True)
class Cost:
    """Instructions of Python's byte code, and the peak of memory in bytes beyond what was held before."""

    steps: int
    peak: int


def cost_of(run: Callable[[], object]) -> Cost:
    """What ``run`` costs. It is called three times: first for what is imported and cached, and then to count each."""
    steps = 0

    def count(_: FrameType, event: str, __: Any) -> Any:
        nonlocal steps
        steps += event == "opcode"
        return count

    def enter(frame: FrameType, _: str, __: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return count

    run()
    before = sys.gettrace()
    sys.settrace(enter)
    try:
        run()
    finally:
        sys.settrace(before)
    tracemalloc.start()
    try:
        run()
        return Cost(steps, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def assert_at_most_doubles(make: Callable[[int], T], run: Callable[[T], object], size: int) -> Cost:
    """Twice the input costs at most twice as much, and a constant. Returns what ``make(2 * size)`` costs."""
    small, large = (cost_of(lambda made=made: run(made)) for made in (make(size), make(2 * size)))  # type: ignore[misc]  # a lambda with a default
    assert large.steps <= 2 * small.steps + _STEPS, (small, large)
    assert large.peak <= 2 * small.peak + _BYTES, (small, large)
    return large
