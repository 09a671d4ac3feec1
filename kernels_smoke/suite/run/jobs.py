"""The options of a run, and the jobs common to all runs. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernels_smoke.suite.probes.answer import Answer, Outcome
from kernels_smoke.suite.probes.answer import record as probe_record
from kernels_smoke.suite.processes.crew import End, Job
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.run import units
from kernels_smoke.suite.run.gpus import GpuRun
from kernels_smoke.suite.run.plan import Document, resumed

PROBE_TIMEOUT = 60.0  # seconds
COMPILE_TIMEOUT = 120.0
INTERPRETING = 4.0  # factor of the timeout for a child that computes, as the interpreter does
FROM_OUTSIDE = 4.0  # factor of the timeout for a child that imports and compiles external kernels
SHARE = 3  # mutants of one kernel per child, since compiling takes long


@dataclass(frozen=True)
class Options:
    """The options of a run; ``cli.py`` describes each."""

    device: str = "cuda"
    level: str = "quick"
    only: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    compile_only: bool = False
    mutants: bool = False
    seed: int = 0
    timeout: float = 30.0
    slowness: float = 1.0
    gpus: tuple[str, ...] = ()
    soak: float = 0.0
    own: tuple[str, ...] = ()
    plugins: bool = False


def once(
    task: str, arguments: dict[str, Any], document: Document, timeout: float = COMPILE_TIMEOUT, *, quiet: bool = False
) -> Job:
    """A job whose child is not started again. Its death is a record; with ``quiet`` it only costs time."""
    begun: list[str] = []  # the probes that it reported, the last of which ended it

    def on_record(record: dict[str, Any]) -> None:
        if record["kind"] == "begin":
            begun.append(record.get("name") or record["kernel"])
        elif record["kind"] != "alive":
            document.add(record)

    def on_end(end: End) -> tuple[Job, ...]:
        if not end.clean:
            what = begun[-1] if begun else " ".join([task, *(v for v in arguments.values() if isinstance(v, str))])
            outcome: Outcome = "skip" if quiet else ("fail" if end.hang or end.status < 0 else "error")
            words = {"last words": end.words} if end.words else {}
            name = "suite" if quiet or not begun else begun[-1]
            document.add(probe_record(name, Answer(outcome, f"{what}: {end.describe()}", words)))
        return ()

    return Job(task, arguments, timeout, on_record, on_end)


def on_gpu(run: GpuRun, job: Job) -> Job:
    """``job`` in a child that sees the GPU of ``run`` and no other."""
    return replace(job, environment=run.environment, lane=run.uuid)


def followed(jobs: Sequence[Job], then: Callable[[], Iterable[Job]]) -> list[Job]:
    """``jobs``; once they and their following jobs have ended, those of ``then``."""
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


def groups(options: Options, entries: Sequence[Entry], most: int = 0) -> dict[str, list[Entry]]:
    """The kernels that share a child, by the group's name: by family, or by external file.

    With ``most``, ours are joined into so many groups of about equal duration: on a GPU children that start CUDA at
    once wait for each other, and so do their launches. The quick level has two there: its cases take less than the
    start of CUDA.
    """
    most = 2 if options.level == "quick" and options.device == "cuda" else most
    found: dict[str, list[Entry]] = {}
    seconds = {str(number): 0.0 for number in range(most)}
    for entry in sorted(entries, key=units.judging, reverse=True) if most else entries:
        ours = min(seconds, key=lambda group: seconds[group]) if most and not entry.source else entry.family
        if ours in seconds:
            seconds[ours] += units.judging(entry)
        found.setdefault(entry.source or ours, []).append(entry)
    return found


def cases(options: Options, entries: Sequence[Entry], document: Document) -> Job:
    """The cases of these kernels, one after another in one child."""
    names = [entry.name for entry in entries]
    arguments = {"level": options.level, "device": options.device, "seed": options.seed, "kernels": names}
    longer, computing = timeout(options, entries), _computing(options)
    return resumed(document, "case", "correctness.tasks:cases", arguments, longer, computing=computing)


def timeout(options: Options, entries: Sequence[Entry]) -> float:
    """With kernels from outside longer: they are imported, and compiled, in the child that runs them."""
    return options.timeout * (FROM_OUTSIDE if any(entry.source for entry in entries) else 1)


def mutants(options: Options, entry: Entry, document: Document) -> Job:
    """The mutants of one kernel: first its own cases, then a few mutants in each child.

    Those of one from outside are made in the child that tries them.
    """
    if entry.source:
        arguments = {"device": options.device, "seed": options.seed, "kernels": [entry.name]}
        longer, computing = timeout(options, [entry]), _computing(options)
        return resumed(document, "mutant", "own.tasks:mutants", arguments, longer, computing=computing)
    shared = {"device": options.device, "seed": options.seed, "kernel": entry.name}
    answer: dict[str, Any] = {}

    def on_record(record: dict[str, Any]) -> None:
        if record["kind"] == "healthy":
            answer.update(record)
        elif record["kind"] not in {"begin", "alive"}:
            document.add(record)

    def on_end(end: End) -> Iterator[Job]:
        if not answer:
            message = f"the kernel itself could not be tried: {end.describe()}"
            record = {"kind": "mutant", "kernel": entry.name, "mutant": "each", "outcome": "error", "message": message}
            document.add(record | {"caught_by": "", "seconds": 0.0})
        names = answer.get("mutants", [])
        for start in range(0, len(names), SHARE):
            some = {"kernels": [entry.name], "fault": answer["fault"], "only": names[start : start + SHARE]}
            arguments = {"device": options.device, "seed": options.seed, **some}
            task, computing = "correctness.tasks:mutants", _computing(options)
            yield resumed(document, "mutant", task, arguments, options.timeout, computing=computing)

    return Job("correctness.tasks:healthy", shared, options.timeout, on_record, on_end, _computing(options))


def _computing(options: Options) -> float:
    return INTERPRETING if options.device == "interpret" else 1.0
