"""Run the cells of a matrix, several at once, each in its own process, and join their results."""

from __future__ import annotations

import contextlib
import pickle
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheel_checks.errors import SourceError
from wheel_checks.model import Unavailable
from wheel_checks.process.child import Child, StartError
from wheel_checks.process.interrupts import terminated_as
from wheel_checks.sources.regular_file import read_end
from wheelproof.matrix.cell.pipeline import PREFLIGHT, Task
from wheelproof.matrix.cell.steps import Died, refuse
from wheelproof.matrix.cell.trees import Trees
from wheelproof.matrix.folders import make_folder, only_run
from wheelproof.matrix.records.facts import resolved_lock
from wheelproof.matrix.run.blockers import executor_blocker, lock_blockers
from wheelproof.matrix.run.worker import make_executor

GRACE = 60.0  # seconds that a cell has to end in good order: its containers are removed meanwhile
_TICK = 1.0  # seconds between two looks at the deadlines
_LAST_WORDS = 1500

Heard = Callable[[Task, str], None]
"""Is called with each step of a cell that begins, and with "" when the cell has ended."""
Ended = Callable[[Task, Died | None], None]
"""Is given each cell that has ended, and how when its process died."""
Warned = Callable[[Mapping[str, Unavailable]], None]
"""Is given the blockers by cell, before anything is installed."""


def nothing(*_: object) -> None:
    """Ignore the event."""


@dataclass(slots=True)
class _Worker:
    task: Task
    child: Child
    end: float
    late: bool = False


def run_cells(
    tasks: Sequence[Task],
    work: Path,
    *,
    jobs: int,
    ended: Ended,
    heard: Heard = nothing,
    warned: Warned = nothing,
) -> None:
    """Run all cells, ``jobs`` at a time. ``ended`` is called with each cell that has ended, and how when its
    process died; the records of its steps are in ``work`` then.

    First all of them are resolved and judged. Cells that cannot run here are not installed: ``warned`` gets their
    obstacles, and a record reports it. All started processes and containers are removed at the end, also after an
    error, and those of earlier killed runs. Raises WheelproofError when another run uses ``work`` or no cell at all can
    run here, KeyboardInterrupt after SIGINT and SIGTERM.
    """
    if not tasks:
        return
    executor = make_executor(tasks[0].executor)
    with terminated_as(KeyboardInterrupt()), only_run(work) as held, contextlib.ExitStack() as leaving:
        Trees(tasks[0].cache / "trees").prune(time.time())
        _sweep(executor.sweep)
        by_task = [(task, executor_blocker(task.cell, executor)) for task in tasks]
        blockers = {task.cell.id: found for task, found in by_task if found is not None}
        if len(blockers) == len(tasks) and not any(task.unchanged for task in tasks):
            _refuse_in_vain(blockers)
        leaving.callback(_sweep, executor.sweep)
        planned: dict[str, Died | None] = {}
        _run_all([replace(task, plans=True) for task in tasks], held, jobs, _noted(planned), heard)
        locks = {task.cell.id: resolved_lock(task) for task in tasks if planned[task.cell.id] is None}
        kept = {task.cell.id for task in tasks if (lock := locks.get(task.cell.id)) and lock.identity == task.unchanged}
        left = [task for task in tasks if locks.get(task.cell.id) and task.cell.id not in kept]
        blockers |= lock_blockers([task for task in left if task.cell.id not in blockers])
        blockers = {name: found for name, found in blockers.items() if name not in kept}
        for task in left:
            if found := blockers.get(task.cell.id):
                refuse(task.folder, task.run, PREFLIGHT, found)
        if blockers:
            warned(blockers)
        going = [task for task in left if task.cell.id not in blockers]
        for task in tasks:
            if task not in going:
                ended(task, planned[task.cell.id])
                heard(task, "")
        _run_all(going, held, jobs, ended, heard)


def _noted(planned: dict[str, Died | None]) -> Ended:
    """Takes down how each cell ended."""

    def note(task: Task, death: Died | None) -> None:
        planned[task.cell.id] = death

    return note


def _run_all(tasks: Sequence[Task], held: int, jobs: int, ended: Ended, heard: Heard) -> None:
    """Run a process for each task, ``jobs`` at a time; ``ended`` is called as each ends."""
    waiting = deque(tasks)
    with _ending() as running, selectors.DefaultSelector() as selector:
        while waiting or running:
            while waiting and len(running) < jobs:
                worker = _start(waiting.popleft(), held)
                running.append(worker)
                selector.register(worker.child, selectors.EVENT_READ, worker)
            for key, _ in selector.select(_TICK):
                worker = key.data
                lines = worker.child.lines()
                if lines is not None:
                    for line in lines:
                        heard(worker.task, line)
                    continue
                selector.unregister(worker.child)
                death = _reaped(worker)
                running.remove(worker)
                ended(worker.task, death)
                heard(worker.task, "")
            for worker in running:
                _hurry(worker)


def _refuse_in_vain(blockers: Mapping[str, Unavailable]) -> None:
    """Report before gigabytes are installed that no cell can run here."""
    reasons = dict.fromkeys(blockers.values())
    what = "; ".join(blocker.reason for blocker in reasons)
    hints = dict.fromkeys(blocker.hint for blocker in reasons if blocker.hint)
    raise SourceError(f"no cell can run here: {what}", hint="; ".join(hints))


def _start(task: Task, held: int) -> _Worker:
    """Start the process of a cell: a Ctrl-C reaches this process alone. Raises SourceError.

    It shares the descriptor ``held``, which keeps other runs out of the work folder.
    """
    command = [sys.executable, "-P", "-m", "wheelproof.matrix.run.worker"]
    make_folder(task.folder)
    try:
        with _log(task).open("wb") as log:
            child = Child(
                command, stdin=pickle.dumps(task), stderr=log, pass_fds=[held], first=signal.SIGTERM, grace=GRACE
            )
    except (OSError, StartError) as error:
        raise SourceError(f"the process of {task.cell.id} cannot be started: {error}") from error
    return _Worker(task, child, time.monotonic() + task.deadline + GRACE)


def _hurry(worker: _Worker) -> None:
    """End a worker that does not keep its deadline itself: in good order at first, by force then."""
    if time.monotonic() < worker.end:
        return
    worker.child.send(signal.SIGKILL if worker.late else signal.SIGTERM)
    worker.late, worker.end = True, time.monotonic() + GRACE


def _reaped(worker: _Worker) -> Died | None:
    worker.child.follow({}, worker.end)
    worker.child.end()
    status = worker.child.status
    if status == 0:
        return None
    how = f"exited with status {status}" if status > 0 else f"was killed by signal {-status}"
    if worker.late:
        how += f", {GRACE:g} s after its deadline"
    words = read_end(_log(worker.task), _LAST_WORDS).decode(errors="replace")
    return Died(worker.task.cell.id, f"its process {how}", words.strip(), str(_log(worker.task)))


@contextlib.contextmanager
def _ending() -> Iterator[list[_Worker]]:
    """The running workers. Those left at the end of the block are terminated, and killed if they do not exit."""
    running: list[_Worker] = []
    try:
        yield running
    finally:
        for worker in running:
            worker.child.send(signal.SIGTERM)
        for worker in running:
            worker.child.end()


def _sweep(sweep: Callable[[], Sequence[str]]) -> None:
    """Remove leftovers; errors of an engine are reported by the cells."""
    with contextlib.suppress(SourceError):
        sweep()


def _log(task: Task) -> Path:
    return task.folder / "worker.log"
