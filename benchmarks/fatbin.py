"""How fast GPU code is listed: our scanner, on a synthetic section and next to cuobjdump on a real file.

    python benchmarks/fatbin.py [LIBRARY [CUOBJDUMP]]

Without CUOBJDUMP, an installed triton's is used, else the one on PATH. Both read the same file in one run; the file is
read once before, so that neither waits for the disk. Our time includes reading the section and finding it in the ELF
file; each time is the best of three.
"""

from __future__ import annotations

import importlib.util
import io
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile

from wheel_checks.formats.gpu.fatbin import SECTIONS, FatbinScanner

CHUNK = 1 << 20  # size of the parts from ByteSource.stream
FILES, TARGETS = 444, (80, 90, 100, 110, 120)  # as in libtorch_cuda.so of torch 2.11.0 for aarch64
PAYLOAD = 115_000  # bytes of each image there, on average


def synthetic() -> bytes:
    """A section like torch's: 444 containers of five images, 256 MB."""
    size = PAYLOAD // 8 * 8
    entries = b"".join(
        struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, size, size - 3, 0, 8, 1, sm, 0, 0, 0x8011, 0, 4 * size)
        + bytes(size)
        for sm in TARGETS
    )
    return (struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries) * FILES


def scan(chunks: Iterator[bytes]) -> int:
    """How many entries a section has, fed in chunks."""
    scanner = FatbinScanner()
    for chunk in chunks:
        scanner.feed(chunk)
    return sum(scanner.finish().counts.values())


def in_chunks(file: io.BufferedIOBase, offset: int, size: int) -> Iterator[bytes]:
    """A range of a file."""
    file.seek(offset)
    while size > 0:
        chunk = file.read(min(CHUNK, size))
        size -= len(chunk)
        yield chunk


def list_library(library: Path) -> tuple[int, int]:
    """How many entries a library has, and how many bytes its sections of GPU code have."""
    entries = size = 0
    with library.open("rb") as file:
        elf = ELFFile(file)
        for section in filter(None, map(elf.get_section_by_name, SECTIONS)):
            entries += scan(in_chunks(file, section["sh_offset"], section["sh_size"]))
            size += section["sh_size"]
    return entries, size


def best_of_three(call: Callable[[], object]) -> float:
    """The shortest time of three, in seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def find_cuobjdump() -> str | None:
    """The cuobjdump of an installed triton, or that on PATH."""
    triton = importlib.util.find_spec("triton")
    folders = triton.submodule_search_locations if triton else None
    bundled = [Path(folder, "backends/nvidia/bin/cuobjdump") for folder in folders or ()]
    return next((str(path) for path in bundled if path.exists()), shutil.which("cuobjdump"))


def main() -> None:
    """Measure and print."""
    section = synthetic()
    file = io.BytesIO(section)
    seconds = best_of_three(lambda: scan(in_chunks(file, 0, len(section))))
    entries = FILES * len(TARGETS)
    print(f"synthetic section: {len(section):,} bytes, {entries} entries: {len(section) / seconds / 1e9:.1f} GB/s")
    if len(sys.argv) < 2:
        return
    library = Path(sys.argv[1])
    cuobjdump = sys.argv[2] if len(sys.argv) > 2 else find_cuobjdump()
    library.read_bytes()
    entries, size = list_library(library)
    ours = best_of_three(lambda: list_library(library))
    print(f"{library.name}: {size:,} bytes of GPU code, {entries} entries\n")
    print(f"{'this scanner':24}{ours:10.3f} s   {size / ours / 1e9:.1f} GB/s")
    if cuobjdump is None:
        print("no cuobjdump was found to compare with")
        return
    command = [cuobjdump, "--list-elf", str(library)]
    theirs = best_of_three(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    print(f"{'cuobjdump --list-elf':24}{theirs:10.3f} s   {theirs / ours:.0f} times as long")


if __name__ == "__main__":
    main()
