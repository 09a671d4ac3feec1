"""A whole run: what is probed, compiled, judged and timed, in which order. The parent process; needs no torch."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling.warm_cache import Marks, marks
from kernels_smoke.suite.crew import Crew, End, ForemanError, Job
from kernels_smoke.suite.plan import Document, processors, resumed
from kernels_smoke.suite.probes import driver as probes_driver
from kernels_smoke.suite.probes.answer import Answer, Outcome
from kernels_smoke.suite.probes.answer import record as probe_record
from kernels_smoke.suite.probes.installation import not_importable
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.scratch_folder import scratch_folder
from kernels_smoke.suite.units import work_units
from kernels_smoke.suite.verdict import verdict

SCHEMA = "kernels_smoke/1"
PROBE_PATIENCE = 60.0  # seconds
COMPILE_PATIENCE = 120.0
SANITIZER_PATIENCE = 300.0
INTERPRETING = 4.0  # times as much patience with a child that computes: the interpreter does nothing else
EXCLUSIVE = "exclusive process"  # the compute mode in which a GPU takes one process at a time


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


def run(options: Options, heard: Callable[[dict[str, Any]], None] = lambda _record: None) -> dict[str, Any]:
    """Run what ``options`` ask for and return the document (see ``suite/README.md``). Tells each record to ``heard``.

    Raises LookupError when ``options.only`` names no kernel.
    """
    start_time, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    document = Document(heard=heard)
    entries = registry.select(options.only)
    if (
        options.device == "cuda"
        and options.level == "quick"
        and not (options.only or options.compile_only or options.mutants)
    ):
        document.left_out += [
            {"kernel": entry.name, "cases": [], "level": "full"} for entry in entries if not entry.quick
        ]
        entries = tuple(entry for entry in entries if entry.quick)
    facts: dict[str, Any] = {"torch": None, "triton": None, "driver": None, "gpus": []}
    document.clock = lambda: time.monotonic() - start_time
    with _cache_for(options) as environment:
        try:
            with Crew(environment, options.slowness) as crew:
                if options.compile_only:
                    _compile(options, crew, entries, document, facts)
                else:
                    _run(options, crew, entries, document, facts)
        except ForemanError as error:
            document.add(probe_record("suite", Answer("error", str(error))))
    return {
        "schema": SCHEMA,
        "mode": _mode(options),
        "device": "none" if options.compile_only else options.device,
        "level": options.level,
        "seed": options.seed,
        "started": started,
        "seconds": round(time.monotonic() - start_time, 3),
        **verdict(document),
        "environment": _environment(facts),
        "calibration": document.calibration,
        "probes": document.probes,
        "cases": document.cases,
        "speeds": document.speeds,
        "compiled": document.compiled,
        "mutants": document.mutants,
        "left_out": document.left_out,
    }


def new_seed() -> int:
    """A seed that nobody chose: every run draws other inputs, and prints this number so that it can be repeated."""
    return random.SystemRandom().randrange(2**31)


def _mode(options: Options) -> str:
    return "compile" if options.compile_only else ("mutants" if options.mutants else "run")


@contextlib.contextmanager
def _cache_for(options: Options) -> Iterator[dict[str, str]]:
    """The environment of the foreman. Compiling for other GPUs keeps out of the user's cache of kernels."""
    environment = dict(os.environ)
    if options.device == "interpret" and not options.compile_only:
        environment["TRITON_INTERPRET"] = "1"
    else:
        environment.pop("TRITON_INTERPRET", None)
    if not options.compile_only:
        yield environment
        return
    with scratch_folder() as folder:
        yield environment | {"TRITON_CACHE_DIR": str(folder), "TRITON_DISABLE_LINE_INFO": "1"}


# The three kinds of run


def _compile(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, facts: dict[str, Any]) -> None:
    if not _has_packages(crew, document, facts):
        return
    jobs = [
        resumed(
            document,
            "compiled",
            "compiling.compilations:compile_kernels",
            {"kernel": kernel, "target": target, "level": options.level},
            COMPILE_PATIENCE,
        )
        for kernel, target in work_units(entries, options.targets)
    ]
    crew.run(jobs, at_once=processors())


