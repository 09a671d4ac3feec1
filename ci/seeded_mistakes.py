"""Measure whether, and how fast, ``ci/develop.py check`` finds mistakes, one at a time in a fresh clone.

    python3 ci/seeded_mistakes.py            # all; needs a committed tree
    python3 ci/seeded_mistakes.py --only 3 17

Exits 0 when every mistake was found. A mistake whose line is no longer there stops the script: choose another.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mistake:
    """One line of a file, changed for the worse."""

    kind: str
    path: str
    right: str
    wrong: str


CHECKS, PROOF, KERNELS = "wheel_checks", "tools/wheelproof", "kernels_smoke"
MISTAKES = (
    Mistake(
        "rule", f"{CHECKS}/rules/wheel/linking.py", "n.status is Status.PRELOAD and", "n.status is Status.PRELOAD or"
    ),
    Mistake("rule", f"{CHECKS}/rules/wheel/record.py", "line=line)", "line=line + 1)"),
    Mistake("rule of the doctor", f"{CHECKS}/rules/host/visibility.py", " not in ", " in "),
    Mistake("format", f"{CHECKS}/formats/zip/end_record.py", "if entries > MAX_ENTRIES", "if entries < MAX_ENTRIES"),
    Mistake("format", f"{CHECKS}/formats/wheel/record.py", " != ", " == "),
    Mistake("fact", f"{CHECKS}/facts/elf/reading.py", "> directory_offset", "< directory_offset"),
    Mistake("fact", f"{CHECKS}/facts/accelerator/signals.py", "len(digits) > 2", "len(digits) > 4"),
    Mistake("source", f"{CHECKS}/sources/simple_index.py", "and not listings[-1]", "and listings[-1]"),
    Mistake("target", f"{CHECKS}/targets/selection.py", "c.version == latest", "c.version != latest"),
    Mistake(
        "probe", f"{PROOF}/doctor/probes/loader.py", "os.path.realpath(text) == real", "os.path.realpath(text) != real"
    ),
    Mistake("doctor", f"{PROOF}/doctor/repair/graph.py", "return bool(more) and all(", "return bool(more) or all("),
    Mistake("command line", f"{PROOF}/cli/diff.py", "<= MANY", "> MANY"),
    Mistake("renderer", f"{CHECKS}/report/junit.py", "seen[name] == 1", "seen[name] == 2"),
    Mistake("pins", f"{PROOF}/pins/documents/conda.py", '("dependencies", "pip")', '("dependencies", "pips")'),
    Mistake("matrix", f"{PROOF}/matrix/cell/steps.py", "0 <= age < keep_for", "0 <= age > keep_for"),
    Mistake("table", f"{CHECKS}/data/products.toml", "old = 101", "old = 102"),
    Mistake(
        "only in a child", f"{PROOF}/doctor/inside/interpreter.py", 'find_spec("pip") is not', 'find_spec("pip") is'
    ),
    Mistake("cases of a kernel", f"{KERNELS}/norm/cases.py", '"/ width + 1e-6"', '"/ width + 1e-5"'),
    Mistake("kernel", f"{KERNELS}/norm/fused_add_rms_norm.py", "scale += 1.0", "scale += 1.1"),
    Mistake("documentation", "docs/how-to/both-architectures.md", "pins rewrite --dry-run", "pins rewrite --dry-runs"),
)


def main() -> int:
    """Seed one mistake after another; 0 when ``check`` found them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="the numbers of some mistakes, from 1")
    parser.add_argument("--logs", type=Path, help="keep what check printed in this folder")
    options = parser.parse_args()
    chosen = [(n, one) for n, one in enumerate(MISTAKES, 1) if not options.only or n in options.only]
    found, seconds = 0, []
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)], check=True)
        subprocess.run([sys.executable, "ci/develop.py", "setup"], cwd=clone, check=True)
        for number, mistake in chosen:
            status, took, log = seed(clone, mistake)
            found += status == 1
            seconds.append(took)
            print(
                f"{number:2}  {mistake.kind:20}{took:6.1f} s  {'found' if status == 1 else 'NOT FOUND'}  {mistake.path}"
            )
            sys.stdout.flush()
            if options.logs:
                options.logs.mkdir(parents=True, exist_ok=True)
                (options.logs / f"{number:02}.log").write_bytes(log)
    print(f"{found} of {len(chosen)} found; median {statistics.median(seconds):.1f} s")
    return 0 if found == len(chosen) else 1


def seed(clone: Path, mistake: Mistake) -> tuple[int, float, bytes]:
    """Make a mistake in the clone: the exit code of ``check``, its seconds, and its output."""
    path = clone / mistake.path
    content = path.read_text(encoding="utf-8")
    if mistake.right not in content:
        raise SystemExit(f"{mistake.path} no longer holds {mistake.right!r}: choose another mistake")
    path.write_text(content.replace(mistake.right, mistake.wrong, 1), encoding="utf-8")
    start = time.monotonic()
    check = [sys.executable, "ci/develop.py", "check", "--base", "HEAD"]
    done = subprocess.run(check, cwd=clone, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    path.write_text(content, encoding="utf-8")
    return done.returncode, time.monotonic() - start, done.stdout


if __name__ == "__main__":
    sys.exit(main())
