"""Every kernel of kernels_smoke next to eager torch, torch.compile and other people's kernels, in one run.

usage: python benchmarks/kernels.py [--only KERNEL,...] [--output DIR] [--minutes 9] [--device cuda|cpu] [--tiny]

Prints markdown. With ``--output`` the folder gets ``kernels.md``, ``kernels.json`` and ``kernels.svg`` (roofline and
bars). Peers that are not installed, or that fail, are named below the table. ``--device cpu --tiny`` goes through all
of it in Triton's interpreter, where the times mean nothing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison_report import Measurements, document, markdown  # found by the line above
from benchmarks.forked import CONTEXT, Ended, Job, in_turn, messages  # likewise
from kernels_smoke.suite import registry  # likewise
from kernels_smoke.suite.registry import Entry  # likewise
from kernels_smoke.suite.speed.roofline import picture  # likewise

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from benchmarks.comparison import Plan

SEED = 20261120
PATIENCE = 240.0  # seconds of silence: the longest compilations take one
PREPARING = 0.8  # of the time
PACKAGES = ("torch", "triton", "liger-kernel", "fla-core", "helion", "fa3-fwd")
MADE_UP = {"bandwidth": 1e11, "bf16": 1e12, "fp8": 1e12}  # what stands for a calibration without a GPU


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Time every kernel next to eager torch, torch.compile and peers.")
    parser.add_argument("--only", default="", metavar="KERNEL,...")
    parser.add_argument("--output", type=Path, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=9.0, help="what is not timed by then is omitted")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small shapes: a test of this program")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    if options.device == "cpu" and not options.tiny:
        parser.error("--device cpu is for --tiny")
    entries = registry.select(tuple(filter(None, options.only.split(","))))
    results = compared(
        entries, "suite", minutes=options.minutes, device=options.device, tiny=options.tiny, seed=options.seed
    )
    report = markdown(results)
    print(report)
    if options.output:
        write(options.output, results, report)


def compared(
    entries: Sequence[Entry], table: str, *, minutes: float, device: str = "cuda", tiny: bool = False, seed: int = SEED
) -> Measurements:
    """Time the kernels in the shapes of ``table``: "suite", or "helion" for those of Helion's means."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # children compile side by side already
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    start = time.monotonic()
    from benchmarks.comparison import Plan  # imports torch and triton, once for all children

    calibration = _calibration() if device == "cuda" else {**MADE_UP, "name": "no GPU"}
    plan = Plan(
        table=table,
        device=device,
        tiny=tiny,
        seed=seed,
        calibration=calibration,
        prepare_until=start + PREPARING * 60 * minutes,
        time_until=start + 0.95 * 60 * minutes,
    )
    results = Measurements(environment=environment(calibration), calibration=calibration)
    names = [entry.name for entry in entries if registry.load(entry).speeds]
    at_once = len(os.sched_getaffinity(0))
    for first in range(0, len(names), at_once):
        run(names[first : first + at_once], plan, results)
    results.seconds = time.monotonic() - start
    return results


def run(names: Sequence[str], plan: Plan, results: Measurements) -> None:
    """Let a child for each kernel prepare, all at once; then let one after the other time."""
    from benchmarks.comparison import compare  # imported by now

    alone = CONTEXT.RLock()
    jobs = [Job(name, compare, (name, plan, alone)) for name in names]
    for child, message in in_turn(jobs, patience=PATIENCE):
        if isinstance(message, Ended):
            results.ended(child.job.name, message.fault)
        else:
            results.add(message)


def _calibration() -> dict[str, Any]:
    """The rates of this GPU, measured in a child: the parent must not start CUDA. Ends the program when it cannot."""
    found: dict[str, Any] = {}
    for _, message in messages([Job("calibration", _calibrate)], at_once=1, patience=PATIENCE):
        if isinstance(message, Ended):
            if "bandwidth" not in found:
                raise SystemExit(f"the GPU could not be calibrated: {message.fault or found.get('message')}")
        else:
            found.update(message)
    return found


def _calibrate(connection: Connection) -> None:
    import torch  # imported by now

    from kernels_smoke.suite.speed.calibration import calibrate  # imports torch

    calibrate(connection.send)
    connection.send({"name": torch.cuda.get_device_name()})


def environment(calibration: dict[str, Any]) -> dict[str, Any]:
    """What ran where: the versions of everything that was compared, the GPU's name, the day."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {"device": calibration["name"], "date": time.strftime("%Y-%m-%d", time.gmtime()), "versions": versions}


def write(folder: Path, results: Measurements, report: str) -> None:
    """The report, what it was made of, and its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "kernels.md": report,
        "kernels.json": json.dumps(results.as_json(), indent=1) + "\n",
        "kernels.svg": picture(document(results)),
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
