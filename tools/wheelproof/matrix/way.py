"""The way of one cell: resolve, verify, install, look at what is installed, import, run or compile kernels.

Everything that reads an index or a file runs on this host. What must run on the platform itself is in ``trial.py``.
"""

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

import wheel_checks
import wheelproof
from wheel_checks.errors import SourceError
from wheel_checks.facts.gpu.compile_targets import parse_target
from wheel_checks.sources.file_urls import path_of
from wheel_checks.sources.installer_config import IndexConfig, configured_indexes
from wheel_checks.sources.regular_file import open_regular
from wheel_checks.sources.trust import Trust
from wheel_checks.sources.uv.resolver import resolve
from wheelproof.matrix.commands import run_command
from wheelproof.matrix.executors.base import Executor
from wheelproof.matrix.folders import make_folder
from wheelproof.matrix.model import LATEST, NIGHTLY, Cell
from wheelproof.matrix.places import Places, allowed_text, places_of
from wheelproof.matrix.steps import Steps, digest_of_files
from wheelproof.matrix.trees import Lock, Trees
from wheelproof.matrix.trial import trial_steps, try_in_place

RESOLVE, VERIFY, PREFLIGHT, INSTALL, INSTALLED = "resolve", "verify", "preflight", "install", "installed"
FRESH_INDEX = 3600.0  # seconds for which the index is believed not to have changed
REPORTED = (0, 1, 3)  # exit codes of a command that has written a report


@dataclass(frozen=True, slots=True)
class Task:
    """One cell, and how it is to go its way. ``run`` names the run, ``fresh`` does again what was done.

    ``work`` is the work folder of the run, ``cache`` the matrix's folder in the cache, ``deadline`` the seconds that
    the cell may take. ``select`` and ``ignore`` are prefixes of rules. ``trust_index`` are the addresses that may be
    contacted though only the tree names them; local files that the matrix names are read when the user ``named`` it.
    ``stops``: a cell whose torch is another build than expected ends with the import, since that alone fails it.
    ``unchanged`` is the digest of the packages of an earlier record ("" without one): a cell whose requirements still
    resolve to these ends there. With ``plans`` it ends before anything is installed.
    """

    cell: Cell
    run: str
    work: Path
    cache: Path
    executor: str
    deadline: float
    offline: bool = False
    fresh: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    trust_index: tuple[str, ...] = ()
    named: bool = True
    stops: bool = True
    unchanged: str = ""
    plans: bool = False

    @property
    def folder(self) -> Path:
        """Where the steps of the cell are kept."""
        return self.work / self.cell.id


def step_names(cell: Cell) -> tuple[str, ...]:
    """The steps of a cell, in their order."""
    return (RESOLVE, VERIFY, PREFLIGHT, INSTALL, INSTALLED, *trial_steps(cell))


def compile_targets(cell: Cell) -> tuple[str, ...]:
    """What the compilers call the GPUs of a cell: sm_100."""
    return tuple(dict.fromkeys(parse_target(gpu) for gpu in cell.gpu))


def go(task: Task, executor: Executor, heard: Callable[[str], None] = lambda _step: None) -> None:
    """Take a cell as far as it comes; every step leaves a record. Raises SourceError when none can be written.

    ``heard`` gets the name of each step as it begins.
    """
    cell, trees = task.cell, Trees(task.cache / "trees")
    steps = Steps(make_folder(task.folder), task.run, task.deadline, task.fresh, heard, cell.timeout, cell.retries)
    configured = configured_indexes(os.environ, Path.cwd(), trust=Trust.parse(task.trust_index))
    places = places_of(cell, configured, named=task.named)
    resolving = [
        cell.torch,
        cell.requirements,
        cell.constraints,
        cell.pre,
        cell.target.id,
        task.trust_index,
        places.identity,
    ]
    resolving.append(list(_digests_of_files(cell)))
    resolved = steps.take(RESOLVE, resolving, lambda: _resolve(task, places, steps), keep_for=FRESH_INDEX)
    if resolved is None:
        return
    lock = Lock.from_json(resolved["packages"])
    if lock.identity == task.unchanged:
        return
    judging = [lock.digest, _gpus(cell), task.select, task.ignore, our_code()]
    target = [f"torch=={lock.versions['torch']}", "--platform", cell.target.platform, "--python", cell.python]
    verifying = [*resolving, *judging, *target]
    # The places of the cell alone: its variables are for what runs in it.
    environ = dict(os.environ) if places.indexes == configured and not places.torch else places.environment(os.environ)
    depth = ["--depth", "links"]
    steps.take(VERIFY, verifying, lambda: _judge(task, steps, VERIFY, [*target, *depth], environ), keep_for=FRESH_INDEX)
    if task.plans:
        return
    if steps.take(INSTALL, [], lambda: _install(task, trees, lock, places.of_a_lock, steps), keep_for=0) is None:
        return
    installed = ["--installed", "--python", str(trees.path(lock))]
    steps.take(INSTALLED, judging, lambda: _judge(task, steps, INSTALLED, installed, environ))
    try_in_place(cell, lock, trees, executor, steps, compile_targets(cell), stops=task.stops)


