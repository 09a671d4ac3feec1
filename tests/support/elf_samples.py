"""ELF files to try the readers on: real ones of this host, and built ones of several machines."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.support.elf import AARCH64, I386, PPC, S390, X86_64, Elf, Symbol

MAX_SIZE = 6_000_000  # bytes; pyelftools takes seconds for the symbols of larger files

TORCH_LIKE = Elf(
    machine=AARCH64,
    alignment=0x10000,
    soname="libtorch_cuda.so",
    needed=("libc10.so", "libcudart.so.13", "libc.so.6"),
    rpath="$ORIGIN:$ORIGIN/../../nvidia/cu13/lib",
    needs={"libc.so.6": ("GLIBC_2.17", "?GLIBC_2.34"), "libcudart.so.13": ("libcudart.so.13",)},
    definitions=("libtorch_cuda.so", "TORCH_1", "TORCH_2<TORCH_1"),
    symbols=(
        Symbol("memcpy", defined=False, library="libc.so.6", version="GLIBC_2.17"),
        Symbol("_ITM_registerTMCloneTable", defined=False, binding=2, kind=0),
        Symbol("at_add", version="TORCH_2"),
        Symbol("plain", kind=1),
    ),
    build_id=bytes(range(20)),
    contents={".nv_fatbin": bytes(4096), "__nv_relfatbin": bytes(64), ".nvFatBinSegment": bytes(24)},
    moved=True,
    gap=2_000_000,
)


LIBRARY = Elf(
    soname="libx.so.1",
    needed=("libc.so.6", "libm.so.6"),
    rpath="$ORIGIN/../y/lib:/build/tree",
    runpath="$ORIGIN",
    flags=0x1A,
    flags_1=0x9,
    needs={"libc.so.6": ("GLIBC_2.17", "?GLIBC_2.34"), "libm.so.6": ("GLIBC_2.29",)},
    definitions=("libx.so.1", "V1", "V2<V1"),
    symbols=(
        Symbol("puts", defined=False, library="libc.so.6", version="GLIBC_2.17"),
        Symbol("weak", defined=False, binding=2, kind=0),
        Symbol("one", version="V1"),
        Symbol("table", version="V2", kind=1),
        Symbol("plain"),
    ),
    build_id=bytes(range(20)),
    contents={".nv_fatbin": bytes(24), "__nv_relfatbin": bytes(8), ".nvFatBinSegment": bytes(24)},
    symbol_table=True,
)
BUILT = {
    "aarch64": Elf(
        machine=AARCH64, alignment=0x10000, needed=("libc.so.6",), build_id=b"\1" * 20, moved=True, gap=5000
    ),
    "x86_64": LIBRARY,
    "x86_64 program": Elf(machine=X86_64, kind=2, interpreter="/lib64/ld-linux-x86-64.so.2", needed=("libc.so.6",)),
    "i686": replace(LIBRARY, machine=I386, bits=32),
    "s390x": replace(LIBRARY, machine=S390, order="big"),
    "ppc": replace(LIBRARY, machine=PPC, order="big", bits=32, hash="sysv", moved=True),
}


@cache
def real_files() -> tuple[Path, ...]:
    """This interpreter, libraries that it loads, its extension modules, and modules of other linkers from wheels."""
    # Its own process, so that every worker of a test run finds the same ones.
    look = "import ctypes, ssl; print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-I", "-c", look], capture_output=True, check=True, text=True).stdout
    mapped = set(re.findall(r"(/\S+\.so\S*)$", maps, re.MULTILINE))
    wheels = sorted(Path(sysconfig.get_path("platlib")).glob("[!_]*/*.so"), key=lambda path: (len(path.name), path))
    files = dict.fromkeys(path.resolve() for path in [Path(sys.executable), *map(Path, sorted(mapped)), *wheels[:8]])
    return tuple(path for path in files if path.stat().st_size <= MAX_SIZE)


class Ranges:
    """Serves ranges of ``data`` and counts the cost."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.rounds = self.bytes = 0

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.rounds += 1
        self.bytes += sum(length for _, length in ranges)
        assert all(offset + length <= len(self.data) for offset, length in ranges)
        return [self.data[offset : offset + length] for offset, length in ranges]
