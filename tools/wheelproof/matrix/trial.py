"""What is tried on the platform of a cell itself: the import of torch, and the kernels.

It runs in the place that the executor makes, which sees the installed packages and our files read-only.
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.accelerator.signals import leading_version
from wheel_checks.facts.matrix import Build, TestsRun
from wheel_checks.formats.junit import MOST_CASES, parse_junit
from wheel_checks.process import Ended
from wheelproof.kernels import BOOTSTRAP, MODULE, package_folder
from wheelproof.matrix.executors.base import Executor, Mount
from wheelproof.matrix.inside import import_modules, import_torch, run_command
from wheelproof.matrix.model import Cell, Smoke
from wheelproof.matrix.steps import Steps, digest_of_files
from wheelproof.matrix.trees import Lock, Trees

IMPORT, MODULES, COMMAND = "import", "import-modules", "command"
REPORTED = (0, 1, 3)  # exit codes of a suite that has written its report
SLOWNESS = "20"  # by which the suite multiplies its patience: emulation takes so long, and the deadline holds anyway
_SCRIPT = Path(str(import_torch.__file__))
_IMPORT_MODULES, _RUN_COMMAND = Path(str(import_modules.__file__)), Path(str(run_command.__file__))
PROJECT = "{project}"  # in a command: the folder from which the matrix is run, as of cibuildwheel's test-command


def trial_steps(cell: Cell) -> tuple[str, ...]:
    """The names of the steps that are made in place of the cell, in their order."""
    modules = [MODULES] if cell.imports or cell.under_test else []
    command = [COMMAND] if cell.command else []
    return (IMPORT, *modules, *(smoke_step(kind) for kind in cell.smoke), *command)


def smoke_step(kind: Smoke) -> str:
    """The name of the step that makes such a smoke test."""
    return f"smoke-{kind}"


def build_of(torch: Mapping[str, Any]) -> Build:
    """What an imported torch is, by what it says of itself (``inside/import_torch.py``)."""
    versions = {"cuda": torch["cuda"], "rocm": torch["hip"], "xpu": torch["xpu"]}
    name, version = next(((name, version) for name, version in versions.items() if version), ("cpu", ""))
    return Build(name, leading_version(version), torch["version"])  # torch.version.hip is 6.4.43482-0f2d60242


def try_in_place(
    cell: Cell, lock: Lock, trees: Trees, executor: Executor, steps: Steps, targets: Sequence[str], *, stops: bool
) -> None:
    """Import torch and, when that works, the library under test; make the smoke tests; run the cell's command.

    Kernels are compiled for ``targets``. With ``stops`` nothing follows the import of a torch that is neither what the
    cell wants nor what it is known to be: what else fails there follows from that.
    """
    trial = _Trial(cell, executor, steps, trees.path(lock), trees.bytecode(lock), package_folder())
    where = [lock.digest, executor.name, cell.image, cell.system_packages, dict(cell.env)]
    proof = steps.take(IMPORT, [*where, digest_of_files([_SCRIPT])], trial.import_torch)
    if proof is None or proof["error"]:
        return
    build = build_of(proof["torch"])
    if stops and not build.meets(cell.accelerator) and not build.meets(cell.expected):
        return
    if MODULES in trial_steps(cell):
        named = {"modules": cell.imports, "projects": () if cell.imports else cell.under_test}
        inputs = [*where, digest_of_files([_IMPORT_MODULES]), named]
        steps.take(MODULES, inputs, partial(trial.heard, MODULES, _IMPORT_MODULES, json.dumps(named)))
    code = digest_of_files([trial.kernels])
    for kind in cell.smoke:
        options = list(_options(cell, kind, targets))
        steps.take(smoke_step(kind), [*where, code, options], partial(trial.smoke, kind, options))
    if cell.command:
        # What it reads of the project is unknown: it is run each time.
        steps.take(COMMAND, [], trial.command, keep_for=0)


def _options(cell: Cell, kind: Smoke, targets: Sequence[str]) -> Iterator[str]:
    """The options of the suite; ``kernels_smoke/suite/cli.py`` describes them."""
    yield from ("--format", "json", "--level", cell.level, "--slowness", SLOWNESS)
    if kind is Smoke.COMPILE:
        yield from ("--compile-only", "--target", ",".join(targets))
    else:
        yield from ("--device", str(kind))
    if cell.kernels:
        yield from ("--only", ",".join(cell.kernels))


@dataclass(frozen=True, slots=True)
class _Trial:
    """The place of a cell, and what is mounted there: the tree, a folder for its byte code, the package of kernels."""

    cell: Cell
    executor: Executor
    steps: Steps
    tree: Path
    bytecode: Path
    kernels: Path

    def import_torch(self) -> dict[str, Any]:
        """What torch says of itself; "error" says why it cannot be imported. Raises WheelproofError."""
        ended = self._run(IMPORT, _SCRIPT)
        if ended.status and not ended.timed_out:
            return {"error": f"the import exited with status {ended.status}: {self.steps.last_words(IMPORT)}"}
        return self.steps.document(IMPORT, ended, (0,))

    def smoke(self, kind: Smoke, options: Sequence[str]) -> dict[str, Any]:
        """The report of the suite. Raises WheelproofError."""
        step = smoke_step(kind)
        return self.steps.document(step, self._run(step, "-c", BOOTSTRAP, self.kernels, MODULE, *options), REPORTED)

    def heard(self, step: str, script: Path, *arguments: str | Path) -> dict[str, Any]:
        """What a script says of itself; "error" says why it found a failure. Raises WheelproofError."""
        ended = self._run(step, script, *arguments)
        if ended.status and not ended.timed_out:
            return {"error": f"exited with status {ended.status}: {self.steps.last_words(step)}"}
        return self.steps.document(step, ended, (0,))

    def command(self) -> dict[str, Any]:
        """Run the command of the cell, and read and keep the JUnit reports that it wrote. Raises WheelproofError."""
        for path in self.steps.folder.glob(f"{COMMAND}-*.xml"):  # of an earlier run
            path.unlink(missing_ok=True)
        result = self.heard(COMMAND, _RUN_COMMAND, self.cell.command, Path.cwd(), self.cell.junit)
        tests: list[TestsRun] = []
        for number, report in enumerate(result.pop("reports", ()), 1):
            tests.append(self._read(number, report))
            if sum(len(found.cases) for found in tests) > MOST_CASES:
                tests[-1] = replace(
                    tests[-1], cases=(), fault=f"the reports have more than {MOST_CASES:,} tests together"
                )
        return {**result, "tests": [asdict(found) for found in tests]}

    def _read(self, number: int, report: Mapping[str, str]) -> TestsRun:
        """A JUnit report, which is kept as ``command-1.xml`` next to the log. Raises SourceError."""
        path, name = self.steps.folder / f"{COMMAND}-{number}.xml", report["file"]
        if fault := report.get("fault", ""):
            return TestsRun(name, fault=fault)
        data = b64decode(report["bytes"])
        try:
            path.write_bytes(data)
        except OSError as error:
            raise SourceError(f"{path} cannot be written: {error.strerror}", hint="see --work") from error
        try:
            found = parse_junit(data)
        except FormatError as error:
            return TestsRun(name, str(path), fault=str(error))
        return TestsRun(name, str(path), found.cases, found.unnamed)

    def _run(self, step: str, *arguments: str | Path) -> Ended:
        """Run the interpreter of the cell. A path is given as it is called in the place."""
        obstacle = self.executor.obstacle(self.cell)
        if obstacle is not None:
            raise SourceError(obstacle.reason, hint=obstacle.hint)
        mounts = (
            Mount(self.tree, "/wheelproof/tree"),
            Mount(self.bytecode, "/wheelproof/bytecode", writable=True),
            Mount(self.kernels, "/wheelproof/kernels_smoke"),
            Mount(_SCRIPT.parent, "/wheelproof/inside"),
            *([Mount(Path.cwd(), "/wheelproof/project")] if step == COMMAND else []),
        )
        with self.executor.place(self.cell, mounts) as place:
            command = [place.python, *(place.inside(a) if isinstance(a, Path) else a for a in arguments)]
            environ = {
                **self.cell.env,
                "PYTHONPATH": place.inside(self.tree),
                "PYTHONPYCACHEPREFIX": place.inside(self.bytecode),
                "PYTHONNOUSERSITE": "1",
            }
            output, log = self.steps.file(step, "out"), self.steps.file(step, "log")
            return place.run(command, environ=environ, output=output, log=log, deadline=self.steps.left)
