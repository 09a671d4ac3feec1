"""A run on GPUs: what is probed, compiled, judged and timed on each of them, and what runs at the same time.

Correctness: all GPUs at once, one child for each family and GPU. Kernels are compiled once for all GPUs of a kind.

Speed: up to ``TIMING`` children for each GPU, where each has ``CPUS_EACH`` CPUs, of which one at a time times. GPUs
of a node are timed at the same time: they share no memory, and what is timed is queued in CUDA graphs. What is slow
then is timed once more with nothing else at work, and this counts.
Rates of copies, which GPUs do share, are measured one GPU after another.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernels_smoke.suite import jobs, units
from kernels_smoke.suite.compiling.warm_cache import Marks, marks
from kernels_smoke.suite.crew import Crew, End, Job
from kernels_smoke.suite.gpus import INSTANCE, VISIBLE, GpuRun, may_go_on
from kernels_smoke.suite.jobs import PROBE_PATIENCE, Options, once
from kernels_smoke.suite.plan import Document, processors, resumed
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.scratch_folder import scratch_folder

SANITIZER_PATIENCE = 300.0
EXCLUSIVE = "exclusive process"  # the compute mode in which a GPU takes one process at a time
TIMING = 3  # children that time on a GPU in turn, and judge next to each other
CPUS_EACH = 4  # a child that times has one busy thread, and CUDA's own now and then
SHARES = {"full": 0.25, "deep": 0.9}  # of the free memory that is tested
OF_A_GPU, OF_THE_NODE = "gpu", "node"  # parts of the task probes.probing:basic


def on_gpu(run: GpuRun, job: Job) -> Job:
    """``job`` in a child that sees the GPU of ``run`` and no other."""
    return replace(job, environment=run.environment, lane=run.uuid)


def judge(
    options: Options,
    crew: Crew,
    entries: Sequence[Entry],
    document: Document,
    runs: Sequence[GpuRun],
    versions: Sequence[str],
) -> None:
    """Probe, and run the cases on every GPU; then time what was right, and look for bad accesses at level deep.

    ``document`` takes what is not of one GPU. GPUs of a kind share what is compiled.
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
        time_again(options, crew, entries, runs)
        measure_on(options, crew, entries, document, runs)
    if options.soak:
        task, arguments = "speed.soak:soak", {"seconds": options.soak}
        able = [run for run in runs if run.may_go_on and may_go_on(document)]
        soaking = [on_gpu(run, once(task, arguments, run.document, PROBE_PATIENCE)) for run in able]
        crew.run(soaking, at_once=len(runs))
    if options.level == "deep":
        firsts = [next(run for run in runs if run.gpu["target"] == target) for target in targets]
        checks = [job for run in firsts if run.may_go_on for job in _memory_checks(options, entries, run)]
        crew.run(checks, at_once=min(8, processors()), in_lane=in_lane)


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

    The driver has answered, so families do not wait for the probes. When those find that CUDA does not work, what the
    cases say is only that once more. Where ``warm`` says that Triton's cache is filled, nothing is compiled beforehand.
    With an ``in_lane`` of 1 a GPU takes one process at a time, so nothing else runs next to a child that uses it.
    """
    target = runs[0].gpu["target"]
    shared = {"device": "cuda", "target": target}
    node = [once("probes.probing:basic", shared | {"part": OF_THE_NODE}, document, PROBE_PATIENCE)] if with_node else []
    probes = [
        on_gpu(run, once("probes.probing:basic", shared | {"part": OF_A_GPU}, run.document, PROBE_PATIENCE))
        for run in runs
    ]
    heavy = [job for run in runs for job in _heavy_probes(options, run)] if options.level != "quick" else []
    families = {
        group: [on_gpu(run, jobs.cases(options, members, run.document)) for run in runs]
        for group, members in jobs.groups(options, entries).items()
    }
    ours = [entry for entry in entries if not entry.source]  # others may not compile without a GPU
    is_warm = warm.cover([entry.name for entry in ours], options.level)
    if is_warm or in_lane:
        if not is_warm:
            compiling = [job for _, job in _compiling(options, ours, document, target)]
            crew.run(compiling, at_once=processors())
        every = [job for of_group in families.values() for job in of_group]
        crew.run([*node, *probes, *every, *heavy], at_once=processors(), in_lane=in_lane)
        return False
    early = options.level != "quick" and len(runs) == 1 and len(ours) == len(entries)
    cold = _Cold(options, entries, document, runs, families, heavy)
    with contextlib.ExitStack() as stack:
        cold.run(crew, [*node, *probes], stack if early else None)
    if not cold.failed and may_go_on(document):
        warm.leave([entry.name for entry in ours], options.level)
    return early


@dataclass
class _Cold:
    """A run with an empty cache. The jobs ``later`` come when all ``families`` have begun.

    On a single GPU the shapes that are timed are compiled first, and timed while all else is compiled. Cases, which use
    the GPU, come behind that; the speeds of kernels that are wrong are taken back.
    """

    options: Options
    entries: Sequence[Entry]
    document: Document
    runs: Sequence[GpuRun]
    families: dict[str, list[Job]]
    later: list[Job]
    failed: list[Job] = field(default_factory=list)
    timing: bool = False

    def run(self, crew: Crew, first: Sequence[Job], stack: contextlib.ExitStack | None) -> None:
        """Run everything; with a ``stack``, for the folders of those that time, kernels are timed, too."""
        ours = [entry for entry in self.entries if not entry.source]
        target = self.runs[0].gpu["target"]

        def compiling(part: str) -> list[tuple[str, Job]]:
            return list(_compiling(self.options, ours, self.document, target, part))

        if stack is None:
            early, late = list(first), compiling("")
        else:
            self.timing = True
            time = _timing(self.options, self.entries, self.runs, stack)
            early = [*first, *(self._noted(job) for _, job in compiling("timed"))]
            early = _followed(early, lambda: _followed(time, self._timed) if self._may_go_on else ())
            late = compiling("cases")
        self.left = Counter(group for group, _ in late)
        crew.run([*early, *(self._counted(job, group) for group, job in late)], at_once=processors())
        if stack is not None:
            _take_back(self.runs)

    @property
    def _may_go_on(self) -> bool:
        return may_go_on(self.document) and any(run.may_go_on for run in self.runs)

    def _timed(self) -> Iterator[Job]:
        self.timing = False
        return self._ready()

    def _ready(self) -> Iterator[Job]:
        """The cases of the families that are compiled, when nothing is being timed."""
        if self.timing or not self._may_go_on:
            return
        for group in [group for group in self.families if not self.left[group]]:
            yield from self.families.pop(group)
        while self.later and not self.families:
            yield self.later.pop()

    def _noted(self, job: Job) -> Job:
        def on_end(end: End) -> Iterator[Job]:
            if not end.clean:
                self.failed.append(job)
            yield from job.on_end(end)

        return replace(job, on_end=on_end)

    def _counted(self, job: Job, group: str) -> Job:
        noted = self._noted(job)

        def on_end(end: End) -> Iterator[Job]:
            yield from noted.on_end(end)
            self.left[group] -= 1
            yield from self._ready()

        return replace(job, on_end=on_end)


def _followed(jobs: Sequence[Job], then: Callable[[], Iterable[Job]]) -> list[Job]:
    """``jobs``; when they have ended, and all that their ends call for, those of ``then``."""
    alive = len(jobs)

    def counted(job: Job) -> Job:
        def on_end(end: End) -> Iterator[Job]:
            nonlocal alive
            following = list(job.on_end(end))
            alive += len(following) - 1
            yield from map(counted, following)
            if not alive:
                yield from then()

        return replace(job, on_end=on_end)

    return [counted(job) for job in jobs]


def _compiling(
    options: Options, entries: Sequence[Entry], document: Document, target: str, part: str = ""
) -> Iterator[tuple[str, Job]]:
    """The jobs that fill Triton's cache, each with the group of kernels (see ``jobs.groups``) that it is for.

    The group that takes longest comes first: when its cases begin, the others are compiled next to them.
    """
    grouped = sorted(jobs.groups(options, entries).items(), key=lambda item: -sum(map(units.seconds, item[1])))
    task = "compiling.compilations:precompile"
    for group, members in grouped:
        for entry in sorted(members, key=units.seconds, reverse=True):
            count = units.shares(entry, options.level, part)
            shared = {"kernel": entry.name, "target": target, "level": options.level, "part": part, "shares": count}
            for share in range(count):
                yield group, once(task, {"share": share, **shared}, document, quiet=True)


def _heavy_probes(options: Options, run: GpuRun) -> Iterator[Job]:
    """The probes that take seconds, each in its own child; torch.compile takes ten, and no kernel needs it.

    NCCL is of all GPUs together; where there is one, its probe says so.
    """
    names = ("cublas", "cudnn", *(("nccl",) if run.alone else ()))
    names += ("torch_compile",) if options.level == "deep" else ()
    shared = {"device": options.device, "target": run.gpu["target"], "slowness": options.slowness}
    for name in names:
        yield on_gpu(run, once("probes.probing:heavy", shared | {"names": [name]}, run.document, PROBE_PATIENCE))


def _nccl(options: Options, document: Document, runs: Sequence[GpuRun]) -> Job:
    """An all-reduce over the GPUs of the run; MIG instances have none."""
    whole = [run.uuid for run in runs if not run.uuid.startswith(INSTANCE)]
    arguments = {"device": "cuda", "target": runs[0].gpu["target"], "slowness": options.slowness, "names": ["nccl"]}
    job = once("probes.probing:heavy", arguments, document, PROBE_PATIENCE)
    return replace(job, environment={VISIBLE: ",".join(whole)})


def time_on(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, runs: Sequence[GpuRun]) -> None:
    """Calibration, then every kernel that is right; one process at a time times on a GPU, while others wait for it."""
    runs = [run for run in runs if run.may_go_on and may_go_on(document)]
    with contextlib.ExitStack() as stack:
        gpus_at_once, in_lane = _at_once(runs)
        crew.run(_timing(options, entries, runs, stack), at_once=gpus_at_once * in_lane, in_lane=in_lane)


def _at_once(runs: Sequence[GpuRun]) -> tuple[int, int]:
    """On how many GPUs kernels are timed at the same time, and by how many children on each."""
    at_once = max(1, min(len(runs), processors() // CPUS_EACH))
    exclusive = any(run.gpu["compute_mode"] == EXCLUSIVE for run in runs)
    return at_once, 1 if exclusive else max(1, min(TIMING, processors() // CPUS_EACH // at_once))


def _timing(
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


def _take_back(runs: Sequence[GpuRun]) -> None:
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
                SANITIZER_PATIENCE,
                computing=processors(),  # its analysis has a thread for each
            ),
        )
        for entry in entries
    ]
