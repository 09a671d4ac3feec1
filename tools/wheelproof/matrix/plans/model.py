"""What every plan is made of: the cells, where each runs, and the commands of a cell and of the merge."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.targets.target import parse_python
from wheelproof.matrix.model import GPU_RUNNER, Cell

RECORDS = "wheelproof-records"  # the folder of the reports, below the project
MARGIN = 15  # minutes for what a job does besides the cell: check out, install, upload
_OLDEST = (3, 11)  # Python on which wheelproof runs


@dataclass(frozen=True, slots=True)
class Plan:
    """``cells`` of the file ``matrix``, a path below the project. ``install`` is the requirement that gives wheelproof,
    ``runners`` are labels by platform or "gpu", which come before those of the matrix. ``document`` is the matrix as
    JSON, for machines that have no file of it; ``only`` are the globs that chose the cells. ``made_by`` is the command
    that makes the plan.
    """

    engine: str
    matrix: str
    cells: tuple[Cell, ...]
    install: str
    executor: str
    document: str
    made_by: str
    runners: Mapping[str, tuple[str, ...]]
    only: tuple[str, ...] = ()

    def labels(self, cell: Cell, *, needed: bool = True) -> tuple[str, ...]:
        """Where a cell runs: as --runner says, as the matrix says (of GitHub), as the engine is known to have it.

        Raises UsageError where a label is ``needed`` and none is known.
        """
        key = GPU_RUNNER if cell.needs_gpu else cell.platform
        labels = self.runners.get(key) or (cell.runner if self.engine == "github" else ()) or self._hosted(key)
        if needed and not labels:
            named = f", or {key} = [...] in [runners] of {self.matrix}" if self.engine == "github" else ""
            raise UsageError(
                f"no runner of {self.engine} is known for {cell.id}", expected=f"--runner {key}=LABEL{named}"
            )
        return labels

    def _hosted(self, key: str) -> tuple[str, ...]:
        rows = load("engines")["runners"]
        return next((tuple(r["labels"]) for r in rows if (r["engine"], r["platform"]) == (self.engine, key)), ())

    def run(self, cell: str, *, program: str = "wheelproof", matrix: str = "", records: str = RECORDS) -> str:
        """The command that runs a cell; ``cell`` and ``program`` are words of the shell."""
        words = shlex.join(["matrix", "run", "--matrix", matrix or self.matrix, "--executor", self.executor])
        return f"{program} {words} --cell {cell} --records {records}"

    def merge(self, *options: str, program: str = "wheelproof", matrix: str = "", records: str = RECORDS) -> str:
        """The command that merges the reports; it expects the cells of the plan alone."""
        words = ["matrix", "merge", records, "--matrix", matrix or self.matrix, *options]
        words += [word for pattern in self.only for word in ("--only", pattern)]
        return f"{program} {shlex.join(words)}"

    @property
    def header(self) -> str:
        """The first lines of a file, as comments."""
        return f"# Made by `{self.made_by}`.\n# After a change of the matrix, make it again.\n"


def minutes(cell: Cell) -> int:
    """What a job may take: the deadline of the cell, which says more when it passes, and what is around it."""
    return max(1, -(-round(cell.deadline) // 60)) + MARGIN


def container_image(cell: Cell) -> str:
    """An image in which the cell and wheelproof can run: its own, else that of its Python.

    Raises UsageError if none exists.
    """
    if cell.image:
        return cell.image
    version, _, free_threaded = parse_python(cell.python)
    if free_threaded or version < _OLDEST:
        what = "is free-threaded, of which there is no official image" if free_threaded else "is too old for wheelproof"
        raise UsageError(
            f"{cell.id} needs an image: Python {cell.python} {what}",
            expected="image = ... for the cell, with its Python and Python 3.11 or newer as python3",
        )
    return f"python:{cell.python}-slim-trixie"


def groups(plan: Plan, *, by_image: bool = False) -> Iterator[tuple[str, Sequence[Cell]]]:
    """The cells that can be tasks of one array: of one platform, all or none with a GPU, and of one image."""
    found: dict[tuple[str, bool, str], list[Cell]] = {}
    for cell in plan.cells:
        image = container_image(cell) if by_image else ""
        found.setdefault((cell.platform, cell.needs_gpu, image), []).append(cell)
    names: dict[str, int] = {}
    for (platform, needs_gpu, _), cells in found.items():
        name = platform.replace("_", "-") + ("-gpu" if needs_gpu else "")
        names[name] = names.get(name, 0) + 1
        yield (f"{name}-{names[name]}" if by_image else name), cells


def in_venv(folder: str, install: str) -> list[str]:
    """The commands that install wheelproof into a folder; a line for each."""
    return [f'python3 -m venv "{folder}"', f'"{folder}/bin/pip" install --quiet {shlex.quote(install)}']
