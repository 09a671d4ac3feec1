"""What a verdict costs, beside what it costs to fetch and unpack the same wheel.

usage: python benchmarks/verify.py [REQUIREMENT] [PLATFORM] [PYTHON]     (default: torch==2.11.0 aarch64 3.12)

Prints bytes, requests and seconds of `wheelproof verify` with an empty and with a warm cache, and those of the peer:
`pip download --no-deps`, then unpacking with Python's zipfile. Ratios compare figures of this one run; machines are
noisy and networks more so, so nothing is asserted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path


def timed(command: list[str]) -> tuple[float, str]:
    """Wall seconds of a process, start included, and its standard output. Exits when it fails to run."""
    start = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return time.perf_counter() - start, done.stdout


def verify(requirement: str, platform: str, python: str, cache: Path) -> tuple[float, int, int]:
    """Seconds, bytes and requests of one verdict."""
    command = [sys.executable, "-m", "wheelproof", "verify", requirement, "--platform", platform, "--python", python]
    seconds, output = timed([*command, "--format", "json", "--cache-dir", str(cache)])
    summary = json.loads(output)["summary"]
    return seconds, summary["bytes_read"], summary["requests"]


def download(requirement: str, platform: str, python: str, folder: Path) -> tuple[float, float, int]:
    """Seconds to download, seconds to unpack, bytes. pip needs every platform tag by name."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "-q"]
    command += ["--python-version", python, "-d", str(folder), requirement]
    for minor in range(17, 40):
        command += ["--platform", f"manylinux_2_{minor}_{platform}"]
    fetched, _ = timed([*command, "--platform", f"manylinux2014_{platform}"])
    (wheel,) = folder.glob("*.whl")
    start = time.perf_counter()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return fetched, time.perf_counter() - start, wheel.stat().st_size


def main() -> None:
    """Run both and print the table."""
    requirement, platform, python = (sys.argv[1:] + ["torch==2.11.0", "aarch64", "3.12"][len(sys.argv) - 1 :])[:3]
    with tempfile.TemporaryDirectory() as scratch:
        cold = verify(requirement, platform, python, Path(scratch, "cache"))
        warm = verify(requirement, platform, python, Path(scratch, "cache"))
        folder = Path(scratch, "wheel")
        folder.mkdir()
        fetched, unpacked, size = download(requirement, platform, python, folder)
    peer = fetched + unpacked
    print(f"{requirement} for {platform}, Python {python}\n")
    print(f"{'':34}{'seconds':>9}{'bytes':>15}{'requests':>10}")
    for label, (seconds, read, requests) in (("verify, empty cache", cold), ("verify, warm cache", warm)):
        print(f"{label:34}{seconds:9.2f}{read:15,}{requests:10}")
    print(f"{'pip download, then unzip':34}{peer:9.2f}{size:15,}{'':>10}   ({fetched:.2f} + {unpacked:.2f} s)")
    print(
        f"\npeer / verify with an empty cache: {peer / cold[0]:.0f} times the seconds, {size / cold[1]:.0f} the bytes"
    )
    print(f"peer / verify with a warm cache:   {peer / warm[0]:.0f} times the seconds")


if __name__ == "__main__":
    main()
