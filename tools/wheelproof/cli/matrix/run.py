"""``wheelproof matrix run``: runs the cells of a matrix on this host."""

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
    add_list(parser, "--cell", "ID", "only the cell with this id (repeatable)")
    parser.add_argument(
        "--executor",
        choices=["docker", "venv"],
        default="docker",
        help="docker: in containers, emulating other CPUs; venv: on this host (default: docker)",
    )
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="the number of cells to run in parallel (default: 2)"
    )
    parser.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="the timeout of one cell, in seconds (default: that of the matrix)",
    )
    parser.add_argument(
        "--work", metavar="FOLDER", help="the folder for steps and logs (default: one per matrix, in the cache folder)"
    )
    parser.add_argument(
        "--records",
        metavar="FOLDER",
        help="write a report of each cell to FOLDER, and skip cells with a complete report of the same inputs there; "
        "`matrix merge` reads such a folder",
    )
    parser.add_argument("--fresh", action="store_true", help="repeat steps that an earlier run completed")
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
        raise UsageError(f"--jobs {arguments.jobs} does nothing", expected="a number of at least 1")
    if arguments.deadline is not None and not arguments.deadline > 0:
        raise UsageError(f"--deadline {arguments.deadline:g} is not a valid timeout", expected="a number above 0")
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
        report = run_matrix(request, progress.begins, lambda blockers: _warn(blockers, len(cells), output))
    return emit(report, output)


def _warn(blockers: Mapping[str, Unavailable], total: int, output: OutputOptions) -> None:
    """Say which cells cannot continue here, cells with the same obstacle in one line."""
    note(
        f"{len(blockers)} of {plural(total, 'cell')} cannot run here and are skipped",
        quiet=output.quiet,
    )
    for blocker in dict.fromkeys(blockers.values()):
        cells = summarised([cell for cell, found in blockers.items() if found == blocker], 3)
        hint = f" ({blocker.hint})" if blocker.hint else ""
        note(f"{cells}: {blocker.reason}{hint}", quiet=output.quiet)


def _refuse_what_a_tree_runs(cells: Sequence[Cell], path: Path) -> None:
    """Raise UsageError for keys that run something: only a matrix that the user named may have them."""
    keys = dict.fromkeys(key for cell in cells for key in cell.executes)
    if keys:
        raise UsageError(
            f"{path} runs commands (keys {joined(list(keys))}), but was found in this folder, not named on the command "
            f"line",
            expected="a matrix named with --matrix, after review",
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
