"""A run with an empty cache of kernels: what is compiled when, and what runs meanwhile."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kernels_smoke.suite import jobs, units
from kernels_smoke.suite.crew import Crew, End, Job
from kernels_smoke.suite.gpus import GpuRun, may_go_on
from kernels_smoke.suite.jobs import Options, followed, once
from kernels_smoke.suite.plan import Document, processors
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.timing_jobs import take_back, timing

CASES_WEIGHT = 5.0  # of a second of cases, which one child runs, where one of compiling, which all CPUs share, has 1
ON_GPU = 3  # children beyond one for each CPU, since those that use the GPU mostly wait for it


@dataclass
class ColdRun:
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
    timing: bool  # kernels are to be timed, and have not been yet
    failed: list[Job] = field(default_factory=list)

    def run(self, crew: Crew, first: Sequence[Job]) -> None:
        """Run everything, behind the jobs ``first``."""
        ours = [entry for entry in self.entries if not entry.source]
        target = self.runs[0].gpu["target"]

        def compiling(part: str) -> list[tuple[str, Job]]:
            return list(precompiling(self.options, ours, self.document, target, part))

        early, late = list(first), compiling("cases" if self.timing else "")
        if self.timing:
            time = timing(self.options, self.entries, self.runs)
            early += [self._noted(job) for _, job in compiling("timed")]
            early = followed(early, lambda: followed(time, self._timed) if self._may_go_on else ())
        self.left = Counter(group for group, _ in late)
        crew.run([*early, *(self._counted(job, group) for group, job in late)], at_once=processors() + ON_GPU)
        take_back(self.runs)

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


def precompiling(
    options: Options, entries: Sequence[Entry], document: Document, target: str, part: str = ""
) -> Iterator[tuple[str, Job]]:
    """The jobs that fill Triton's cache, each with the group of kernels (see ``jobs.groups``) that it is for.

    The group that takes longest comes first, its cases, which follow, above all: next to them the others are compiled,
    and when nothing is left to compile, few cases are.
    """
    grouped = sorted(jobs.groups(options, entries).items(), key=lambda item: -sum(map(_weight, item[1])))
    task = "compiling.compilations:precompile"
    for group, members in grouped:
        for entry in sorted(members, key=units.seconds, reverse=True):
            count = units.shares(entry, options.level, part)
            shared = {"kernel": entry.name, "target": target, "level": options.level, "part": part, "shares": count}
            for share in range(count):
                yield group, once(task, {"share": share, **shared}, document, quiet=True)


def _weight(entry: Entry) -> float:
    return units.seconds(entry) + CASES_WEIGHT * units.judging(entry)
