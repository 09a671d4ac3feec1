"""A whole run: what is probed, compiled, judged and timed, in which order. The parent process; needs no torch."""

import contextlib
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernels_smoke.suite import gpus, jobs, on_gpus, registry
from kernels_smoke.suite.crew import Crew, ForemanError
from kernels_smoke.suite.gpus import GpuRun, may_go_on
from kernels_smoke.suite.jobs import COMPILE_PATIENCE, PROBE_PATIENCE, Options, on_gpu, once
from kernels_smoke.suite.own.finding import Found, find
from kernels_smoke.suite.plan import Document, processors, resumed
from kernels_smoke.suite.probes import driver as probes_driver
from kernels_smoke.suite.probes.answer import Answer
from kernels_smoke.suite.probes.answer import record as probe_record
from kernels_smoke.suite.probes.installation import not_importable
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.units import work_units
from kernels_smoke.suite.verdict import verdict

SCHEMA = "kernels_smoke/1"
KEPT_EVERY = 1.0  # seconds between two partial reports, at least
KEEPING = 0.02  # of the time is spent on them, at most
UNFINISHED = "the suite has not ended"
# NVLink multicast can put the GPUs of a shared host out of service: only who sets these otherwise gets it.
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
# A child for each CPU computes already: threads of torch would take turns with the other children, and wait in loops.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
RECORDS = ("probes", "cases", "speeds", "compiled", "mutants", "left_out")


class Stopped(KeyboardInterrupt):
    """A signal asks the suite to end; ``args[0]`` is its name."""


@dataclass
class Course:
    """A run as far as it came: what was asked, and the records that have arrived.

    ``document`` has the records of no GPU in particular, each of ``runs`` those of one. ``keep`` takes the report so
    far, marked as partial, at most once in ``KEPT_EVERY`` seconds.
    """

    options: Options
    heard: Callable[[dict[str, Any]], None]
    keep: Callable[[dict[str, Any]], None]
    runs: list[GpuRun] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=lambda: {"torch": None, "triton": None, "driver": None, "gpus": []})
    begun: float = field(default_factory=time.monotonic)
    started: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    _count: int = 0
    _kept: int = -1  # records of the last report
    _next: float = 0.0

    def __post_init__(self) -> None:
        self.document = self.new_document()

    def new_document(self) -> Document:
        """A document whose records are heard, and have the second of the run at which they came."""
        return Document(heard=self._hear, clock=lambda: time.monotonic() - self.begun)

    def _hear(self, record: dict[str, Any]) -> None:
        self._count += 1
        self.heard(record)

    def tick(self) -> None:
        """Hand over the report so far, when there is something new and the last one is a second old."""
        now = time.monotonic()
        if self._kept != self._count and now >= self._next:
            self._kept = self._count
            self.keep(self.report(UNFINISHED))
            self._next = time.monotonic() + max(KEPT_EVERY, (time.monotonic() - now) / KEEPING)

    def report(self, partial: str = "") -> dict[str, Any]:
        """The document (see ``suite/README.md``). ``partial`` says why it is not that of a whole run."""
        records = {name: [*getattr(self.document, name)] for name in RECORDS}
        for run in self.runs:
            for name in RECORDS:
                tagged = [record | {"gpu": run.uuid} for record in getattr(run.document, name)]
                records[name] += tagged if name != "left_out" or run is self.runs[0] else []
        every = Document(**{name: records[name] for name in RECORDS})  # type: ignore[arg-type]  # each is a list
        found = verdict(every, len(self.runs))
        if partial:
            found["message"] = f"partial, {partial}: {found['message']}"
            found["verdict"] = "undecided" if found["verdict"] == "pass" else found["verdict"]
        return {
            "schema": SCHEMA,
            "mode": _mode(self.options),
            "device": "none" if self.options.compile_only else self.options.device,
            "level": self.options.level,
            "seed": self.options.seed,
            "started": self.started,
            "seconds": round(time.monotonic() - self.begun, 3),
            **found,
            "partial": partial,
            "environment": _environment(self.facts),
            "calibration": next((run.document.calibration for run in self.runs if run.document.calibration), None),
            "readings": [self._reading(run) for run in self.runs],
            **records,
            "families": self.document.families,
        }

    @staticmethod
    def _reading(run: GpuRun) -> dict[str, Any]:
        return {"gpu": run.uuid, "calibration": run.document.calibration, **run.document.reading}


def run(
    options: Options,
    heard: Callable[[dict[str, Any]], None] = lambda _record: None,
    keep: Callable[[dict[str, Any]], None] = lambda _document: None,
) -> dict[str, Any]:
    """Run what ``options`` ask for and return the document (see ``suite/README.md``). Passes each record to ``heard``.

    ``keep`` gets the report so far, now and then. What is interrupted (KeyboardInterrupt) returns it, too: its
    ``partial`` says so. Raises LookupError when ``options.only`` names no kernel, unless a file of kernels is broken.
    """
    course = Course(options, heard, keep)
    document = course.document
    partial = ""
    try:
        with _cache_for(options) as environment, Crew(environment, options.slowness, course.tick) as crew:
            entries = _entries(options, find(options, crew, document), document)
            if options.compile_only:
                _compile(course, crew, entries)
            else:
                _run(course, crew, entries)
    except ForemanError as error:
        document.add(probe_record("suite", Answer("error", str(error))))
        partial = "the process that runs the kernels died" if course.runs or document.cases else ""
    except KeyboardInterrupt as stop:
        partial = f"interrupted by {stop.args[0] if stop.args else 'SIGINT'}"
    return course.report(partial)


