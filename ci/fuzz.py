"""Run the readers of bytes under a coverage-guided fuzzer: no crash, no hang, bounded memory.

usage: python ci/fuzz.py [--seconds N] [READER ...]     (atheris must be installed; it is not one of our dependencies)

Each reader runs in its own process for N seconds (default 60), with a limit of 10 s for one input and of 600 MB of
memory, the interpreter included. Anything but FormatError is a failure; its input is kept in the current folder. Real
files of this host and of tests/data are the seeds. Prints the number of inputs for each reader.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
READERS = (
    "elf",
    "fatbin",
    "deflate_tail",
    "zip",
    "metadata",
    "record",
    "wheel_file",
    "version_file",
    "ld_cache",
)
LARGEST_SEED = 200_000  # bytes


def reader(name: str) -> Callable[[bytes], object]:
    """The function under test. Imported here so that only the child instruments it."""
    from wheel_checks.formats.elf import bytes as elf_bytes
    from wheel_checks.formats.elf import file as elf
    from wheel_checks.formats.elf import ld_cache
    from wheel_checks.formats.gpu import fatbin
    from wheel_checks.formats.wheel import core_metadata, record, version_file, wheel_file
    from wheel_checks.formats.zip import deflate_tail
    from wheel_checks.formats.zip import directory as zip_directory
    from wheel_checks.formats.zip import end_record as zip_end_record

    def zip_archive(data: bytes) -> None:
        end = zip_end_record.find_end_record(data, len(data))
        piece = data[end.directory_offset : end.directory_offset + end.directory_size]
        zip_directory.overlaps(zip_directory.read_directory(piece, end)[0], end.directory_offset)

    readers: dict[str, Callable[[bytes], object]] = {
        "elf": lambda data: elf.read_elf(elf_bytes.WholeFile(data), frozenset(elf.Part)),
        "fatbin": fatbin.read_fatbins,
        "deflate_tail": lambda data: deflate_tail.inflate_tail(data, 10 * len(data)),
        "zip": zip_archive,
        "metadata": core_metadata.parse_core_metadata,
        "record": record.parse_record,
        "wheel_file": wheel_file.parse_wheel_file,
        "version_file": lambda data: version_file.parse_version_file("demo/version.py", data),
        "ld_cache": ld_cache.parse_ld_cache,
    }
    return readers[name]


def seeds(name: str) -> list[bytes]:
    """Real inputs to start with."""
    libraries = [
        path.read_bytes() for path in Path("/usr/lib").rglob("*.so*") if path.is_file() and path.stat().st_size < 80_000
    ]
    fat = [path.read_bytes() for path in (ROOT / "tests/data/fatbin").glob("*") if path.suffix not in (".md", ".toml")]
    found = {
        "elf": libraries[:40],
        "fatbin": fat,
        "deflate_tail": [zlib.compress(data, wbits=-15)[-60_000:] for data in libraries[:20]],
        "zip": [path.read_bytes() for path in (ROOT / "dist").glob("*.whl")],
        "ld_cache": [Path("/etc/ld.so.cache").read_bytes()],
    }
    own = ROOT / "tests/data"
    return [
        data[:LARGEST_SEED]
        for data in found.get(name, [b"Metadata-Version: 2.4\nName: a\nVersion: 1\n", own.name.encode()])
    ]


def fuzz(name: str, arguments: list[str]) -> None:
    """Run the fuzzer in this process; it ends the process."""
    import atheris  # type: ignore[import-untyped]  # only the child needs it; not one of our dependencies

    sys.path.insert(0, str(ROOT))
    with atheris.instrument_imports(include=["wheel_checks"]):
        read = reader(name)
        from wheel_checks.errors import FormatError
        from wheel_checks.formats.elf.bytes import BytesNeeded

    def one_input(data: bytes) -> None:
        with contextlib.suppress(FormatError, BytesNeeded):
            read(data)

    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


def main() -> int:
    """Run the readers one after the other; 1 when one of them failed."""
    if sys.argv[1:2] == ["--child"]:
        fuzz(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description="Fuzz the readers of bytes.")
    parser.add_argument("readers", nargs="*", metavar="READER", help=", ".join(READERS))
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    failed = False
    for name in options.readers or READERS:
        with tempfile.TemporaryDirectory() as corpus:
            for number, data in enumerate(seeds(name)):
                Path(corpus, str(number)).write_bytes(data)
            limits = [
                f"-max_total_time={options.seconds}",
                "-timeout=10",
                "-rss_limit_mb=600",
                f"-max_len={LARGEST_SEED}",
            ]
            command = [sys.executable, __file__, "--child", name, *limits, corpus]
            child = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        runs = re.search(r"Done (\d+) runs", child.stderr)
        print(
            f"{name:14}{int(runs[1]) if runs else 0:>12,} inputs   {'ok' if child.returncode == 0 else 'FAILED'}",
            flush=True,
        )
        if child.returncode:
            failed = True
            print(child.stderr[-3000:])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
