"""SIGINT and SIGTERM: when they may interrupt, and as what."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

TERMINATED = 128 + signal.SIGTERM


@contextlib.contextmanager
def terminated_as(error: BaseException) -> Iterator[None]:
    """While this is active, the first SIGTERM raises ``error``, and no other one disturbs the clean-up.

    It does nothing in other threads than the main one, and where SIGTERM is ignored or handled already.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return

    def leave(_number: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise error

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Have an interrupt wait while a child starts: between its start and its registration nothing would end it.

    A blocked signal would stay blocked in the child; a handler does not.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)
