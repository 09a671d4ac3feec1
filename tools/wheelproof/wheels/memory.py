"""Keeps a run with many threads and large, short-lived buffers within its bound of memory."""

import ctypes
import sys

_M_ARENA_MAX = -8  # malloc.h of glibc, see mallopt(3)


def share_heaps(arenas: int = 2) -> bool:
    """Let all threads share this many heaps of glibc; False where the C library is another.

    By default each thread gets its own, which keeps what was freed: reading the ELF files of a release, of which
    Python holds 150 MB at most, then takes 550 MB. Two heaps cost no time, since Python runs one thread at a time.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, arenas))
    except (OSError, AttributeError):  # musl has no mallopt
        return False
