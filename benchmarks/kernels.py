"""Every kernel of kernels_smoke next to eager torch, torch.compile and other people's kernels, in one run.

usage: python benchmarks/kernels.py [--only KERNEL,...] [--output DIR] [--minutes 9] [--at-once N]
                                    [--device cuda|cpu] [--tiny]
       python benchmarks/kernels.py --merge FILE.json ... [--output DIR]

Prints markdown. With ``--output`` the folder gets ``kernels.md``, ``kernels.json`` and ``kernels.svg`` (roofline and
bars), each time that a shape was timed, so that an interrupted run keeps its measurements. Peers that are not
installed, or that fail, are named below the table. Every run times the control, too, to compare runs. ``--device cpu
--tiny`` goes through all of it in Triton's interpreter, where the times mean nothing.

``--merge`` makes one report of several runs, and of ``seeds.json`` files of ``benchmarks/seeds.py``; it needs no torch.
It names each run's calibration and the control's time in it, and says which of the goals in ``goals.toml`` are met.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison_report import (  # found by the line above
    CONTROL,
    Measurements,
    document,
    markdown,
    mean_table,
)
from benchmarks.forked import OVER, Ended, Job, in_turn, messages  # likewise
from benchmarks.goals import goals_table  # likewise
from benchmarks.gpu_lock import Gpu  # likewise
from benchmarks.merging import merged, runs_table  # likewise
from benchmarks.roofline import picture  # likewise
from kernels_smoke.suite import registry  # likewise
from kernels_smoke.suite.registry import Entry  # likewise

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SEED = 20261120
TIMEOUT = 240.0  # seconds of silence: the longest compilations take one
RESERVE = 0.95  # of the time; later shapes are omitted
MOST_AT_ONCE = 16  # children: each has its inputs on the GPU
SHAPES = 4  # of a kernel that a child prepares; compiling and importing Inductor take long
PACKAGES = ("torch", "triton", "liger-kernel", "fla-core", "helion", "fa3-fwd")
MADE_UP: dict[str, Any] = {"bandwidth": 1e11, "bf16": 1e12, "fp8": 1e12, "name": "no GPU", "target": ""}

Keep = Callable[[Measurements], None]


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Time every kernel next to eager torch, torch.compile and peers.")
    parser.add_argument("--only", default="", metavar="KERNEL,...")
    parser.add_argument("--output", type=Path, metavar="DIR")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE.json", help="report these runs; time nothing")
    parser.add_argument("--minutes", type=float, default=9.0, help="what is not timed by then is omitted")
    parser.add_argument("--at-once", type=int, default=0, metavar="N", help="children (default: a CPU each, up to 16)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small shapes: a test of this program")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    if options.device == "cpu" and not options.tiny:
        parser.error("--device cpu is for --tiny")
    if options.merge:
        try:
            runs, results = merged(options.merge)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        report = "\n\n".join((runs_table(runs), goals_table(results), mean_table(results), markdown(results)))
    else:
        entries = registry.select(tuple(filter(None, options.only.split(","))))
        keep: Keep = lambda so_far: write(options.output, so_far, markdown(so_far)) if options.output else None  # noqa: E731  # the other branch needs none
        results = compared(
            entries, "suite", minutes=options.minutes, at_once=options.at_once,
            device=options.device, tiny=options.tiny, seed=options.seed, keep=keep,
        )  # fmt: skip
        report = markdown(results)
    print(report)
    if options.output:
        write(options.output, results, report)


def compared(
    entries: Sequence[Entry],
    table: str,
    *,
    minutes: float,
    at_once: int = 0,
    device: str = "cuda",
    tiny: bool = False,
    seed: int = SEED,
    calibration: dict[str, Any] | None = None,
    keep: Keep = lambda _results: None,
) -> Measurements:
    """Time the kernels in the shapes of ``table``: "suite", or "helion" for Helion's means; and the control.

    ``keep`` gets the results so far each time that a shape was timed.
    """
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    start = time.monotonic()
    import_torch()
    from benchmarks.comparison import Plan, compare, compile_ours, rows_of  # imported by now
    from benchmarks.peers import PEERS  # likewise

    calibration = calibration or (calibrated() if device == "cuda" else MADE_UP)
    plan = Plan(
        table=table,
        device=device,
        tiny=tiny,
        seed=seed,
        calibration=calibration,
        target=calibration["target"],
        until=start + RESERVE * 60 * minutes,
    )
    results = Measurements(environment=environment(calibration), calibration=calibration)
    control = () if tiny or CONTROL in {entry.name for entry in entries} else (registry.entry(CONTROL),)
    with tempfile.TemporaryDirectory() as folder:
        jobs: list[Job] = []
        for kernel in map(registry.load, (*control, *entries)):
            rows = rows_of(kernel, plan)
            results.left += [(row.table, kernel.name, row.speed.name) for row in rows]
            together = len(rows) if kernel.name in PEERS else SHAPES  # autotuning runs in each child
            for first in range(0, len(rows), together or 1):
                numbers = range(first, min(first + together, len(rows)))
                jobs.append(Job(kernel.name, compare, (kernel.name, numbers, plan, Gpu(folder))))
        jobs.sort(key=lambda job: -len(job.arguments[1]))  # the longest first
        if device == "cuda":
            jobs[:0] = [Job(job.name, compile_ours, job.arguments[:3]) for job in jobs]
        at_once = at_once or min(len(os.sched_getaffinity(0)), MOST_AT_ONCE)
        for child, message in in_turn(jobs, at_once=at_once, timeout=TIMEOUT, until=start + 60 * minutes):
            results.seconds = time.monotonic() - start
            if isinstance(message, Ended):
                results.ended(child.job.name, message.fault)
            elif message == OVER:
                keep(results)
            else:
                results.add(message)
    return results


def import_torch() -> None:
    """Import torch, Triton and Inductor, which takes ten seconds, once for all children, and start no CUDA."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # a check for a GPU would otherwise initialise CUDA
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # children compile side by side already
    os.environ["FLA_CACHE_RESULTS"] = "0"  # found for a first call that was not timed
    for name in ("triton", "torch._inductor.compile_fx"):
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)  # a child that is forked from several OpenMP threads hangs


