"""Autotuning of Triton functions: heard of while it lasts, and omitted where nothing can be timed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils._python_dispatch import _disable_current_modes
from triton.runtime.autotuner import Autotuner


@contextlib.contextmanager
def autotuned(alive: Callable[[], None], *, on_gpu: bool) -> Iterator[None]:
    """While this is active, autotuning is heard of: ``alive`` is called before each configuration is timed.

    Where there is no GPU nothing can be timed, and the first configuration is taken.
    """
    before = Autotuner._bench  # noqa: SLF001  # its one place where a configuration is timed

    def bench(self: Any, *args: Any, **kwargs: Any) -> Any:
        alive()
        if not on_gpu:
            return [0.0, 0.0, 0.0]
        with _disable_current_modes():  # its buffers, a quarter of a gigabyte for each configuration, need no guards
            return before(self, *args, **kwargs)

    Autotuner._bench = bench  # noqa: SLF001  # as above
    try:
        yield
    finally:
        Autotuner._bench = before  # noqa: SLF001  # as above