def _run(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, facts: dict[str, Any]) -> None:
    target = ""
    if options.device == "cuda":  # while the foreman imports torch
        answer = probes_driver.ask(probes_driver.PATIENCE * options.slowness)
        document.add(answer["probe"])
        facts["driver"], facts["gpus"] = answer["driver"], answer["gpus"]
        target = answer["gpus"][0]["target"] if answer["gpus"] else ""
    if not _has_packages(crew, document, facts):
        return
    device = "none" if options.device == "cuda" and not target else options.device  # its driver has said so already
    probes = _once("probes.probing:basic", {"device": device, "target": target}, document, PROBE_PATIENCE)
    if device == "cuda" and not options.mutants:
        warm = marks(target, [str(facts["torch"]), str(facts["triton"])], os.environ)
        alone = facts["gpus"][0]["compute_mode"] == EXCLUSIVE
        _judge_on_gpu(options, crew, entries, document, target, probes, warm, alone=alone)
        if options.level != "quick" and _may_go_on(document):
            _time(options, entries, document, crew)
        if options.level == "deep" and _may_go_on(document):
            crew.run(_memory_checks(options, entries, document), at_once=1 if alone else min(8, processors()))
        return
    crew.run([probes], at_once=1)
    if device != "none" and _may_go_on(document):
        jobs = _mutant_jobs(options, entries, document) if options.mutants else _case_jobs(options, entries, document)
        crew.run(jobs, at_once=processors())


def _judge_on_gpu(
    options: Options,
    crew: Crew,
    entries: Sequence[Entry],
    document: Document,
    target: str,
    probes: Job,
    warm: Marks,
    *,
    alone: bool,
) -> None:
    """Probe, compile in parallel (in processes without CUDA), and run each family as soon as its kernels are compiled.

    The driver has answered, so families do not wait for the probes. When those find that CUDA does not work, what the
    cases say is only that once more. Where ``warm`` says that Triton's cache is filled, nothing is compiled beforehand.
    With ``alone`` the GPU takes one process at a time, so nothing else runs beside a child that uses it.
    """
    heavy = _heavy_probes(options, document, target) if options.level != "quick" else []
    if warm.cover([entry.name for entry in entries], options.level):
        on_gpu = [probes, *_case_jobs(options, entries, document), *heavy]
        crew.run(on_gpu, at_once=1 if alone else processors())
    elif alone:
        crew.run([job for _, job in _compiling(options, entries, document, target)], at_once=processors())
        crew.run([probes, *_case_jobs(options, entries, document), *heavy], at_once=1)
    else:
        _compile_and_judge(options, crew, entries, document, target, [probes, *heavy], warm)
    if not _may_go_on(document):
        document.cases.clear()


