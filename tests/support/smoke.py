"""Reports of the suite of kernels, as it writes them, and interpreters that pretend to run it.

document(cases=[case("fused_add_rms_norm")], probes=[probe("torch")])
parsed(document(...))
python = fake_interpreter(tmp_path, prints(document(...)))       # a script that --python can name
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wheel_checks.facts.kernels.document import parse_smoke_document
from wheel_checks.facts.kernels.facts import SmokeDocument

H200 = {
    "index": 0,
    "name": "NVIDIA H200",
    "target": "sm_90",
    "memory_bytes": 150_754_820_096,
    "multiprocessors": 132,
    "shared_memory_bytes": 232_448,
    "clock_mhz": 1980,
    "memory_clock_mhz": 3201,
    "uuid": "GPU-0f9c2d6e-0000-0000-0000-000000000000",
}
ENVIRONMENT = {
    "python": "3.12.3",
    "executable": "/opt/venv/bin/python",
    "machine": "x86_64",
    "torch": {"version": "2.11.0+cu130", "cuda": "13.0", "path": "/opt/venv/torch/__init__.py"},
    "triton": {"version": "3.6.0", "path": "/opt/venv/triton/__init__.py", "ptxas": "13.0"},
    "driver": {"version": "580.159.04", "cuda": "13.0", "library": "/usr/lib/x86_64-linux-gnu/libcuda.so.1"},
    "gpus": [H200],
}
CALIBRATION = {"bandwidth": 4.27e12, "bf16": 746e12, "fp8": 1536e12}


def document(**fields: Any) -> dict[str, Any]:
    """A run that passes, with these fields instead of its own."""
    return {
        "schema": "kernels_smoke/1",
        "mode": "run",
        "device": "cuda",
        "level": "full",
        "seed": 123,
        "started": "2026-11-20T09:00:00Z",
        "seconds": 9.1,
        "verdict": "pass",
        "message": "1 kernel correct in 1 case",
        "environment": ENVIRONMENT,
        "calibration": None,
        "probes": [],
        "cases": [],
        "speeds": [],
        "compiled": [],
        "mutants": [],
    } | fields


def probe(name: str, outcome: str = "pass", message: str = "", **fields: Any) -> dict[str, Any]:
    record = {"kind": "probe", "name": name, "outcome": outcome, "message": message, "evidence": {}, "fix": []}
    return record | {"seconds": 0.1} | fields


def case(kernel: str, name: str = "plain", outcome: str = "pass", message: str = "", **fields: Any) -> dict[str, Any]:
    outputs = {"out": {"error": 1.6e-3, "tolerance": 2.5e-3, "worst_row": 2e-3, "message": ""}}
    record = {"kind": "case", "kernel": kernel, "case": name, "outcome": outcome, "message": message}
    return record | {"outputs": outputs, "evidence": {}, "seconds": 0.02} | fields


def speed(
    kernel: str, name: str = "16384x4096", outcome: str = "pass", message: str = "", **fields: Any
) -> dict[str, Any]:
    """A timed run that takes 1.04 of the floor of 125 us."""
    record = {"kind": "speed", "kernel": kernel, "case": name, "outcome": outcome, "message": message}
    times = {"microseconds": 130.0, "floor_microseconds": 125.0, "peer_microseconds": None, "versus": "", "ratio": 1.04}
    work = {"bytes": 536_870_912, "flops": 0, "unit": "bf16", "bar": 1.1, "bar_met": True}
    return record | times | work | {"evidence": {}, "seconds": 0.2} | fields


def compiled(
    kernel: str, target: str = "sm_90", outcome: str = "pass", faults: Sequence[dict[str, Any]] = (), **fields: Any
) -> dict[str, Any]:
    record = {"kind": "compiled", "kernel": kernel, "target": target, "case": "plain", "function": f"_{kernel}"}
    code = {"registers": 64, "spill_bytes": 0, "shared_bytes": 49_152, "stack_bytes": 0, "instructions": ["HGMMA"]}
    rest = {"outcome": outcome, "faults": list(faults), "warps": 8, "machine_code_bytes": 9_000, "seconds": 0.4}
    return record | code | rest | fields


def mutant(kernel: str, name: str, outcome: str = "caught", message: str = "", **fields: Any) -> dict[str, Any]:
    """A mutant that was made automatically."""
    record = {"kind": "mutant", "kernel": kernel, "mutant": name, "outcome": outcome, "message": message}
    return record | {"caught_by": "plain" if outcome == "caught" else "", "automatic": True} | fields


def fault(kind: str, message: str, *fixes: Any) -> dict[str, Any]:
    return {"fault": kind, "message": message, "fix": list(fixes)}


def parsed(values: dict[str, Any]) -> SmokeDocument:
    return parse_smoke_document(json.dumps(values).encode())


def fake_interpreter(folder: Path, script: str) -> str:
    """An executable that is called as an interpreter is, and runs ``script``: ``output`` is where the report goes,
    ``options`` is what the suite was requested.
    """
    path = folder / "python-of-the-test"
    prelude = f"""\
        #!{sys.executable}
        import json, os, pathlib, signal, subprocess, sys, time
        options = sys.argv[5:]  # -c BOOTSTRAP FOLDER MODULE
        output = pathlib.Path(options[options.index("--output") + 1])
    """
    path.write_text(textwrap.dedent(prelude) + textwrap.dedent(script))
    path.chmod(0o755)
    return str(path)


def prints(values: dict[str, Any], status: int = 0) -> str:
    """The script of an interpreter that writes this report."""
    return f"output.write_text({json.dumps(values)!r})\nsys.exit({status})\n"