def _entries(options: Options, found: Found, document: Document) -> tuple[Entry, ...]:
    """The kernels of this run; what level quick omits is noted."""
    entries = registry.select(options.only, found.entries, strict=found.complete)
    everything = options.level != "quick" or options.only or options.compile_only or options.mutants
    if options.device != "cuda" or everything:
        return entries
    document.left_out += [{"kernel": entry.name, "cases": [], "level": "full"} for entry in entries if not entry.quick]
    return tuple(entry for entry in entries if entry.quick)


def new_seed() -> int:
    """A seed that no one chose: every run draws other inputs, and prints this number so that it can be repeated."""
    return random.SystemRandom().randrange(2**31)


def _mode(options: Options) -> str:
    return "compile" if options.compile_only else ("mutants" if options.mutants else "run")


@contextlib.contextmanager
def _cache_for(options: Options) -> Iterator[dict[str, str]]:
    """The environment of the foreman. Compiling for other GPUs keeps out of the user's cache of kernels."""
    environment = NO_MULTICAST | ONE_THREAD | dict(os.environ)
    if options.device == "interpret" and not options.compile_only:
        environment["TRITON_INTERPRET"] = "1"
    else:
        environment.pop("TRITON_INTERPRET", None)
    if not options.compile_only:
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix="kernels-smoke-", ignore_cleanup_errors=True) as folder:
        yield environment | {"TRITON_CACHE_DIR": folder, "TRITON_DISABLE_LINE_INFO": "1"}


# The kinds of runs


def _compile(course: Course, crew: Crew, entries: Sequence[Entry]) -> None:
    if not _has_packages(crew, course):
        return
    compiling = [
        resumed(
            course.document,
            "compiled",
            "compiling.compilations:compile_kernels",
            {"kernel": kernel, "target": target, "level": course.options.level},
            COMPILE_PATIENCE,
        )
        for kernel, target in work_units([entry for entry in entries if entry.triton], course.options.targets)
    ]
    for entry in entries:
        if not entry.triton:
            why = f"{entry.name} is not written in Triton, so it cannot be compiled for another GPU here"
            course.document.add(probe_record(entry.name, Answer("skip", why)))
    crew.run(compiling, at_once=processors())


def _run(course: Course, crew: Crew, entries: Sequence[Entry]) -> None:
    options, document = course.options, course.document
    if options.device == "cuda":  # while the foreman imports torch
        _find_gpus(course)
    if not _has_packages(crew, course):
        return
    versions = [str(course.facts["torch"]), str(course.facts["triton"])]
    built_for_gpus = course.facts["torch"]["cuda"] or course.facts["torch"]["hip"]
    if course.runs and built_for_gpus and not options.mutants:
        on_gpus.judge(options, crew, entries, document, course.runs, versions)
        return
    # Without a GPU its driver has said so already; without a torch for GPUs the probe of torch says it.
    device = options.device if options.device != "cuda" or course.runs else "none"
    target = course.runs[0].gpu["target"] if course.runs else ""
    crew.run([once("probes.probing:basic", {"device": device, "target": target}, document, PROBE_PATIENCE)], at_once=1)
    if device == "none" or not may_go_on(document):
        return
    if options.mutants:
        waiting = [jobs.mutants(options, entry, document) for entry in entries]
        if course.runs:
            waiting = [on_gpu(course.runs[n % len(course.runs)], job) for n, job in enumerate(waiting)]
    else:
        waiting = [jobs.cases(options, members, document) for members in jobs.groups(options, entries).values()]
    crew.run(waiting, at_once=processors())


def _find_gpus(course: Course) -> None:
    """Ask the driver, and make a run of each GPU that is to be tried."""

    def ask(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        patience = probes_driver.PATIENCE * course.options.slowness
        return probes_driver.ask(patience, None if environment is None else dict(environment))

    answer = ask()
    course.document.add(answer["probe"])
    course.facts["driver"] = answer["driver"]
    found, missing = gpus.chosen(answer, course.options.gpus, ask)
    for probe in missing:
        course.document.add(probe)
    course.facts["gpus"] = found
    alone = len(found) == 1 and len(answer["gpus"]) == 1 and not found[0]["uuid"].startswith(gpus.INSTANCE)
    for gpu in found:
        if (refusal := gpus.prohibited(gpu)) is not None:
            course.document.add(refusal | {"gpu": gpu["uuid"]})
        else:
            course.runs.append(GpuRun(gpu, course.new_document(), alone))


def _has_packages(crew: Crew, course: Course) -> bool:
    """Wait for the imports; False, with a record that says why, when torch or triton is not there."""
    ready = crew.wait_until_ready()
    course.facts.update(torch=ready["torch"], triton=ready["triton"])
    for name, fault in ready["faults"].items():
        course.document.add(probe_record(name, not_importable(name, fault)))
    return not ready["faults"]


def _environment(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"python": platform.python_version(), "executable": sys.executable, "machine": platform.machine(), **facts}
