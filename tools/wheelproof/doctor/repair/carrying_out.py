"""Carries a plan out: staged and compared first, then a snapshot, then uv; restored when anything goes wrong.

What comes is installed into a folder next to the environment first. That downloads all of it, shows which files it
writes, and whether they are what RECORD says: a file that was edited in place is edited in uv's cache, too, to which it
is a hard link. Only then the environment is touched.
"""

import base64
import contextlib
import hashlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from wheel_checks.errors import SourceError
from wheel_checks.facts.gpu.targets import runs_on
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.tables import host_gpus
from wheel_checks.interrupts import TERMINATED, terminated_as
from wheel_checks.process import StartError, run
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.sources.regular_file import open_regular
from wheel_checks.sources.scratch_folder import scratch_folder, sweep
from wheel_checks.sources.uv.own_configuration import private_folder, reaching_variables, run_uv_alone, write_private
from wheel_checks.sources.uv_binary import find_uv
from wheelproof.doctor.probes.installation.distributions import Found, find_distributions
from wheelproof.doctor.probes.installation.torch_files import read_architectures, read_version
from wheelproof.doctor.repair.plan import Plan
from wheelproof.doctor.repair.snapshot import MARGIN, STAGE, Snapshot, States, survey, without_new_lock
from wheelproof.doctor.repair.solving import SECONDS, Question, Solver
from wheelproof.doctor.repair.undoing import Undone, alone, changes, undo
from wheelproof.doctor.repair.wheel_record import differing, rows_of

GRACE = 10.0  # seconds that an interrupted uv has to end by itself
UNPACKED = (
    3  # bytes on disk for each to download: wheels of CUDA libraries grow by half, and are there twice for a time
)
LARGEST_PROGRAM = 16 << 20  # bytes of a file in bin that is saved: scripts are small


class RepairFailedError(SourceError):
    """The repair did not reach its goal, and the environment is as it was before."""


