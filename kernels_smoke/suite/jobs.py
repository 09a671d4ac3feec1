"""What is asked of a run, and the jobs that every kind of run has. Needs no torch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernels_smoke.suite import units
from kernels_smoke.suite.crew import End, Job
from kernels_smoke.suite.gpus import GpuRun
from kernels_smoke.suite.plan import Document, resumed
from kernels_smoke.suite.probes.answer import Answer, Outcome
from kernels_smoke.suite.probes.answer import record as probe_record
from kernels_smoke.suite.registry import Entry

PROBE_PATIENCE = 60.0  # seconds
COMPILE_PATIENCE = 120.0
INTERPRETING = 4.0  # times as much patience with a child that computes: the interpreter does nothing else
FROM_OUTSIDE = 4.0  # times as much patience with a child that imports and compiles what it runs
SHARE = 3  # mutants of one kernel that a child tries: compiling them is what takes long


@dataclass(frozen=True)
class Options:
    """What was asked for; see ``cli.py`` for the meaning of each."""

    device: str = "cuda"
    level: str = "quick"
    only: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    compile_only: bool = False
    mutants: bool = False
    seed: int = 0
    patience: float = 30.0
    slowness: float = 1.0
    gpus: tuple[str, ...] = ()
    soak: float = 0.0
    own: tuple[str, ...] = ()
    plugins: bool = False


def once(
    task: str, arguments: dict[str, Any], document: Document, patience: float = COMPILE_PATIENCE, *, quiet: bool = False
) -> Job:
    """A job whose child is not started again. Its death is a record; with ``quiet`` one that costs only time."""
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

    return Job(task, arguments, patience, on_record, on_end)


def on_gpu(run: GpuRun, job: Job) -> Job:
    """``job`` in a child that sees the GPU of ``run`` and no other."""
    return replace(job, environment=run.environment, lane=run.uuid)


def followed(jobs: Sequence[Job], then: Callable[[], Iterable[Job]]) -> list[Job]:
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


def groups(options: Options, entries: Sequence[Entry], most: int = 0) -> dict[str, list[Entry]]:
    """The kernels that share a child, by the group's name: a family each, and those of a file from outside.

    With ``most``, ours are put together into so many groups that take about as long: on a GPU children that start CUDA
    at once wait for each other, and so do their launches. The quick level has two there: its cases take less than the
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
    longer, computing = patience(options, entries), _computing(options)
    return resumed(document, "case", "correctness.tasks:cases", arguments, longer, computing=computing)


def patience(options: Options, entries: Sequence[Entry]) -> float:
    """With kernels from outside longer: they are imported, and compiled, in the child that runs them."""
    return options.patience * (FROM_OUTSIDE if any(entry.source for entry in entries) else 1)


def mutants(options: Options, entry: Entry, document: Document) -> Job:
    """The mutants of one kernel: first its own cases, then a few mutants in each child.

    Those of one from outside are made in the child that tries them.
    """
    if entry.source:
        arguments = {"device": options.device, "seed": options.seed, "kernels": [entry.name]}
        longer, computing = patience(options, [entry]), _computing(options)
        return resumed(document, "mutant", "own.tasks:mutants", arguments, longer, computing=computing)
    shared = {"device": options.device, "seed": options.seed, "kernel": entry.name}
    said: dict[str, Any] = {}

    def on_record(record: dict[str, Any]) -> None:
        if record["kind"] == "healthy":
            said.update(record)
        elif record["kind"] not in {"begin", "alive"}:
            document.add(record)

    def on_end(end: End) -> Iterator[Job]:
        if not said:
            message = f"the kernel itself could not be tried: {end.describe()}"
            record = {"kind": "mutant", "kernel": entry.name, "mutant": "each", "outcome": "error", "message": message}
            document.add(record | {"caught_by": "", "seconds": 0.0})
        names = said.get("mutants", [])
        for start in range(0, len(names), SHARE):
            some = {"kernels": [entry.name], "fault": said["fault"], "only": names[start : start + SHARE]}
            arguments = {"device": options.device, "seed": options.seed, **some}
            task, computing = "correctness.tasks:mutants", _computing(options)
            yield resumed(document, "mutant", task, arguments, options.patience, computing=computing)

    return Job("correctness.tasks:healthy", shared, options.patience, on_record, on_end, _computing(options))


def _computing(options: Options) -> float:
    return INTERPRETING if options.device == "interpret" else 1.0
