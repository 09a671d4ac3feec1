"""NVIDIA's checkers over the quick cases of a kernel, at level deep, where they are installed.

The guard regions of the suite see what is written near a tensor; compute-sanitizer's memcheck sees every access that
belongs to no allocation, reads too, and its racecheck accesses to shared memory that no barrier orders.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from kernels_smoke.suite import registry, start
from kernels_smoke.suite.foreman import Emit
from kernels_smoke.suite.judge import judge

CASES = {"compute-sanitizer memcheck": "memcheck", "compute-sanitizer racecheck": "racecheck"}
SECONDS = 240.0  # for one kernel: some 4 s on an H200, and an import of torch that is several times slower than usual
FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin")
_BAD = {"memcheck": "bad accesses", "racecheck": "unordered accesses to shared memory"}
ERRORS = 86  # the exit code by which the checker tells that it found something
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards? displayed")


def checks(emit: Emit, *, kernels: Sequence[str], seed: int, skip: Iterable[Sequence[str]] = ()) -> None:
    """Check each of ``kernels`` by each tool in a process of its own; a record of kind "case" for each."""
    done = {(kernel, case) for kernel, case in skip}
    items = [(name, case) for name in kernels for case in CASES if (name, case) not in done]
    emit({"kind": "plan", "items": items})
    program = find()
    for name, case in items:
        emit({"kind": "begin", "kernel": name, "case": case})
        record = {"kind": "case", "kernel": name, "case": case, "outputs": {}, "seconds": 0.0}
        if not program:
            emit(record | {"outcome": "skip", "message": "compute-sanitizer is not installed (it comes with CUDA)"})
            continue
        begun = time.monotonic()
        emit(record | _checked(program, CASES[case], name, seed) | {"seconds": time.monotonic() - begun})


def find() -> str:
    """The path of compute-sanitizer, on PATH or where CUDA puts it; "" when there is none."""
    places = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    return shutil.which("compute-sanitizer", path=places) or ""


def _checked(sanitizer: str, tool: str, kernel: str, seed: int) -> dict[str, Any]:
    program = start.command("suite.sanitizer", kernel, str(seed))
    # Without torch's pool every tensor is an allocation, behind whose end nothing may be read.
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(ERRORS), "--print-limit", "3", *program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"outcome": "error", "message": f"compute-sanitizer took more than {SECONDS:.0f} s"}
    said = done.stdout + done.stderr
    found = next((number for match in _SUMMARY.finditer(said) for number in match.groups() if number), None)
    if found == "0" and done.returncode == 0:
        return {"outcome": "pass", "message": ""}
    evidence = {"compute-sanitizer": said[-2500:]}
    if done.returncode == ERRORS and found:
        return {"outcome": "wrong", "message": f"compute-sanitizer found {found} {_BAD[tool]}", "evidence": evidence}
    return {
        "outcome": "error",
        "message": f"compute-sanitizer ended with exit code {done.returncode}",
        "evidence": evidence,
    }


def main(kernel: str, seed: str) -> int:
    """Run the quick cases of one kernel on the GPU; 1 when one is wrong."""
    subject = registry.load(registry.entry(kernel))
    cases = [case for case in subject.cases if "cuda" in case.where and case.level == "quick"]
    outcomes = [judge(subject, case, device="cuda", seed=int(seed))["outcome"] for case in cases]
    return int(set(outcomes) != {"pass"})


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