def calibrated() -> dict[str, Any]:
    """The rates of this GPU, measured in a child: the parent must not start CUDA. Ends the program when it cannot."""
    found: dict[str, Any] = {}
    for _, message in messages([Job("calibration", _calibrate)], at_once=1, timeout=TIMEOUT):
        if isinstance(message, Ended):
            if "bandwidth" not in found:
                raise SystemExit(f"the GPU could not be calibrated: {message.fault or found.get('message')}")
        else:
            found.update(message)
    return found


def _calibrate(connection: Connection) -> None:
    import torch  # imported by now
    import triton

    from kernels_smoke.suite.speed.calibration import calibrate  # imports torch

    calibrate(connection.send)
    target = triton.runtime.driver.active.get_current_target()
    name = f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch)
    connection.send({"name": torch.cuda.get_device_name(), "target": name})


def environment(calibration: dict[str, Any]) -> dict[str, Any]:
    """The environment: versions of everything compared, the GPU's name, the day."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {"device": calibration["name"], "date": time.strftime("%Y-%m-%d", time.gmtime()), "versions": versions}


def write(folder: Path, results: Measurements, report: str) -> None:
    """Write the report, its data and pictures; each file in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "kernels.md": report,
        "kernels.json": json.dumps(results.as_json(), indent=1) + "\n",
        "kernels.svg": picture(document(results)),
    }
    for name, content in contents.items():
        replace(folder / name, content)


def replace(path: Path, content: str) -> None:
    """Write ``content`` to ``path`` so that there is always a whole file."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(content, encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    main()
