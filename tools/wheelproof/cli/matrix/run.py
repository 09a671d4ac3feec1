"""``wheelproof matrix run``: takes the cells of a matrix through the whole way on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.commands import in_words, option
from wheel_checks.commands import run as command
from wheel_checks.errors import UsageError
from wheel_checks.phrases import joined, plural, summarised
from wheelproof.cli.matrix.options import add_matrix_options, matrix_path, named_cells
from wheelproof.cli.options import OutputOptions, add_list, add_output_options, emit, note
from wheelproof.cli.progress import Progress

if TYPE_CHECKING:  # not for --help
    from collections.abc import Mapping, Sequence

    from wheel_checks.model import Unavailable
    from wheelproof.matrix.model import Cell
    from wheelproof.matrix.way import Task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof matrix run``."""
    add_matrix_options(parser)
    add_list(parser, "--cell", "ID", "only the cell with exactly this id (repeatable)")
    parser.add_argument(
        "--executor",
        choices=["docker", "venv"],
        default="docker",
        help="docker: containers, emulated where the cell is for another CPU; venv: this machine (default: docker)",
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="cells at a time (default: 2)")
    parser.add_argument(
        "--deadline", type=float, metavar="SECONDS", help="what one cell may take (default: what the matrix says)"
    )
    parser.add_argument(
        "--work", metavar="FOLDER", help="where steps and logs are kept (default: in the cache folder, by matrix)"
    )
    parser.add_argument(
        "--records",
        metavar="FOLDER",
        help="write a report of each cell to FOLDER, and keep cells whose report is there, complete, and of the same "
        "inputs; `matrix merge` reads such a folder",
    )
    parser.add_argument("--fresh", action="store_true", help="do again what an earlier run has done")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Take the cells their way and print the merged report. Raises WheelproofError."""
    from wheelproof.matrix.folders import default_cache, default_work
    from wheelproof.matrix.merging import Request, run_matrix
    from wheelproof.matrix.places import with_places
    from wheelproof.matrix.reading import read_matrix
    from wheelproof.matrix.tested import with_requirement
    from wheelproof.matrix.way import step_names

    output = OutputOptions.from_arguments(arguments)
    if arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs} does nothing", expected="a number from 1 on")
    if arguments.deadline is not None and not arguments.deadline > 0:
        raise UsageError(f"--deadline {arguments.deadline:g} is no time to wait", expected="a number above 0")
    path, named = matrix_path(arguments), arguments.matrix is not None
    matrix = read_matrix(path)
    cells, cache = named_cells(matrix, arguments), default_cache()
    if not named:
        _refuse_what_a_tree_runs(cells, path)
    cells = tuple(with_places(with_requirement(cell, Path.cwd()), Path.cwd()) for cell in cells)
    work = Path(arguments.work) if arguments.work else default_work(cache, path, arguments.cell)
    request = Request(
        matrix,
        cells,
        work,
        cache,
        executor=arguments.executor,
        jobs=arguments.jobs,
        deadline=arguments.deadline,
        offline=output.offline,
        fresh=arguments.fresh,
        records=Path(arguments.records) if arguments.records else None,
        selection=output,
        trust_index=output.trust_index,
        named=named,
    )
    note(f"steps and logs are kept in {work}", quiet=output.quiet)
    with CellProgress(len(cells), sum(len(step_names(cell)) - 1 for cell in cells), quiet=output.quiet) as progress:
        report = run_matrix(request, progress.begins, lambda obstacles: _warn(obstacles, len(cells), output))
    return emit(report, output)


def _warn(obstacles: Mapping[str, Unavailable], total: int, output: OutputOptions) -> None:
    """Say which cells cannot go on here, cells with the same obstacle in one line."""
    note(
        f"{len(obstacles)} of {plural(total, 'cell')} cannot run here; nothing is installed for them",
        quiet=output.quiet,
    )
    for obstacle in dict.fromkeys(obstacles.values()):
        cells = summarised([cell for cell, found in obstacles.items() if found == obstacle], 3)
        hint = f" ({obstacle.hint})" if obstacle.hint else ""
        note(f"{cells}: {obstacle.reason}{hint}", quiet=output.quiet)


def _refuse_what_a_tree_runs(cells: Sequence[Cell], path: Path) -> None:
    """Raise UsageError for keys that run something: only a matrix that the user named may have them."""
    keys = dict.fromkeys(key for cell in cells for key in cell.executes)
    if keys:
        raise UsageError(
            f"{path} says what is run, by {joined(list(keys))}, and was found in this folder, not named",
            expected="a matrix that you name, after you have read it",
            hint=in_words(command("wheelproof", "matrix", "run", option("--matrix", str(path)))),
        )


class CellProgress(Progress):
    """Shows how many steps have begun, and at which step each cell is.

    The time that is left is estimated from cells that have ended: steps are of many lengths, and cells of few.
    """

    def __init__(self, cells: int, steps: int, *, quiet: bool) -> None:
        super().__init__("running", steps, "steps", alike=True, quiet=quiet)
        self._at: dict[str, str] = {}
        self._begun: set[str] = set()  # the cells that are run
        self._cells, self._cells_ended = cells, 0

    def begins(self, task: Task, step: str) -> None:
        """A cell begins a step; "" when it has ended, or is not run."""
        if step:
            if not (task.plans or self._begun):
                self.planned(self.total, alike=True)  # planning took its time at another pace
            self._begun |= set() if task.plans else {task.cell.id}
            self._at[task.cell.id] = step
            self.advance()
            return
        self._at.pop(task.cell.id, None)
        if task.cell.id in self._begun:
            self._cells_ended += 1
        elif not task.plans:
            self._cells -= 1
        self.advance(0)

    @property
    def part(self) -> float:
        """How many of the cells that are run have ended, from 0 to 1."""
        return self._cells_ended / self._cells if self._begun else 0.0

    def __str__(self) -> str:
        at = ", ".join(f"{cell}: {step}" for cell, step in self._at.items())
        return f"{super().__str__()} ({at})" if at else super().__str__()
