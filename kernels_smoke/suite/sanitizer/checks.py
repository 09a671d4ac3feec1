"""NVIDIA's checkers over the cases of a kernel but the deep ones, at level deep, where they are installed.

The guard regions of the suite see what is written near a tensor; compute-sanitizer's memcheck sees every access that
belongs to no allocation, reads too, and its racecheck accesses to shared memory that no barrier orders.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from kernels_smoke.suite import registry, start
from kernels_smoke.suite.model import Emit

CASES = {"compute-sanitizer memcheck": "memcheck", "compute-sanitizer racecheck": "racecheck"}
SECONDS = 240.0  # for one kernel: some 4 s on an H200, and an import of torch that is several times slower than usual
FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin")
LIMIT = 1000  # findings that are printed
_BAD = {"memcheck": "bad accesses", "racecheck": "unordered accesses to shared memory"}
ERRORS = 86  # the exit code by which the checker says that it found something
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards? displayed")
_RACE = "Race reported between"
_ACCESS = re.compile(r"(\w+) access at (.+\+0x[0-9a-f]+)(?: in (\S+:\d+))?")
HANDS_OVER = "hands over to its warps: "  # then the kernel and FILE:LINE
_HANDED_OVER = re.compile(rf"^{HANDS_OVER}(\w+) (\S+)$", re.MULTILINE)
LAUNCHED = "every case was launched"
NOT_ONE = "this GPU can launch none of the cases: it has no fp8 (e4m3) arithmetic"


def checks(
    emit: Emit, *, kernels: Sequence[str], seed: int, slowness: float = 1.0, skip: Iterable[Sequence[str]] = ()
) -> None:
    """Check each of ``kernels`` by each tool in its own process; a record of kind "case" for each."""
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
        found = _checked(program, CASES[case], name, seed, SECONDS * slowness)
        emit(record | found | {"seconds": time.monotonic() - begun})


def find() -> str:
    """The path of compute-sanitizer, on PATH or where CUDA puts it; "" if there isn't one."""
    places = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    return shutil.which("compute-sanitizer", path=places) or ""


def _checked(sanitizer: str, tool: str, kernel: str, seed: int, seconds: float) -> dict[str, Any]:
    own = registry.from_outside(kernel)
    known = [json.dumps(asdict(own))] if own else []
    program = start.command("suite.sanitizer.program", kernel, str(seed), *known)
    # Without torch's pool every tensor is an allocation, behind whose end nothing may be read.
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(ERRORS), "--print-limit", str(LIMIT), *program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"outcome": "error", "message": f"compute-sanitizer took more than {seconds:.0f} s"}
    return reading(tool, done.stdout + done.stderr, done.returncode)


def reading(tool: str, said: str, status: int) -> dict[str, Any]:
    """The outcome, message and evidence of a run of ``tool`` that printed ``said`` and ended with ``status``.

    Some races do not count (what racecheck calls a race: two threads, one address of shared memory, no barrier):

    - in functions that are not ours, C++ all of them: torch's reductions exchange values within a warp;
    - two writes by one instruction: Triton stores a small tensor from every thread that holds a copy of it, and where
      these have summed in different orders, the copies differ in their last bit (measured on an H200). That an
      iteration of a loop overtakes another would show as a race with the reads in between, too;
    - two accesses by the code with which Triton hands a kernel over to its specialised warps: all threads wait at one
      barrier between a write and a read (``barrier.sync 1`` in the PTX of Triton 3.6 and 3.7), but at instructions of
      different warps, which racecheck does not pair. That code has no statement of the kernel: it bears the line of
      its ``def`` and that of ``warp_specialize``.

    Other races within a kernel with specialised warps are neither passed nor failed: one warpgroup hands data to
    another by a barrier of itself, behind which one thread arrives at an mbarrier for all. racecheck does not follow
    that: it reported kernels in whose PTX each write is ordered so before each read.

    Bad accesses count wherever they are, since ours may have caused them.
    """
    found = next((int(number) for match in _SUMMARY.finditer(said) for number in match.groups() if number), None)
    specialised = dict.fromkeys(kernel for kernel, _ in _HANDED_OVER.findall(said))
    handing_over = {place for _, place in _HANDED_OVER.findall(said)}
    races = [_ACCESS.findall(race) for race in said.split(_RACE)[1:]]
    counted = [accesses for accesses in races if not _is_harmless(accesses, handing_over)]
    harmless = len(races) - len(counted)
    if LAUNCHED in said and status in {0, ERRORS} and found == harmless < LIMIT:
        return {"outcome": "pass", "message": ""}
    if NOT_ONE in said and status == 0:
        return {"outcome": "skip", "message": NOT_ONE}
    evidence = {"compute-sanitizer": said[-2500:]}
    between = {_function(instruction) for accesses in counted for _, instruction, _ in accesses}
    if (
        LAUNCHED in said
        and status == ERRORS
        and found == len(races) < LIMIT
        and between
        and between <= set(specialised)
    ):
        message = f"racecheck does not follow what orders the warps of {', '.join(sorted(between))}"
        return {"outcome": "skip", "message": f"{message}: {len(counted)} races are not decided", "evidence": evidence}
    if status == ERRORS and found:
        message = f"compute-sanitizer found {found - harmless} {_BAD[tool]}"
        return {"outcome": "wrong", "message": message, "evidence": evidence}
    return {"outcome": "error", "message": f"compute-sanitizer ended with exit code {status}", "evidence": evidence}


def _is_harmless(accesses: Sequence[tuple[str, str, str]], handing_over: Collection[str]) -> bool:
    """Of the accesses of one race: (Read or Write, the function and the offset of the instruction in it, FILE:LINE)."""
    functions = [_function(instruction) for _, instruction, _ in accesses]
    return bool(accesses) and (
        all("::" in function for function in functions)
        or {access[:2] for access in accesses} == {("Write", accesses[0][1])}
        or (len(set(functions)) == 1 and all(place in handing_over for _, _, place in accesses))
    )


def _function(instruction: str) -> str:
    """The function of ``NAME+0x2f0``."""
    return instruction.rpartition("+")[0]
