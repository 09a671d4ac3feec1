"""Count findings of archive rules in real wheels: ``python ci/archive_noise.py [--full BYTES]``.

The latest wheel of each package that the project names, and of all requirements, is read by ranges at depth quick; the
latest and the oldest of at most ``--full`` bytes are read in full, since wheel builders have changed over the years.
The findings of each wheel and rule are printed in a line, with their readers: each is a false alarm until checked.
Exits with 1 for an error that an installer reads, as ``wheelproof verify`` would.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from packaging.utils import canonicalize_name

from ci.corpora import newest_wheels
from wheel_checks.catalogue import select_rules
from wheel_checks.errors import WheelproofError
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.reading import Request, read_wheel
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.model import Audience, Outcome, Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex

RULES = [f"WHL{number:03}" for number in (*range(1, 8), *range(9, 21), 101, 106, 107, 120, 125)]


def smallest_read_whole(names: Sequence[str], most: int, jobs: int = 6) -> Iterator[WheelFacts]:
    """The latest and the oldest wheel of at most ``most`` bytes of each package, read at depth full."""
    with HttpClient(None) as client, ThreadPoolExecutor(jobs) as pool:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))

        def read(name: str) -> list[WheelFacts]:
            try:
                listed = [file for file in index.files(name).files if _is_small_wheel(file, most)]
                return [_read(client, file) for file in [*listed[:1], *listed[1:][-1:]]]
            except WheelproofError as error:
                print(f"{name}: {error}", file=sys.stderr)
                return []

        for found in pool.map(read, names):
            yield from found


def _is_small_wheel(file: IndexFile, most: int) -> bool:
    return file.file_name.endswith(".whl") and file.size is not None and file.size <= most


def _read(client: HttpClient, file: IndexFile) -> WheelFacts:
    source = client.open(file.url)
    try:
        return read_wheel(source, Request(file.file_name, listing=file, depth=Depth.FULL))
    finally:
        source.close()


def main() -> int:
    """Read, judge, and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--full", type=int, default=2_000_000, help="read wheels up to this size whole")
    options = parser.parse_args()
    chosen = select_rules("wheel", RULES)
    names: set[str] = set()
    counts: Counter[str] = Counter()
    for depth in ("quick", "full"):
        begun, count, size, writers = time.monotonic(), 0, 0, Counter[str]()
        quick = depth == "quick"
        wheels = newest_wheels(("x86_64", "aarch64")) if quick else smallest_read_whole(sorted(names), options.full)
        for wheel in wheels:
            count, size = count + 1, size + wheel.bytes_read
            names.add(canonicalize_name(wheel.file_name.partition("-")[0]))
            if not isinstance(wheel.wheel_file, Unavailable):
                writers[wheel.wheel_file.generator.partition(" ")[0]] += 1
            subject = Subject(wheel.file_name, "wheel", results=run_rules(chosen, wheel, Expectations()))
            for (reader, severity, rule), messages in sorted(findings(subject).items()):
                counts[f"{severity} for the {reader}"] += 1
                more = f" (and {len(messages) - 1:,} more)" if len(messages) > 1 else ""
                print(f"{severity} for the {reader} {rule} {wheel.file_name}: {messages[0]}{more}", flush=True)
        seconds = time.monotonic() - begun
        read = f"{count} wheels of {len(names)} packages, {size:,} bytes, {seconds:.0f} s"
        print(f"depth {depth}: {read}; {dict(writers.most_common())}", flush=True)
    print(f"wheels by rule: {dict(sorted(counts.items()))}")
    return int(any(name == "error for the installer" for name in counts))


def findings(subject: Subject) -> dict[tuple[str, str, str], list[str]]:
    """The messages by reader, severity and rule; messages for installers are listed only with them."""
    found: dict[tuple[str, str, str], list[str]] = {}
    as_installer, as_publisher = subject.read_by(Audience.INSTALLER), subject.read_by(Audience.PUBLISHER)
    for mine, theirs in zip(as_installer.results, as_publisher.results, strict=True):
        if mine.outcome in (Outcome.FAIL, Outcome.ERROR):
            reader, result = ("installer", mine) if as_installer.concerns_reader(mine) else ("publisher", theirs)
            found.setdefault((reader, str(result.severity), result.rule), []).append(result.message)
    return found


if __name__ == "__main__":
    sys.exit(main())
