"""Threads that share heaps: memory freed by one is used by another."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Twelve threads, one after the other, each of which fills and frees what malloc gives; all live to the end.
SCRIPT = """
import ctypes, sys, threading
from wheelproof.wheels.memory import share_heaps
if sys.argv[1] == "shared":
    assert share_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
addresses = set()
turn, end = threading.Barrier(2), threading.Event()

def work():
    block = libc.malloc(50_000)
    addresses.add(block >> 26)  # heaps of threads are 64 MiB apart
    libc.free(ctypes.c_void_p(block))
    turn.wait()
    end.wait()

threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
    turn.wait()
end.set()
print(len(addresses))
"""


def heaps(mode: str) -> int:
    run = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_threads_share_two_heaps() -> None:
    assert heaps("shared") <= 2 < heaps("own")