@dataclass(frozen=True)
class Repair:
    """A plan, the solver that made it, and the facts of the host that it is for."""

    plan: Plan
    solver: Solver
    facts: HostFacts

    @property
    def prefix(self) -> Path:
        """The environment."""
        return Path(self.plan.contents.prefix)

    def carry_out(self, judge: Callable[[], str]) -> None:
        """Change the environment; ``judge`` then says why that made nothing better, "" when it did.

        Raises RepairFailedError, SourceError, and what interrupts it; then the environment is as it was before.
        """
        snapshot = Snapshot(self.prefix)
        with alone(self.prefix), terminated_as(SystemExit(TERMINATED)):
            if snapshot.is_unfinished:
                raise SourceError(
                    f"an earlier repair of {self.prefix} was interrupted",
                    hint="restore it with wheelproof doctor --undo",
                )
            with scratch_folder(STAGE, self.prefix) as scratch:
                before = survey(self.prefix)
                with without_new_lock(self.prefix):
                    cache = self._stage(scratch)
                conflicts = self._conflicts()
                snapshot.begin(self._touched(scratch / "stage", before), before)
                try:
                    self._change(cache)
                    self._check(snapshot, conflicts, judge)
                    after = survey(self.prefix)
                    snapshot.complete(changes(before, after), after)
                except BaseException:
                    with _undisturbed():
                        undo(self.prefix)
                    raise

    # What comes

    def _stage(self, scratch: Path) -> list[str]:
        """Install what comes into a folder, and compare it; the options by which uv takes the same files again."""
        stage, free = scratch / "stage", shutil.disk_usage(scratch).free
        if free < UNPACKED * (self.plan.download or 0) + MARGIN:
            raise SourceError(f"{free:,} bytes are free below {self.prefix}, too few to unpack the new packages")
        if not self.plan.coming:
            stage.mkdir()
            return []
        own: list[str] = ["--cache-dir", str(scratch / "cache")]
        attempts = (own,) if self.plan.fresh else ([], own)
        wrong: list[str] = []
        for options in attempts:
            shutil.rmtree(stage, ignore_errors=True)
            self._uv("install", [*options, "--target", str(stage), "--no-deps"], self._requirements(), "staged")
            found = find_distributions(FileTree(), [str(stage)])
            wrong = list(_not_as_recorded(stage, found))
            if not wrong:
                self._check_stage(stage, found)
                return options
        raise SourceError(f"the wheel on the index does not match its RECORD: {', '.join(wrong[:3])}")

    def _check_stage(self, stage: Path, found: Sequence[Found]) -> None:
        """Raise RepairFailedError where what came is not what was planned: before anything is changed."""
        versions = {one.name: one for one in found}
        for one in self.plan.coming:
            if one.name not in versions or versions[one.name].version != one.version:
                came = versions[one.name].version if one.name in versions else "nothing"
                raise RepairFailedError(f"{one.name} {one.version} was planned, and {came} came")
        for name in self.plan.intact:
            other, _ = differing(versions[name].record, self.plan.contents.own[name].digests)
            if other:
                raise RepairFailedError(f"{name} was installed in another build than before: {other[0]} differs")
        if "torch" in versions and self.plan.cuda:
            cuda = read_version(FileTree(), f"{stage}/torch/version.py").get("cuda", "")
            if cuda != self.plan.cuda:
                raise RepairFailedError(
                    f"the installed torch is for {cuda or 'no CUDA'}, but CUDA {self.plan.cuda} was planned"
                )
            code = read_architectures(FileTree(), f"{stage}/torch/lib/libtorch_python.so")
            lacking = [gpu for gpu in host_gpus(self.facts) if gpu.sm and runs_on(code, gpu.product).how == "none"]
            if code and lacking:
                raise RepairFailedError(f"the installed torch has no code for {lacking[0].product}: {' '.join(code)}")

    def _requirements(self) -> list[str]:
        return [one.requirement for one in self.plan.coming]

    # The environment

    def _touched(self, stage: Path, before: States) -> Iterator[str]:
        """The paths, relative to the environment, of all that uv or we may change or remove."""
        prefix, own = self.plan.contents.prefix, self.plan.contents.own
        for name in (*self.plan.replaced, *self.plan.gone):
            yield from (self._relative(path, own[name].label) for path in own[name].files)
            folder = self._relative(own[name].folder, own[name].label)
            yield from (path for path in before if path == folder or path.startswith(f"{folder}/"))
        for path in self.plan.remains:
            leftover = self._relative(path, path)
            yield from (one for one in before if one == leftover or one.startswith(f"{leftover}/"))
        yield from (p for p, one in before.items() if p.startswith("bin/") and one.size < LARGEST_PROGRAM)
        sites = [os.path.relpath(folder, prefix) for folder in self.plan.contents.folders]
        for path in survey(stage):
            yield from (one for one in (path, *(f"{site}/{path}" for site in sites)) if one in before)

    def _relative(self, path: str, label: str) -> str:
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))  # noqa: PTH118, PTH119, PTH120  # links of the file itself stay
        if not real.startswith(f"{self.plan.contents.prefix}/"):
            raise SourceError(f"RECORD of {label} lists {path}, which is outside of {self.plan.contents.prefix}")
        return os.path.relpath(real, self.plan.contents.prefix)

    def _change(self, cache: Sequence[str]) -> None:
        for leftover in map(Path, self.plan.remains):
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover)
            else:
                leftover.unlink(missing_ok=True)
        if self.plan.gone:
            self._uv("uninstall", ["--python", self.plan.contents.python], self.plan.gone, "uninstalled")
        if self.plan.coming:
            again = [f"--reinstall-package={name}" for name in self.plan.replaced]
            self._uv("install", [*cache, "--no-deps", *again], self._requirements(), "installed")

    def _check(self, snapshot: Snapshot, conflicts: set[str], judge: Callable[[], str]) -> None:
        """Raise RepairFailedError where something is worse than before, or could not be restored."""
        saved, before = snapshot.before()
        after = survey(self.prefix)
        lost = [
            path
            for path in changes(before, after)
            if path in before
            and before[path].kind == "f"
            and path not in saved
            and not before[path].is_like(after.get(path))
        ]
        if lost:
            raise RepairFailedError(f"uv changed {lost[0]}, which is not part of the planned changes")
        if new := sorted(self._conflicts() - conflicts):
            raise RepairFailedError(f"uv pip check reports a new problem: {new[0]}")
        if reason := judge():
            raise RepairFailedError(reason)

    def _conflicts(self) -> set[str]:
        """What ``uv pip check`` complains of."""
        arguments = ["pip", "check", "--no-config", "--python", self.plan.contents.python]
        answer = run_uv_alone(arguments, self.solver.environ, SECONDS)
        return {line.strip() for line in (answer.output + answer.words).splitlines() if line.startswith("The package")}

    def _uv(self, action: str, options: Sequence[str], lines: Iterable[str], done: str) -> None:
        """Run uv; what it says goes to standard error. Raises RepairFailedError when it fails."""
        with private_folder() as folder:
            file = write_private(folder / "requirements.txt", "".join(f"{line}\n" for line in lines))
            own = ["--no-config"] if action == "uninstall" else self.solver.options(self._question, folder)
            command = [find_uv(), "pip", action, *own, *options, "-r", str(file)]
            try:
                status = run(
                    command,
                    stdout=sys.stderr,
                    stderr=None,
                    cwd="/",
                    environment=self._environment,
                    first=signal.SIGINT,
                    grace=GRACE,
                ).status
            except StartError as error:
                raise RepairFailedError(f"uv cannot be started: {error}") from error
        if status:
            raise RepairFailedError(f"uv exited with code {status}: nothing was {done}")

    @property
    def _question(self) -> Question:
        """The question without what is reinstalled: a staged install knows nothing of what is there."""
        return replace(self.plan.question, reinstalled=())

    @property
    def _environment(self) -> Mapping[str, str]:
        return reaching_variables(self.solver.environ)


def put_back(prefix: Path) -> Undone:
    """Put an environment back as it was before its last repair. Raises what :func:`undo` raises."""
    with alone(prefix), _undisturbed():
        sweep(STAGE, prefix)  # of a process that was killed before it changed anything
        return undo(prefix)


def _not_as_recorded(stage: Path, found: Iterable[Found]) -> Iterator[str]:
    for one in found:
        for path, digest in rows_of(one.record).items():
            file = stage / path
            is_compared = digest.startswith("sha256=") and not path.startswith("..") and not file.is_symlink()
            if is_compared and file.is_file() and _digest(file) != digest:
                yield f"{canonicalize_name(one.name)}: {path}"


def _digest(file: Path) -> str:
    with open_regular(file) as stream:
        digest = hashlib.file_digest(stream, "sha256").digest()
    return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM: a restore in progress is completed. SIGKILL leaves the journal."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
