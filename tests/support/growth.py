"""What work costs, counted in ways that a busy machine does not change: calls of functions, and the peak of memory."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

_CALLS = 2_000  # and
_BYTES = 256 << 10  # what may come on top, whatever the size: imports, caches, tables


@dataclass(frozen=True)
class Cost:
    """Calls of functions, those in C included, and the peak of memory in bytes beyond what was held before."""

    calls: int
    peak: int


def cost_of(run: Callable[[], object]) -> Cost:
    """What ``run`` costs. It is called twice: calls are counted apart from memory, since counting takes some."""
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    tracemalloc.start()
    try:
        run()
        return Cost(calls, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def assert_at_most_doubles(make: Callable[[int], T], run: Callable[[T], object], size: int) -> Cost:
    """Twice the input costs at most twice as much, and a constant. Returns what ``make(2 * size)`` costs."""
    small, large = (cost_of(lambda made=made: run(made)) for made in (make(size), make(2 * size)))  # type: ignore[misc]  # a lambda with a default
    assert large.calls <= 2 * small.calls + _CALLS, (small, large)
    assert large.peak <= 2 * small.peak + _BYTES, (small, large)
    return large