def _digests_of_files(cell: Cell) -> Iterator[str]:
    """The sha256 of each local wheel that a requirement names: it may be built again under the same name."""
    urls = [url for text in cell.requirements if (url := Requirement(text).url or "").startswith("file:")]
    for url in urls:
        with (
            contextlib.suppress(OSError, SourceError),
            open_regular(path_of(url)) as file,
        ):  # uv says why it is not present
            yield hashlib.file_digest(file, "sha256").hexdigest()


def _resolve(task: Task, places: Places, steps: Steps) -> dict[str, Any]:
    """The lock of the cell. The latest torch is sought alone: what else is installed must work with that one.

    uv takes pre-releases behind all others where it may take them at all, unless all pre-releases are allowed.
    """
    cell = task.cell
    if cell.torch in (LATEST, NIGHTLY):
        pre = cell.pre or cell.torch == NIGHTLY
        newest = _locked(task, places, steps, [cell.torch_requirement], pre=pre).versions["torch"]
        if cell.torch == NIGHTLY and not Version(newest).is_devrelease:
            what = f"no index of the cell has a nightly torch for it; the latest that they have is {newest}"
            raise SourceError(what, hint="name the index of nightly builds, by torch-index or index")
        cell = replace(cell, torch=newest)
    lock = _locked(task, places, steps, cell.requirements, pre=cell.pre)
    return {"packages": lock.as_json(), "sizes": dict(lock.sizes)}


def _locked(task: Task, places: Places, steps: Steps, requirements: Sequence[str], *, pre: bool) -> Lock:
    cell, indexes = task.cell, places.indexes
    allowed, limits = (
        [allowed_text(text, indexes, named=task.named) for text in texts] for texts in (requirements, cell.constraints)
    )
    found = resolve(
        allowed,
        cell.target,
        indexes,
        constraints=limits,
        pinned=places.pinned,
        pre=pre,
        offline=task.offline,
        timeout=steps.left,
    )
    return Lock.of(found.packages)


def _install(task: Task, trees: Trees, lock: Lock, indexes: IndexConfig, steps: Steps) -> dict[str, Any]:
    there = trees.path(lock).is_dir()
    path = trees.install(lock, task.cell.target, indexes, offline=task.offline, deadline=steps.left)
    return {"tree": str(path), "there": there}


def _judge(task: Task, steps: Steps, step: str, arguments: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """The report of ``wheelproof verify`` with these arguments; nothing that is configured here changes it."""
    output = steps.file(step, "out")
    command = [sys.executable, "-P", "-m", "wheelproof", "verify", *arguments, "--format", "json"]
    command += ["--fail-on", "never", "--config", os.devnull, "--quiet"]
    command += ["--offline"] if task.offline else ["--refresh"] if task.fresh else []
    command += ["--trust-index", ",".join(task.trust_index)] if task.trust_index else []
    for option, values in (("--gpu", _gpus(task.cell)), ("--select", task.select), ("--ignore", task.ignore)):
        command += [option, ",".join(values)] if values else []
    ours = {name: value for name, value in environ.items() if not name.startswith("WHEELPROOF_") or name in _KEPT}
    ended = run_command(command, environ=ours, output=output, log=steps.file(step, "log"), deadline=steps.left)
    return steps.document(step, ended, REPORTED)


_KEPT = ("WHEELPROOF_CACHE_DIR", "WHEELPROOF_DEBUG")


def _gpus(cell: Cell) -> tuple[str, ...]:
    """The GPUs whose code the wheel must have: by capability, since kernels are compiled on any CPU for all of them."""
    targets = compile_targets(cell) if cell.expected.accelerator == "cuda" else ()
    return tuple(target for target in targets if target.startswith("sm_"))


def our_code() -> str:
    """The digest of all that judges: another release judges otherwise."""
    return digest_of_files(Path(str(package.__file__)).parent for package in (wheel_checks, wheelproof))
