"""Measures the false alarms of the SEC rules on the packages that the project names.

usage: python ci/security_noise.py [--depth quick|links|full] [--largest BYTES] [--out FILE]

Judges the latest wheel of each package (``ci/corpora.py``) for x86_64 and aarch64 and Python 3.12, with all that these
require, as an installer's and as a publisher's. Prints each error and warning, then how many wheels were judged, how
many bytes were read, and how long it took; ``--out`` writes every finding as a line of JSON. Whether a finding is false
is for a person to say: docs/limits.md has the last result. Exits 1 for an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from packaging.utils import canonicalize_name

from ci.corpora import newest_wheels
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Audience, Outcome, Subject
from wheel_checks.runner import run_rules

MACHINES = ("x86_64", "aarch64")
READERS = (Audience.INSTALLER, Audience.PUBLISHER)


def main() -> int:
    """Judge the wheels and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", choices=list(Depth), default=Depth.LINKS, type=Depth)
    parser.add_argument("--largest", type=int, default=0, help="read larger wheels at depth quick (default: none)")
    parser.add_argument("--out", type=Path, help="write each finding as a line of JSON to this file")
    options = parser.parse_args()
    started = time.monotonic()
    wheels = whole = size = 0
    projects: set[str] = set()
    counts: Counter[str] = Counter()
    found: list[dict[str, Any]] = []
    for facts in newest_wheels(MACHINES, options.depth, largest=options.largest):
        wheels, size = wheels + 1, size + facts.bytes_read
        whole += bool(facts.content_sha256)
        projects.add(canonicalize_name(facts.file_name.partition("-")[0]))
        for row in findings(facts):
            found.append(row)
            counts.update(f"{severity} for the {reader}" for reader, severity in row["severities"].items())
            if set(row["severities"].values()) != {"note"}:
                print(f"{row['rule']} {row['severities']} {row['wheel']}: {row['message']}", flush=True)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    seconds = time.monotonic() - started
    read = f"{wheels} wheels of {len(projects)} projects, {whole} of them whole, {size:,} bytes, {seconds:.0f} s"
    print(f"{read}, {dict(sorted(counts.items()))}")
    return 1 if any(severity.startswith("error") for severity in counts) else 0


def findings(facts: WheelFacts) -> list[dict[str, Any]]:
    """The findings of SEC rules in a wheel, and undecided ones as "undecided", for both kinds of reader."""
    results = run_rules(select_rules("wheel", ("SEC",)), facts, Expectations())
    subject = Subject(facts.file_name, "wheel", results=results)
    readings = {reader.value: subject.read_by(reader).results for reader in READERS}
    rows = []
    for number, result in enumerate(results):
        if result.outcome in (Outcome.PASS, Outcome.SKIP):
            continue
        severities = {
            reader: "undecided" if result.outcome is Outcome.ERROR else reading[number].severity.value
            for reader, reading in readings.items()
        }
        row = {"wheel": facts.file_name, "rule": result.rule, "severities": severities, "message": result.message}
        rows.append({**row, "evidence": [f"{one.label}: {one.value}" for one in result.evidence]})
    return rows


if __name__ == "__main__":
    sys.exit(main())
