"""The jobs that time kernels on GPUs, and measure rates.

One child for each GPU, at the same time if each has ``CPUS_EACH`` CPUs: GPUs of a node share no memory, and timed work
is queued in CUDA graphs. Slow kernels are timed again alone, and this counts. Rates of copies, which GPUs do share, are
measured one GPU after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernels_smoke.suite.processes.crew import Crew, End, Job
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.run import jobs
from kernels_smoke.suite.run.gpus import INSTANCE, VISIBLE, GpuRun, may_go_on
from kernels_smoke.suite.run.jobs import PROBE_TIMEOUT, Options, on_gpu, once
from kernels_smoke.suite.run.plan import Document, processors, resumed

CPUS_EACH = 4  # a child that times has one busy thread, and CUDA's own now and then
SHARES = {"full": 0.25, "deep": 0.9}  # of the free memory that is tested


def time_on(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, runs: Sequence[GpuRun]) -> None:
    """Calibration, then every kernel that is right, one process at a time on each GPU."""
    runs = [run for run in runs if run.may_go_on and may_go_on(document)]
    crew.run(timing(options, entries, runs), at_once=max(1, min(len(runs), processors() // CPUS_EACH)), in_lane=1)


def timing(options: Options, entries: Sequence[Entry], runs: Sequence[GpuRun]) -> list[Job]:
    """For each GPU a job that calibrates and times our kernels, followed by external ones, file by file."""

    def of(run: GpuRun) -> Job:
        job = _speeds(options, entries, run)

        def on_end(end: End) -> Iterator[Job]:
            yield from job.on_end(end)
            for source in dict.fromkeys(entry.source for entry in entries if entry.source):
                if run.document.calibration is not None:
                    yield _speeds(options, entries, run, source)

        return replace(job, on_end=on_end)

    return [of(run) for run in runs]


def take_back(runs: Sequence[GpuRun]) -> None:
    """Drop the speeds of kernels that turned out to be wrong."""
    for run in runs:
        wrong = _wrong(run)
        run.document.speeds[:] = [record for record in run.document.speeds if record["kernel"] not in wrong]


def _wrong(run: GpuRun) -> set[str]:
    """The kernels that have a case which neither passed nor was skipped, or that passed none."""
    outcomes: dict[str, set[str]] = {}
    for record in run.document.cases:
        outcomes.setdefault(record["kernel"], set()).add(record["outcome"])
    return {kernel for kernel, found in outcomes.items() if found - {"pass", "skip"} or "pass" not in found}


def time_again(options: Options, crew: Crew, entries: Sequence[Entry], runs: Sequence[GpuRun]) -> None:
    """Time slow kernels again with nothing else running: this counts."""
    for run in runs:
        slow = [[record["kernel"], record["case"]] for record in run.document.speeds if record["outcome"] == "slow"]
        if slow:
            run.document.speeds[:] = [record for record in run.document.speeds if record["outcome"] != "slow"]
            sources = dict.fromkeys(entry.source for entry in entries)
            crew.run([_speeds(options, entries, run, source, slow) for source in sources], at_once=1)


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
        crew.run([on_gpu(run, once("speed.rates:rates", arguments, run.document, PROBE_TIMEOUT))], at_once=1)
    whole = [run.uuid for run in runs if not run.uuid.startswith(INSTANCE)]
    if len(whole) > 1:
        job = once("speed.rates:peers", {}, document, PROBE_TIMEOUT)
        crew.run([replace(job, environment={VISIBLE: ",".join(whole)})], at_once=1)


def _speeds(
    options: Options, entries: Sequence[Entry], run: GpuRun, source: str = "", only: Sequence[Sequence[str]] = ()
) -> Job:
    """Those of our kernels that are right, or of those from the file ``source``, which have their own child."""
    wrong = _wrong(run)
    members = [entry for entry in entries if entry.source == source]
    arguments = {
        "kernels": [entry.name for entry in members if entry.name not in wrong],
        "level": options.level,
        "seed": options.seed,
        "calibration": run.document.calibration,
        "only": list(only),
    }
    timeout = jobs.timeout(options, members)
    return on_gpu(run, resumed(run.document, "speed", "speed.speeds:speeds", arguments, timeout))
