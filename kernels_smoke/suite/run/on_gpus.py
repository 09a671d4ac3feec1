"""A run on GPUs: probing, compiling, judging and timing on each of them, partly at the same time.

Correctness: all GPUs at once, one child for each family and GPU. Kernels are compiled once for all GPUs of a kind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernels_smoke.suite.compiling.warm_cache import Marks, marks
from kernels_smoke.suite.processes.crew import Crew, Job
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.run import jobs
from kernels_smoke.suite.run.cold_run import ColdRun, precompiling
from kernels_smoke.suite.run.gpus import EXCLUSIVE, INSTANCE, VISIBLE, GpuRun, may_go_on
from kernels_smoke.suite.run.jobs import PROBE_TIMEOUT, Options, followed, on_gpu, once
from kernels_smoke.suite.run.plan import Document, processors, resumed
from kernels_smoke.suite.run.timing_jobs import measure_on, time_again, time_on
from kernels_smoke.suite.verdict import NOT_RUN_ACROSS

SANITIZER_TIMEOUT = 300.0
GROUPS = 7  # children on a GPU that start at once: with 16, each waited five seconds for CUDA, and then for the others
OF_A_GPU, OF_THE_NODE = "gpu", "node"  # parts of the task probes.probing:basic


def judge(
    options: Options,
    crew: Crew,
    entries: Sequence[Entry],
    document: Document,
    runs: Sequence[GpuRun],
    versions: Sequence[str],
) -> None:
    """Probe, and run the cases on every GPU; then time correct kernels, and look for bad accesses at level deep.

    ``document`` has the records of no single GPU. GPUs of a kind share compilations.
    """
    in_lane = 1 if any(run.gpu["compute_mode"] == EXCLUSIVE for run in runs) else 0
    targets = list(dict.fromkeys(run.gpu["target"] for run in runs))
    for target in targets:
        same = [run for run in runs if run.gpu["target"] == target]
        warm = marks(target, versions, os.environ)
        timed = _cases_on(options, crew, entries, document, same, warm, in_lane=in_lane, with_node=target == targets[0])
    if options.level != "quick" and len(runs) > 1 and may_go_on(document):
        crew.run([_nccl(options, document, runs)], at_once=1)
    for run in runs:
        if not run.may_go_on:
            run.document.cases.clear()
    if options.level != "quick":
        if not timed:
            time_on(options, crew, entries, document, runs)
        if timed or len(runs) > 1:
            time_again(options, crew, entries, runs)
        measure_on(options, crew, entries, document, runs)
    if options.soak:
        task, arguments = "speed.soak:soak", {"seconds": options.soak}
        able = [run for run in runs if run.may_go_on and may_go_on(document)]
        soaking = [on_gpu(run, once(task, arguments, run.document, PROBE_TIMEOUT)) for run in able]
        crew.run(soaking, at_once=len(runs))
    if options.level == "deep":
        firsts = [next(run for run in runs if run.gpu["target"] == target) for target in targets]
        checks = [job for run in firsts if run.may_go_on for job in _memory_checks(options, entries, run)]
        crew.run(checks, at_once=min(8, processors()), in_lane=in_lane)
    _note_not_run_across(entries, runs)


def _cases_on(
    options: Options,
    crew: Crew,
    entries: Sequence[Entry],
    document: Document,
    runs: Sequence[GpuRun],
    warm: Marks,
    *,
    in_lane: int,
    with_node: bool,
) -> bool:
    """Probe, compile in parallel (in processes without CUDA), and run each family as soon as its kernels are compiled.

    Returns whether the kernels have been timed, too.

    Families do not wait for the probes. If CUDA does not work, the cases only repeat that. If Triton's cache is
    ``warm``, nothing is compiled beforehand. With ``in_lane`` 1 a GPU runs one process.
    """
    target = runs[0].gpu["target"]
    shared = {"device": "cuda", "target": target}
    node = [once("probes.probing:basic", shared | {"part": OF_THE_NODE}, document, PROBE_TIMEOUT)] if with_node else []
    probes = [
        on_gpu(run, once("probes.probing:basic", shared | {"part": OF_A_GPU}, run.document, PROBE_TIMEOUT))
        for run in runs
    ]
    heavy = [job for run in runs for job in _heavy_probes(options, run)] if options.level != "quick" else []
    ours = [entry for entry in entries if not entry.source]  # others may not compile without a GPU
    is_warm = warm.cover([entry.name for entry in ours], options.level)
    families = {
        group: [on_gpu(run, jobs.cases(options, members, run.document)) for run in runs]
        for group, members in jobs.groups(options, entries, GROUPS if is_warm else 0).items()
    }
    if is_warm or in_lane:
        if not is_warm:
            compiling = [job for _, job in precompiling(options, ours, document, target)]
            crew.run(compiling, at_once=processors())
        every = [job for of_group in families.values() for job in of_group]
        first = followed(probes, lambda: heavy)  # not at once with the others, since starting CUDA takes long
        crew.run([*node, *first, *every], at_once=processors(), in_lane=in_lane)
        return False
    early = options.level != "quick" and len(runs) == 1 and len(ours) == len(entries)
    cold = ColdRun(options, entries, document, runs, families, heavy, early)
    cold.run(crew, [*node, *probes])
    if not cold.failed and may_go_on(document):
        warm.leave([entry.name for entry in ours], options.level)
    return early


def _note_not_run_across(entries: Sequence[Entry], runs: Sequence[GpuRun]) -> None:
    """Record that kernels which read the memory of other GPUs were judged on one GPU only."""
    whole = _whole(runs)
    for run in whole if len(whole) > 1 else []:
        for entry in entries:
            if entry.across and run.may_go_on:
                message = "each case has the inputs of all its ranks on one GPU"
                record = {"kind": "case", "kernel": entry.name, "case": f"{len(whole)} GPUs", "outputs": {}}
                run.document.add(record | {"outcome": NOT_RUN_ACROSS, "message": message, "seconds": 0.0})


def _whole(runs: Sequence[GpuRun]) -> list[GpuRun]:
    """The GPUs that can reach one another: MIG instances cannot."""
    return [run for run in runs if not run.uuid.startswith(INSTANCE)]


def _heavy_probes(options: Options, run: GpuRun) -> Iterator[Job]:
    """The probes that take seconds, each in its own child; torch.compile takes ten, and no kernel needs it.

    NCCL is of all GPUs together; if there is one, its probe says so.
    """
    names = ("cublas", "cudnn", *(("nccl",) if run.alone else ()))
    names += ("torch_compile",) if options.level == "deep" else ()
    shared = {"device": options.device, "target": run.gpu["target"], "slowness": options.slowness}
    for name in names:
        yield on_gpu(run, once("probes.probing:heavy", shared | {"names": [name]}, run.document, PROBE_TIMEOUT))


def _nccl(options: Options, document: Document, runs: Sequence[GpuRun]) -> Job:
    """An all-reduce over the GPUs of the run; MIG instances have none."""
    arguments = {"device": "cuda", "target": runs[0].gpu["target"], "slowness": options.slowness, "names": ["nccl"]}
    job = once("probes.probing:heavy", arguments, document, PROBE_TIMEOUT)
    return replace(job, environment={VISIBLE: ",".join(run.uuid for run in _whole(runs))})


def _memory_checks(options: Options, entries: Sequence[Entry], run: GpuRun) -> list[Job]:
    shared = {"seed": options.seed, "slowness": options.slowness}
    task, document = "sanitizer.checks:checks", run.document
    return [
        on_gpu(
            run,
            resumed(
                document,
                "case",
                task,
                shared | {"kernels": [entry.name]},
                SANITIZER_TIMEOUT,
                computing=processors(),  # its analysis has a thread for each
            ),
        )
        for entry in entries
    ]
