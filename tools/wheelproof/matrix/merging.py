"""A whole run: every cell taken its way, its records read into facts, the facts judged, one report made of all."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.model import Report
from wheelproof.matrix.cells import Heard, run_cells
from wheelproof.matrix.facts import cell_facts, read_records, with_references
from wheelproof.matrix.folders import make_folder
from wheelproof.matrix.model import Cell
from wheelproof.matrix.report import KIND, WRONG_BUILD, make_report
from wheelproof.matrix.way import Task
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be run. ``source`` names the matrix; ``deadline`` holds for every cell, None for each cell's own.

    ``work`` is the work folder, ``cache`` the matrix's folder in the cache. ``trust_index``
    are the addresses that may be contacted though only the tree names them; ``named`` says that the user named the
    matrix, so that local files which it names are read.
    """

    source: str
    cells: tuple[Cell, ...]
    work: Path
    cache: Path
    executor: str = "docker"
    jobs: int = 1
    deadline: float | None = None
    offline: bool = False
    fresh: bool = False
    selection: Selection = EVERY_RULE
    trust_index: tuple[str, ...] = ()
    named: bool = True

    def tasks(self, run: str) -> list[Task]:
        """One for each cell. Raises UsageError for a rule prefix that means nothing."""
        judged = WRONG_BUILD in {rule.id for rule in self.selection.rules(KIND)}
        stops = judged and not self.selection.silences(WRONG_BUILD)
        return [
            Task(
                cell,
                run,
                self.work,
                self.cache,
                self.executor,
                self.deadline or cell.deadline,
                self.offline,
                self.fresh,
                self.selection.asked,
                self.selection.ignore,
                self.trust_index,
                self.named,
                stops,
            )
            for cell in self.cells
        ]


def run_matrix(request: Request, heard: Heard = lambda _task, _step: None) -> Report:
    """Run the cells and judge them. ``heard`` is told each step that begins, and "" when a cell has ended.

    Raises UsageError for a rule prefix that means nothing, WheelproofError when another run uses the work folder, and
    KeyboardInterrupt after SIGINT and SIGTERM: what was done is kept then.
    """
    opened = OpenReport("matrix run")
    tasks = request.tasks(uuid.uuid4().hex[:12])  # a wrong prefix is said before hours of work, not behind them
    died = {death.cell: death for death in run_cells(tasks, make_folder(request.work), jobs=request.jobs, heard=heard)}
    records = {task.cell.id: read_records(task) for task in tasks}
    facts = [cell_facts(task, records[task.cell.id], died.get(task.cell.id), request.source) for task in tasks]
    return make_report(with_references(facts), records, opened, request.selection)
