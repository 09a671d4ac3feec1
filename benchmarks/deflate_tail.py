"""Measure the cost of inflating the tail of a library, and all of it.

usage: python benchmarks/deflate_tail.py FILE      (any large file, best a shared library)

Deflates FILE as zip tools do, then inflates tails of several lengths alone. Prints seconds (including the check of
certain bytes), starts tried, bytes of output, and how many of them, and of the last 64 KiB, are certain. Certain bytes
are compared with FILE.
"""

from __future__ import annotations

import re
import sys
import time
import zlib
from pathlib import Path

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.deflate_tail import inflate_tail

TAILS = (64, 128, 256, 512, 1024)  # KiB
LAST = 64 * 1024


def main() -> None:
    """Measure and print the table."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    data = Path(sys.argv[1]).read_bytes()
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    start = time.perf_counter()
    zlib.decompress(packed, -zlib.MAX_WBITS)
    print(f"all of it: {len(packed):,} bytes inflate to {len(data):,} in {time.perf_counter() - start:.3f} s\n")
    print(f"{'tail, KiB':>10}{'seconds':>10}{'starts':>8}{'bytes out':>12}{'certain':>9}{'of the last 64 KiB':>20}")
    for kilobytes in TAILS:
        start = time.perf_counter()
        try:
            tail = inflate_tail(packed[-kilobytes * 1024 :], len(data), margin=1024)
            tail.certain(len(data) - 1, 1)
        except FormatError as error:
            print(f"{kilobytes:10}  {error}")
            continue
        seconds = time.perf_counter() - start
        runs = (slice(*run.span()) for run in re.finditer(rb"\0+", tail.unknown))
        wrong = sum(data[tail.offset :][run] != tail.data[run] for run in runs)
        if wrong:
            sys.exit(f"{wrong} runs of bytes that were called certain are wrong")
        certain = tail.unknown.count(0) / max(1, len(tail.data))
        last = tail.unknown[-LAST:].count(0) / len(tail.unknown[-LAST:])
        print(f"{kilobytes:10}{seconds:10.3f}{tail.attempts:8}{len(tail.data):12,}{certain:9.1%}{last:20.1%}")


if __name__ == "__main__":
    main()
