"""SIGINT and SIGTERM: when they may interrupt, and as what."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

TERMINATED = 128 + signal.SIGTERM
_of_this_thread = threading.local()


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """While this is active, no handler of a signal is changed: in a call of the library they are the caller's."""
    before = getattr(_of_this_thread, "is_left_alone", False)
    _of_this_thread.is_left_alone = True
    try:
        yield
    finally:
        _of_this_thread.is_left_alone = before


def _may_handle() -> bool:
    """Only the main thread can, and of a program that did not call us as a library."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and not getattr(_of_this_thread, "is_left_alone", False)


@contextlib.contextmanager
def terminated_as(error: BaseException) -> Iterator[None]:
    """While this is active, the first SIGTERM raises ``error``, and no other one disturbs the clean-up.

    It does nothing in other threads than the main one, and where SIGTERM is ignored or handled already.
    """
    if not _may_handle() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
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
    if not _may_handle():
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
