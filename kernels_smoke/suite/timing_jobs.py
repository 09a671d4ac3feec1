"""The jobs that time kernels on GPUs, and measure rates.

Up to ``TIMING`` children for each GPU, where each has ``CPUS_EACH`` CPUs, of which one at a time times. GPUs
of a node are timed at the same time: they share no memory, and what is timed is queued in CUDA graphs. What is slow
then is timed once more with nothing else at work, and this counts.
Rates of copies, which GPUs do share, are measured one GPU after another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kernels_smoke.suite import jobs
from kernels_smoke.suite.crew import Crew, End, Job
from kernels_smoke.suite.gpus import EXCLUSIVE, INSTANCE, VISIBLE, GpuRun, may_go_on
from kernels_smoke.suite.jobs import PROBE_PATIENCE, Options, on_gpu, once
from kernels_smoke.suite.plan import Document, processors, resumed
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.scratch_folder import scratch_folder

TIMING = 3  # children that time on a GPU in turn, and judge next to each other
CPUS_EACH = 4  # a child that times has one busy thread, and CUDA's own now and then
SHARES = {"full": 0.25, "deep": 0.9}  # of the free memory that is tested


def time_on(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, runs: Sequence[GpuRun]) -> None:
    """Calibration, then every kernel that is right; one process at a time times on a GPU, while others wait for it."""
    runs = [run for run in runs if run.may_go_on and may_go_on(document)]
    with contextlib.ExitStack() as stack:
        gpus_at_once, in_lane = _at_once(runs)
        crew.run(timing(options, entries, runs, stack), at_once=gpus_at_once * in_lane, in_lane=in_lane)


def _at_once(runs: Sequence[GpuRun]) -> tuple[int, int]:
    """On how many GPUs kernels are timed at the same time, and by how many children on each."""
    at_once = max(1, min(len(runs), processors() // CPUS_EACH))
    exclusive = any(run.gpu["compute_mode"] == EXCLUSIVE for run in runs)
    return at_once, 1 if exclusive else max(1, min(TIMING, processors() // CPUS_EACH // at_once))


def timing(
    options: Options, entries: Sequence[Entry], runs: Sequence[GpuRun], stack: contextlib.ExitStack
) -> list[Job]:
    """For each GPU a job that calibrates, behind which come those that time. Their folders are entered in ``stack``."""
    _, in_lane = _at_once(runs)

    def calibrating(run: GpuRun) -> Job:
        job = once("speed.calibration:calibrate", {}, run.document, PROBE_PATIENCE)

        def on_end(end: End) -> Iterator[Job]:
            yield from job.on_end(end)
            if run.document.calibration is not None:
                folder = str(stack.enter_context(scratch_folder())) if in_lane > 1 else ""
                for _ in range(in_lane):
                    yield from _speeds(options, entries, run, folder=folder)

        return on_gpu(run, replace(job, on_end=on_end))

    return [calibrating(run) for run in runs]


def take_back(runs: Sequence[GpuRun]) -> None:
    """Drop the speeds of kernels that turned out to be wrong."""
    for run in runs:
        wrong = _wrong(run)
        run.document.speeds[:] = [record for record in run.document.speeds if record["kernel"] not in wrong]


def _wrong(run: GpuRun) -> set[str]:
    return {record["kernel"] for record in run.document.cases if record["outcome"] != "pass"}


def time_again(options: Options, crew: Crew, entries: Sequence[Entry], runs: Sequence[GpuRun]) -> None:
    """Run alone what was slow, or lacked memory, while something else was at work: this counts."""
    names = [entry.name for entry in entries]
    for run in runs:
        run.document.speeds.sort(key=lambda record: names.index(record["kernel"]))
        poor = [record for record in run.document.speeds if record["outcome"] in {"slow", "error"}]
        if poor and _at_once(runs) != (1, 1):
            run.document.speeds[:] = [record for record in run.document.speeds if record not in poor]
            crew.run(_speeds(options, entries, run, [(each["kernel"], each["case"]) for each in poor]), at_once=1)


def measure_on(
    options: Options, crew: Crew, entries: Sequence[Entry], document: Document, runs: Sequence[GpuRun]
) -> None:
    """Rates and memory, one GPU after another: they share the way to the host."""
    runs = [run for run in runs if run.may_go_on and may_go_on(document)]
    deep = options.level == "deep"
    for run in runs:
        wrong = _wrong(run)
        ours = [entry for entry in entries if not entry.source]  # others have their own process
        names = [entry.name for entry in ours if entry.name not in wrong and (deep or entry.quick)]
        arguments = {"share": SHARES[options.level], "kernels": names, "seed": options.seed}
        crew.run([on_gpu(run, once("speed.rates:rates", arguments, run.document, PROBE_PATIENCE))], at_once=1)
    whole = [run.uuid for run in runs if not run.uuid.startswith(INSTANCE)]
    if len(whole) > 1:
        job = once("speed.rates:peers", {}, document, PROBE_PATIENCE)
        crew.run([replace(job, environment={VISIBLE: ",".join(whole)})], at_once=1)


def _speeds(
    options: Options, entries: Sequence[Entry], run: GpuRun, only: Sequence[tuple[str, str]] = (), folder: str = ""
) -> Iterator[Job]:
    """Our kernels in one child, those of each file from outside in another."""
    wrong = _wrong(run)
    shared: dict[str, Any] = {
        "level": options.level,
        "seed": options.seed,
        "calibration": run.document.calibration,
        "only": [list(item) for item in only],
        "folder": folder,
    }
    for source in dict.fromkeys(("", *(entry.source for entry in entries))):
        members = [entry for entry in entries if entry.source == source]
        arguments = shared | {"kernels": [entry.name for entry in members if entry.name not in wrong]}
        patience = jobs.patience(options, members)
        yield on_gpu(run, resumed(run.document, "speed", "speed.speeds:speeds", arguments, patience))
