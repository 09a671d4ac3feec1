"""A whole run: what is probed, compiled, judged and timed, in which order. The parent process; needs no torch."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kernels_smoke.suite import registry, start
from kernels_smoke.suite.crew import Crew, End, ForemanError, Job
from kernels_smoke.suite.plan import Document, processors, resumed
from kernels_smoke.suite.registry import Entry

SCHEMA = "kernels_smoke/1"
DRIVER_PATIENCE = 20.0  # seconds: cuInit takes a second or two on a server with eight GPUs
PROBE_PATIENCE = 60.0
COMPILE_PATIENCE = 120.0


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


def run(options: Options, heard: Callable[[dict[str, Any]], None] = lambda _record: None) -> dict[str, Any]:
    """Run what ``options`` ask for and return the document (see ``suite/README.md``). Tells each record to ``heard``.

    Raises LookupError when ``options.only`` names no kernel.
    """
    start_time, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    document = Document(heard=heard)
    entries = registry.select(options.only)
    if options.device == "cuda" and options.level == "quick" and not (options.only or options.compile_only):
        entries = tuple(entry for entry in entries if entry.quick)
    facts: dict[str, Any] = {"torch": None, "triton": None, "driver": None, "gpus": []}
    with _cache_for(options) as environment:
        try:
            with Crew(environment) as crew:
                if options.compile_only:
                    _compile(options, crew, entries, document, facts)
                else:
                    _run(options, crew, entries, document, facts)
        except ForemanError as error:
            document.add(_probe("suite", "error", str(error)))
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
    }


def new_seed() -> int:
    """A seed that nobody chose: every run draws other inputs, and prints this number so that it can be repeated."""
    return random.SystemRandom().randrange(2**31)


def verdict(document: Document) -> dict[str, str]:
    """``verdict`` and ``message``: fail when something is wrong, undecided when something could not be checked."""
    records = [*document.probes, *document.cases, *document.speeds, *document.compiled, *document.mutants]
    bad = [record for record in records if record["outcome"] in _BAD]
    unknown = [record for record in records if record["outcome"] == "error"]
    if bad:
        return {"verdict": "fail", "message": _say(bad)}
    if unknown:
        return {"verdict": "undecided", "message": _say(unknown)}
    if not any(record["outcome"] in {"pass", "caught"} for record in records):
        return {"verdict": "undecided", "message": "nothing was checked"}
    return {"verdict": "pass", "message": _count(document)}


_BAD = {"fail", "wrong", "crash", "hang", "refused", "slow", "missed"}


def _say(records: Sequence[dict[str, Any]]) -> str:
    first = records[0]
    what = first.get("name") or f"{first['kernel']} / {first.get('case') or first.get('mutant')}"
    more = f" (and {len(records) - 1} more)" if len(records) > 1 else ""
    return f"{what}: {first['outcome']}: {first['message']}{more}"


def _count(document: Document) -> str:
    parts = []
    if document.cases:
        kernels = {record["kernel"] for record in document.cases if record["outcome"] == "pass"}
        parts.append(f"{len(kernels)} kernels correct in {len(document.cases)} cases")
    if document.speeds:
        passed = sum(record["outcome"] == "pass" for record in document.speeds)
        parts.append(f"{passed} of {len(document.speeds)} within their bars")
    if document.compiled:
        targets = {record["target"] for record in document.compiled}
        parts.append(f"{len(document.compiled)} compilations for {len(targets)} targets")
    if document.mutants:
        parts.append(f"{sum(record['outcome'] == 'caught' for record in document.mutants)} mutants caught")
    return ", ".join(parts) or f"{len(document.probes)} probes passed"


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
    with tempfile.TemporaryDirectory(prefix="kernels-smoke-") as folder:
        yield environment | {"TRITON_CACHE_DIR": folder, "TRITON_DISABLE_LINE_INFO": "1"}


# The three kinds of run


def _compile(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, facts: dict[str, Any]) -> None:
    if not _has_packages(crew, document, facts):
        return
    jobs = [
        _once("compiling:compile_kernels", {"kernel": entry.name, "target": target, "level": options.level}, document)
        for target in options.targets
        for entry in entries
    ]
    crew.run(jobs, at_once=processors())


def _run(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, facts: dict[str, Any]) -> None:
    target = ""
    if options.device == "cuda":  # while the foreman imports torch
        answer = driver_answer()
        document.add(answer["probe"])
        facts["driver"], facts["gpus"] = answer["driver"], answer["gpus"]
        target = answer["gpus"][0]["target"] if answer["gpus"] else ""
    if not _has_packages(crew, document, facts):
        return
    _probe_and_compile(options, crew, entries, document, target)
    if options.device == "cuda" and (not target or not _may_go_on(document)):
        return
    if options.mutants:
        crew.run(_mutant_jobs(options, entries, document), at_once=_at_once(options))
        return
    crew.run(_case_jobs(options, entries, document), at_once=_at_once(options))
    if options.device == "cuda" and options.level != "quick":
        _time(options, entries, document, crew)


def _probe_and_compile(options: Options, crew: Crew, entries: Sequence[Entry], document: Document, target: str) -> None:
    """The probes of the installation, and beside them the compilation of what will run (CUDA has not started yet)."""
    probes = {"device": options.device, "target": target}
    jobs = [_once("probes:basic", probes, document, PROBE_PATIENCE)]
    if target:
        arguments = {"target": target, "level": options.level}
        jobs += [
            _once("compiling:precompile", {"kernel": entry.name, **arguments}, document, quiet=True)
            for entry in entries
            if not options.mutants
        ]
    crew.run(jobs, at_once=processors())
    if target and options.level != "quick" and not options.mutants and _may_go_on(document):
        crew.run([_once("probes:heavy", probes, document, PROBE_PATIENCE)], at_once=1)


def _case_jobs(options: Options, entries: Sequence[Entry], document: Document) -> list[Job]:
    """One child for each family."""
    families = dict.fromkeys(entry.family for entry in entries)
    shared = {"level": options.level, "device": options.device, "seed": options.seed}
    return [
        resumed(document, "case", "correctness:cases", shared | {"kernels": _of(entries, family)}, options.patience)
        for family in families
    ]


def _of(entries: Sequence[Entry], family: str) -> list[str]:
    return [entry.name for entry in entries if entry.family == family]


def _mutant_jobs(options: Options, entries: Sequence[Entry], document: Document) -> list[Job]:
    """One child for each kernel: compiling its mutants is what takes long."""
    shared = {"device": options.device, "seed": options.seed}
    return [
        resumed(document, "mutant", "correctness:mutants", shared | {"kernels": [entry.name]}, options.patience)
        for entry in entries
    ]


def _time(options: Options, entries: Sequence[Entry], document: Document, crew: Crew) -> None:
    """Calibration, then every kernel that is right, alone on the GPU."""
    wrong = {record["kernel"] for record in document.cases if record["outcome"] != "pass"}
    crew.run([_once("calibration:calibrate", {}, document, PROBE_PATIENCE)], at_once=1)
    if document.calibration is None:
        return
    arguments = {
        "kernels": [entry.name for entry in entries if entry.name not in wrong],
        "level": options.level,
        "seed": options.seed,
        "calibration": document.calibration,
    }
    crew.run([resumed(document, "speed", "speed:speeds", arguments, options.patience)], at_once=1)


def _at_once(options: Options) -> int:
    """How many children compute at a time: the interpreter fills a CPU, and four contexts share a GPU well."""
    return processors() if options.device == "interpret" else min(4, processors())


def _once(
    task: str, arguments: dict[str, Any], document: Document, patience: float = COMPILE_PATIENCE, *, quiet: bool = False
) -> Job:
    """A job whose child is not started again. Its death is a record, unless ``quiet``: somebody else will meet it."""

    def on_end(end: End) -> tuple[Job, ...]:
        if not end.clean and not quiet:
            what = " ".join([task, *(str(value) for value in arguments.values() if isinstance(value, str))])
            outcome = "fail" if end.hang or end.status < 0 else "error"
            document.add(_probe("suite", outcome, f"{what}: {end.describe()}", {"last words": end.words}))
        return ()

    return Job(task, arguments, patience, document.add, on_end)


def _has_packages(crew: Crew, document: Document, facts: dict[str, Any]) -> bool:
    """Wait for the imports; False, with a record that says why, when torch or triton is not there."""
    ready = crew.wait_until_ready()
    facts.update(torch=ready["torch"], triton=ready["triton"])
    for name in ("torch", "triton"):
        if fault := ready["faults"].get(name):
            missing = ready["faults"].get(f"{name}_missing")
            what = f"{name} is not installed in this environment" if missing else f"{name} cannot be imported: {fault}"
            fix = [f"{sys.executable} -m pip install {'' if missing else '--force-reinstall '}{name}"]
            document.add(_probe(name, "error", what, {"interpreter": sys.executable, "error": fault}, fix))
    return not ready["faults"]


def _may_go_on(document: Document) -> bool:
    """False when CUDA itself does not work: every kernel would only say so again."""
    blocking = {"driver", "torch", "cuda_init", "suite"}
    return not any(probe["outcome"] in {"fail", "error"} and probe["name"] in blocking for probe in document.probes)


def driver_answer() -> dict[str, Any]:
    """What ``suite/driver.py`` says in a process of its own: ``{"driver", "gpus", "probe"}``, also when it hangs."""
    try:
        done = subprocess.run(
            start.command("suite.driver"), capture_output=True, timeout=DRIVER_PATIENCE, check=False, text=True
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        message = f"the NVIDIA driver does not answer: cuInit did not come back within {DRIVER_PATIENCE:.0f} s"
        fix = ["look for Xid messages in `dmesg`; a GPU that hangs needs a reset (nvidia-smi -r) or a reboot"]
        return {"driver": None, "gpus": [], "probe": _probe("driver", "error", message, fix=fix)}
    except ValueError:
        end = End(done.returncode, False, "")
        message = f"the process that asked the NVIDIA driver: {end.describe()}"
        words = {"last words": done.stderr[-2000:]}
        return {"driver": None, "gpus": [], "probe": _probe("driver", "error", message, words)}
    return answer


def _probe(
    name: str, outcome: str, message: str, evidence: dict[str, Any] | None = None, fix: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "kind": "probe",
        "name": name,
        "outcome": outcome,
        "message": message,
        "evidence": evidence or {},
        "fix": list(fix),
        "seconds": 0.0,
    }


def _environment(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "machine": platform.machine(),
        **facts,
    }
