"""Keeps a run with many threads and large, short-lived buffers within its bound of memory."""

from __future__ import annotations

import ctypes
import sys

_M_ARENA_MAX = -8  # malloc.h of glibc, see mallopt(3)


def share_heaps(arenas: int = 2) -> bool:
    """Let all threads share this many heaps of glibc; False if the C library is another.

    By default each thread has its own heap, which keeps freed memory: reading the ELF files of a release then takes 550
    MB, of which Python uses 150 MB. Two heaps cost no time, since Python runs one thread at a time.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, arenas))
    except (OSError, AttributeError):  # musl has no mallopt
        return False
