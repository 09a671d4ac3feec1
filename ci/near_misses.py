"""Asks `stack` about packages that are known to install and import, each alone, and prints what does not pass.

usage: python ci/near_misses.py [NAME...] [--answers FILE] [--jobs N] [--command COMMAND]

The packages are those of ci/near_misses.toml, the targets those of TARGETS, on Python 3.12. A FAIL is a defect of ours
unless a real install and import shows it (ci/real_import.py), which the table notes; at most one question in twenty may
stay undecided. Answers are added to FILE as lines of JSON, and those that it has are not asked again.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import shlex
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_suffix(".toml")
TARGETS = {"x86_64": "H100", "aarch64": "GB200"}
SECONDS = 600  # for one answer
MOST_UNDECIDED = 0.05
VERDICTS = {0: "PASS", 1: "FAIL", 3: "UNDECIDED"}


def main() -> int:
    """Ask what is not answered yet; 1 if a package fails without reason, or too many are undecided."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages (default: those of the table)")
    parser.add_argument("--answers", type=Path, default=Path(os.devnull), help="the file of answers")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--command", default=f"{sys.executable} -m wheelproof", help="the command that is asked")
    options = parser.parse_args()
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    names = options.names or [*table["popular"], *table["accelerator"]]
    text = options.answers.read_text(encoding="utf-8") if options.answers.is_file() else ""
    known = {(row["package"], row["machine"]): row for row in map(json.loads, text.splitlines())}
    pairs = [(name, machine) for name in names for machine in TARGETS]
    with ThreadPoolExecutor(options.jobs) as pool, options.answers.open("a", encoding="utf-8") as out:
        for row in pool.map(lambda pair: ask(options.command, *pair), [pair for pair in pairs if pair not in known]):
            known[row["package"], row["machine"]] = row
            out.write(json.dumps(row) + "\n")
            out.flush()
    rows = [known[pair] for pair in pairs]
    for row in rows:
        row["known"] = table["fails"].get(row["package"], {}).get(row["machine"], "")
        if row["verdict"] != "PASS":
            reason = f" (right: {row['known']})" if row["known"] and row["verdict"] == "FAIL" else ""
            print(f"{row['verdict']:9} {row['package']} {row['machine']}: {' | '.join(row['reasons'])}{reason}")
    counts = collections.Counter(row["verdict"] for row in rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    undecided = len(rows) - counts["PASS"] - counts["FAIL"]
    is_wrong = any(row["verdict"] == ("PASS" if row["known"] else "FAIL") for row in rows)
    return int(is_wrong or undecided > MOST_UNDECIDED * len(rows))


def ask(command: str, package: str, machine: str) -> dict[str, Any]:
    """The verdict about one package on one machine, with the findings that decide it."""
    run = [*shlex.split(command), "stack", package, "--platform", machine, "--gpu", TARGETS[machine]]
    row: dict[str, Any] = {"package": package, "machine": machine}
    try:
        done = subprocess.run(
            [*run, "--python", "3.12", "--format", "json"],
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        answers = json.loads(done.stdout)["summary"]["answers"]
    except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
        return row | {"verdict": "no answer", "reasons": [repr(error)[:300]]}
    reasons = [f"{' '.join(answer['decided_by'])} {answer['text']}".strip() for answer in answers]
    return row | {"verdict": VERDICTS.get(done.returncode, "no answer"), "reasons": reasons}


if __name__ == "__main__":
    sys.exit(main())
