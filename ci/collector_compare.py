"""The collector against the doctor on this host: the same causes from its file, in how much time.

    python ci/collector_compare.py --python /opt/env                       # the environment that has torch
    python ci/collector_compare.py --python /opt/env --by /usr/bin/python3 --by python3.8

Each state of the machine is made by variables alone. ``--by`` names the Pythons that run the collector; by default it
is the one that runs this script. The exit code is 1 where a file gives another diagnosis than the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STATES: Mapping[str, Mapping[str, str]] = {
    "as it is": {},
    "all GPUs hidden": {"CUDA_VISIBLE_DEVICES": ""},
    "a GPU that is not present": {"CUDA_VISIBLE_DEVICES": "99"},
    "a cache that cannot be written": {"TRITON_CACHE_DIR": "/proc/cache"},
    "no C compiler": {"CC": "/nowhere/cc"},
    "another Python's home": {"PYTHONHOME": "/nowhere"},
}
COMPARED = ("root", "confidence", "consequences", "others", "unexplained", "harmless")


def main() -> int:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="the environment that has torch, or its interpreter")
    parser.add_argument("--by", action="append", help="a Python that runs the collector (repeatable)")
    arguments = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        program, facts = Path(folder, "collect.py"), Path(folder, "facts.json")
        program.write_text(_run([*_wheelproof(), "--collector"], {}).stdout, encoding="utf-8")
        print("| state | the doctor there | the collector by | its file | seconds, doctor and collector |")
        print("| --- | --- | --- | --- | --- |", flush=True)
        for state, variables in STATES.items():
            there, doctor_seconds = _diagnosis(["--python", arguments.python], variables)
            for python in arguments.by or [sys.executable]:
                started = time.perf_counter()
                ended = _run([python, str(program), "--python", arguments.python], variables, clean=True)
                seconds = time.perf_counter() - started
                facts.write_text(ended.stdout, encoding="utf-8")
                here, _ = _diagnosis(["--facts", str(facts)], {})
                same = here == there
                different += not same
                cells = [state, _shown(there), python, "the same" if same else _shown(here)]
                print(f"| {' | '.join(cells)} | {doctor_seconds:.1f}, {seconds:.1f} |", flush=True)
                if ended.returncode or not same:
                    print(ended.stderr or json.dumps({"there": there, "here": here}), file=sys.stderr)
    return 1 if different else 0


def _wheelproof() -> list[str]:
    return [sys.executable, "-m", "wheelproof", "doctor"]


def _diagnosis(options: list[str], variables: Mapping[str, str]) -> tuple[dict[str, Any], float]:
    """The verdict and the causes, and the seconds. Variables that would harm our own Python are the child's alone."""
    started = time.perf_counter()
    ended = _run([*_wheelproof(), "--format", "json", *options], variables)
    seconds = time.perf_counter() - started
    if not ended.stdout.startswith("{"):
        return {"status": ended.returncode, "said": ended.stderr.strip()[-300:]}, seconds
    facts = json.loads(ended.stdout)["subjects"][0]["facts"]
    return {"status": ended.returncode, **{name: facts[name] for name in COMPARED}}, seconds


def _run(command: list[str], variables: Mapping[str, str], *, clean: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command with these variables; PYTHONHOME keeps a Python from starting, and is given only to -E."""
    if "PYTHONHOME" in variables:
        command = [command[0], "-E", *command[1:]]
    kept = {name: value for name, value in os.environ.items() if not clean or not name.startswith("PYTHON")}
    return subprocess.run(
        command, env={**kept, **variables}, cwd=ROOT, capture_output=True, text=True, check=False, errors="replace"
    )


def _shown(found: Mapping[str, Any]) -> str:
    verdict = {0: "PASS", 1: "FAIL", 3: "UNDECIDED"}.get(found["status"], f"exit code {found['status']}")
    causes = [found.get("root") or "", *found.get("others", ()), *found.get("unexplained", ())]
    return " ".join([verdict, *filter(None, causes)])


if __name__ == "__main__":
    sys.exit(main())