def _compiling(options: Options, entries: Sequence[Entry], document: Document, target: str) -> list[tuple[str, Job]]:
    """The jobs that fill Triton's cache, each with the group of kernels (see ``_groups``) that it is for."""
    shares = min(4, -(-4 * processors() // len(entries)))  # kernels differ: more jobs than CPUs even that out
    shared = {"target": target, "level": options.level, "shares": shares}
    return [
        (
            group,
            _once(
                "compiling.compilations:precompile",
                {"kernel": entry.name, "share": share, **shared},
                document,
                quiet=True,
            ),
        )
        for group, members in reversed(_groups(options, entries).items())  # attention and the like take longest
        for share in range(shares)
        for entry in members
    ]


def _compile_and_judge(
    options: Options,
    crew: Crew,
    entries: Sequence[Entry],
    document: Document,
    target: str,
    probes: Sequence[Job],
    warm: Marks,
) -> None:
    """The same with an empty cache. The first of ``probes`` comes at once, the others when all families have begun."""
    compiling = _compiling(options, entries, document, target)
    left = Counter(group for group, _ in compiling)
    failed: list[Job] = []
    families = {group: _cases(options, members, document) for group, members in _groups(options, entries).items()}
    first, *later = probes

    def ready() -> Iterator[Job]:
        for group in [group for group in families if not left[group]]:
            yield families.pop(group)
        while later and not families:
            yield later.pop()

    def then(job: Job, group: str) -> Job:
        def on_end(end: End) -> Iterator[Job]:
            yield from job.on_end(end)
            left[group] -= 1
            if not end.clean:
                failed.append(job)
            if _may_go_on(document):
                yield from ready()

        return replace(job, on_end=on_end)

    crew.run([first, *(then(job, group) for group, job in compiling)], at_once=processors())
    if not failed and _may_go_on(document):
        warm.leave([entry.name for entry in entries], options.level)


def _heavy_probes(options: Options, document: Document, target: str) -> list[Job]:
    """The probes that take seconds, each in a child of its own; torch.compile takes ten, and no kernel needs it."""
    names = ("nccl", "cublas", "cudnn", *(("torch_compile",) if options.level == "deep" else ()))
    shared = {"device": options.device, "target": target, "slowness": options.slowness}
    return [_once("probes.probing:heavy", shared | {"names": [name]}, document, PROBE_PATIENCE) for name in names]


def _groups(options: Options, entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The kernels that share a child, by the group's name: a family each.

    The quick level has two children on a GPU: its cases take less than the start of CUDA in a process, and eight that
    start at once take a second longer than two.
    """
    groups: dict[str, list[Entry]] = {}
    families = list(dict.fromkeys(entry.family for entry in entries))
    few = options.level == "quick" and options.device == "cuda"
    for entry in entries:
        groups.setdefault(str(families.index(entry.family) % 2) if few else entry.family, []).append(entry)
    return groups


def _case_jobs(options: Options, entries: Sequence[Entry], document: Document) -> list[Job]:
    """One child for each group."""
    return [_cases(options, members, document) for members in _groups(options, entries).values()]


def _cases(options: Options, entries: Sequence[Entry], document: Document) -> Job:
    """The cases of these kernels, one after another in one child."""
    names = [entry.name for entry in entries]
    arguments = {"level": options.level, "device": options.device, "seed": options.seed, "kernels": names}
    return resumed(
        document, "case", "correctness.tasks:cases", arguments, options.patience, computing=_computing(options)
    )


def _computing(options: Options) -> float:
    return INTERPRETING if options.device == "interpret" else 1.0


def _memory_checks(options: Options, entries: Sequence[Entry], document: Document) -> list[Job]:
    shared = {"seed": options.seed, "slowness": options.slowness}
    return [
        resumed(document, "case", "sanitizer.checks:checks", shared | {"kernels": [entry.name]}, SANITIZER_PATIENCE)
        for entry in entries
    ]


def _mutant_jobs(options: Options, entries: Sequence[Entry], document: Document) -> list[Job]:
    """One child for each kernel: compiling its mutants is what takes long."""
    shared = {"device": options.device, "seed": options.seed}
    task, computing = "correctness.tasks:mutants", _computing(options)
    return [
        resumed(document, "mutant", task, shared | {"kernels": [entry.name]}, options.patience, computing=computing)
        for entry in entries
    ]


def _time(options: Options, entries: Sequence[Entry], document: Document, crew: Crew) -> None:
    """Calibration, then every kernel that is right, alone on the GPU."""
    wrong = {record["kernel"] for record in document.cases if record["outcome"] != "pass"}
    crew.run([_once("speed.calibration:calibrate", {}, document, PROBE_PATIENCE)], at_once=1)
    if document.calibration is None:
        return
    arguments = {
        "kernels": [entry.name for entry in entries if entry.name not in wrong],
        "level": options.level,
        "seed": options.seed,
        "calibration": document.calibration,
    }
    crew.run([resumed(document, "speed", "speed.speeds:speeds", arguments, options.patience)], at_once=1)


def _once(
    task: str, arguments: dict[str, Any], document: Document, patience: float = COMPILE_PATIENCE, *, quiet: bool = False
) -> Job:
    """A job whose child is not started again. Its death is a record; with ``quiet`` one that costs only time."""
    begun: list[str] = []  # the probes that it told of, the last of which it died of

    def on_record(record: dict[str, Any]) -> None:
        if record["kind"] == "begin":
            begun.append(record.get("name") or record["kernel"])
        else:
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


def _has_packages(crew: Crew, document: Document, facts: dict[str, Any]) -> bool:
    """Wait for the imports; False, with a record that says why, when torch or triton is not there."""
    ready = crew.wait_until_ready()
    facts.update(torch=ready["torch"], triton=ready["triton"])
    for name, fault in ready["faults"].items():
        document.add(probe_record(name, not_importable(name, fault)))
    return not ready["faults"]


def _may_go_on(document: Document) -> bool:
    """False when CUDA itself does not work: every kernel would only say so again."""
    blocking = {"driver", "torch", "cuda_init"}
    return not any(probe["outcome"] in {"fail", "error"} and probe["name"] in blocking for probe in document.probes)


def _environment(facts: dict[str, Any]) -> dict[str, Any]:
    return {"python": platform.python_version(), "executable": sys.executable, "machine": platform.machine(), **facts}
