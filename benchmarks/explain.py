"""Measure the cost of hostile logs for ``wheelproof explain``: processor seconds and peak memory.

python benchmarks/explain.py [MIB]    (default: 16)
"""

from __future__ import annotations

import resource
import sys
import time

from wheel_checks.process.child import run
from wheelproof.doctor.explain import explain

UNITS = {
    "blank lines": b"\n",
    "short lines": b"a\n",
    "one line": b"a",
    "colours": b"\x1b[31m",
    "a progress bar": b"50%|####\r",
    "null characters": b"\0",
    "tracebacks": b"Traceback (most recent call last):\n",
    "unfinished JSON": b'{"log":"' + b"[" * 500 + b"\n",
    "workers of Ray": b"(" + b"pid=1" * 1500 + b"\n",
    "NVRM: nouveau": b"NVRM: nouveau" * 150 + b"\n",
    "file names": b"libtorch.so" * 180 + b"\n",
    "downloads of pip": b"  Downloading nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl (594.3 MB)\n",
}


def measure(name: str, size: int) -> str:
    """The row of one log."""
    log = (UNITS[name] * (size // len(UNITS[name]) + 1))[:size]
    start = time.process_time()
    explain(log, "log")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return f"{name:18}{time.process_time() - start:8.2f} s{peak:7} MiB"


def main() -> None:
    """Measure each log in a child."""
    if sys.argv[1:2] == ["--one"]:
        print(measure(sys.argv[2], int(sys.argv[3])))
        return
    size = int(sys.argv[1] if sys.argv[1:] else 16) << 20
    for name in UNITS:
        ended = run([sys.executable, __file__, "--one", name, str(size)], deadline=120)
        print(ended.output.decode().rstrip() or f"{name:18}     more than 120 s", flush=True)


if __name__ == "__main__":
    main()
