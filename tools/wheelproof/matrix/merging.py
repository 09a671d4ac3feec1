"""A whole run: every cell taken its way, its records read into facts, the facts judged, one report made of all.

A merge of what several machines ran ends with the same :func:`judge`, so that it says what one machine would have said.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from wheel_checks.facts.matrix import CellFacts
from wheel_checks.model import Report, Subject
from wheelproof.matrix.cells import Heard, Warned, nothing, run_cells
from wheelproof.matrix.facts import cell_facts, read_records, with_references
from wheelproof.matrix.folders import make_folder
from wheelproof.matrix.keeping import inputs_of, marked_as_kept, read_report, with_copied_logs, write_report
from wheelproof.matrix.model import Cell, Matrix
from wheelproof.matrix.records import CellRecord, MatrixIdentity, portable
from wheelproof.matrix.report import KIND, WRONG_BUILD, make_report
from wheelproof.matrix.steps import Died, Record
from wheelproof.matrix.way import RESOLVE, Task
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection
from wheelproof.version import __version__

COMMAND = "matrix run"


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be run. ``matrix`` is what was read; ``cells`` are those of it that are run, each with the wheel under
    test as a requirement. ``deadline`` holds for every cell, None for each cell's own.

    ``work`` is the work folder, ``cache`` the matrix's folder in the cache. ``records`` is the folder with a report of
    each cell: one that is complete, and whose inputs did not change, is kept, and the others are written there.
    ``trust_index`` are the addresses that may be contacted though only the tree names them; ``named`` says that the
    user named the matrix, so that local files which it names are read.
    """

    matrix: Matrix
    cells: tuple[Cell, ...]
    work: Path
    cache: Path
    executor: str = "docker"
    jobs: int = 1
    deadline: float | None = None
    offline: bool = False
    fresh: bool = False
    records: Path | None = None
    selection: Selection = EVERY_RULE
    trust_index: tuple[str, ...] = ()
    named: bool = True

    def tasks(self, run: str, unchanged: Mapping[str, str]) -> list[Task]:
        """One for each cell; ``unchanged`` are the packages of earlier records. Raises UsageError for a rule prefix."""
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
                unchanged.get(cell.id, ""),
            )
            for cell in self.cells
        ]


def run_matrix(request: Request, heard: Heard = nothing, warned: Warned = nothing) -> Report:
    """Run the cells and judge them. ``heard`` gets each step that begins, and "" when a cell has ended, ``warned``
    what keeps cells from running before anything is installed.

    Raises UsageError for a rule prefix that means nothing, WheelproofError when another run uses the work folder, and
    KeyboardInterrupt after SIGINT and SIGTERM: what was done is kept then.
    """
    opened = OpenReport(COMMAND)
    run = uuid.uuid4().hex[:12]
    request.tasks(run, {})  # a wrong prefix is said before hours of work, not after them
    identity = MatrixIdentity.of(request.matrix)
    written = {cell.id: cell for cell in request.matrix.cells}
    inputs = {cell.id: inputs_of(written[cell.id], request.selection, _ours(request)) for cell in request.cells}
    if request.records:
        make_folder(request.records)
    earlier = _earlier(request, inputs)
    found: dict[str, CellRecord] = {}

    def ended(task: Task, died: Died | None) -> None:
        name, kept, steps = task.cell.id, earlier.get(task.cell.id), read_records(task)
        record = CellRecord(
            matrix=identity,
            cell=written[name],
            inputs=inputs[name],
            version=__version__,
            ended=datetime.now(UTC).isoformat(timespec="microseconds"),
            steps=tuple(portable(step) for step in steps.values()),
            died=died,
        )
        unchanged = kept is not None and not died and list(steps) == [RESOLVE] and record.packages == kept.packages
        if kept is not None and unchanged:
            record = replace(kept, matrix=identity)
        found[name] = record
        # What could not be resolved proves nothing, and spoils no record of a cell whose other inputs are the same
        if request.records and (kept is None or unchanged or record.packages):
            one = record if unchanged else with_copied_logs(request.records, record)
            write_report(request.records, name, judge([one], opened, request.selection))
        if request.records and unchanged:
            found[name] = marked_as_kept(record).with_logs(lambda log: str(Path(request.records or "", log)))

    tasks = request.tasks(run, {name: record.packages for name, record in earlier.items()})
    run_cells(tasks, make_folder(request.work), jobs=request.jobs, ended=ended, heard=heard, warned=warned)
    return judge([found[task.cell.id] for task in tasks], opened, request.selection)


def judge(
    records: Sequence[CellRecord],
    opened: OpenReport,
    selection: Selection = EVERY_RULE,
    *,
    missing: Sequence[CellFacts] = (),
    more: Sequence[Subject] = (),
    notes: Sequence[str] = (),
) -> Report:
    """The report on cells that were run, wherever that was, and on those that are ``missing``.

    Raises UsageError for a rule prefix that means nothing.
    """
    facts = [*with_references([*map(facts_of, records)]), *missing]
    members = [member.id for member in records[0].matrix.cells] if records else []
    facts.sort(key=lambda cell: members.index(cell.id) if cell.id in members else len(members))
    steps: dict[str, Mapping[str, Record]] = {cell.id: {} for cell in missing}
    steps |= {record.cell.id: record.by_step for record in records}
    documents = {record.cell.id: record.as_document() for record in records}
    return make_report(facts, steps, opened, selection, portable=documents, more=more, notes=notes)


def facts_of(record: CellRecord) -> CellFacts:
    """What a record says of its cell, seen alone."""
    return cell_facts(record.cell, record.by_step, record.died, record.matrix.source)


def _ours(request: Request) -> tuple[Path, ...]:
    """The folders that this run writes, which are no input of it though they may be in the project."""
    return tuple(folder for folder in (request.work, request.records) if folder)


def _earlier(request: Request, inputs: Mapping[str, str]) -> dict[str, CellRecord]:
    """The records of cells that are complete, and whose inputs are the same, by cell."""
    if request.records is None or request.fresh:
        return {}
    read = {cell.id: read_report(request.records, cell.id) for cell in request.cells}
    return {name: record for name, record in read.items() if record and record.inputs and record.inputs == inputs[name]}
