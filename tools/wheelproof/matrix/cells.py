"""Runs the cells of a matrix, several at once, each in its own process, and puts together what they found."""

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
from wheel_checks.interrupts import terminated_as
from wheel_checks.model import Unavailable
from wheel_checks.process import Child, StartError
from wheel_checks.sources.regular_file import read_end
from wheelproof.matrix.facts import resolved_lock
from wheelproof.matrix.folders import make_folder, only_run
from wheelproof.matrix.obstacles import obstacle_of_place, obstacles_of_locks
from wheelproof.matrix.steps import Died, refuse
from wheelproof.matrix.trees import Trees
from wheelproof.matrix.way import PREFLIGHT, Task
from wheelproof.matrix.worker import make_executor

GRACE = 60.0  # seconds that a cell has to end in good order: its containers are removed meanwhile
_TICK = 1.0  # seconds between two looks at the deadlines
_LAST_WORDS = 1500

Heard = Callable[[Task, str], None]
"""Is called with each step of a cell that begins, and with "" when the cell has ended."""
Ended = Callable[[Task, Died | None], None]
"""Is given each cell that has ended, and how when its process died."""
Warned = Callable[[Mapping[str, Unavailable]], None]
"""Is given the obstacles by cell, before anything is installed."""


def nothing(*_: object) -> None:
    """Pass over what is heard."""


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
    """Take all cells their way, ``jobs`` at a time. ``ended`` is called with each cell that has ended, and how when its
    process died; the records of its steps are in ``work`` then.

    First all of them are resolved and judged. Of those that cannot continue here nothing is installed: ``warned`` is
    given their obstacles, and a record says so. Nothing that was started is left when this ends, however it ends: also
    of runs before that were killed. Raises WheelproofError when another run uses ``work`` or no cell at all can run
    here, KeyboardInterrupt after SIGINT and SIGTERM.
    """
    if not tasks:
        return
    executor = make_executor(tasks[0].executor)
    with terminated_as(KeyboardInterrupt()), only_run(work) as held, contextlib.ExitStack() as leaving:
        Trees(tasks[0].cache / "trees").prune(time.time())
        _sweep(executor.sweep)
        places = [(task, obstacle_of_place(task.cell, executor)) for task in tasks]
        obstacles = {task.cell.id: found for task, found in places if found is not None}
        if len(obstacles) == len(tasks) and not any(task.unchanged for task in tasks):
            _refuse_in_vain(obstacles)
        leaving.callback(_sweep, executor.sweep)
        planned: dict[str, Died | None] = {}
        _run_all([replace(task, plans=True) for task in tasks], held, jobs, _noted(planned), heard)
        locks = {task.cell.id: resolved_lock(task) for task in tasks if planned[task.cell.id] is None}
        kept = {task.cell.id for task in tasks if (lock := locks.get(task.cell.id)) and lock.identity == task.unchanged}
        left = [task for task in tasks if locks.get(task.cell.id) and task.cell.id not in kept]
        obstacles |= obstacles_of_locks([task for task in left if task.cell.id not in obstacles])
        obstacles = {name: found for name, found in obstacles.items() if name not in kept}
        for task in left:
            if found := obstacles.get(task.cell.id):
                refuse(task.folder, task.run, PREFLIGHT, found)
        if obstacles:
            warned(obstacles)
        going = [task for task in left if task.cell.id not in obstacles]
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


def _refuse_in_vain(obstacles: Mapping[str, Unavailable]) -> None:
    """Say at once, and not behind gigabytes of installing, that no cell can run here."""
    reasons = dict.fromkeys(obstacles.values())
    what = "; ".join(obstacle.reason for obstacle in reasons)
    hints = dict.fromkeys(obstacle.hint for obstacle in reasons if obstacle.hint)
    raise SourceError(f"no cell can run here: {what}", hint="; ".join(hints))


def _start(task: Task, held: int) -> _Worker:
    """Start the process of a cell: a Ctrl-C reaches this process alone. Raises SourceError.

    It shares the descriptor ``held``, which keeps other runs out of the work folder.
    """
    command = [sys.executable, "-P", "-m", "wheelproof.matrix.worker"]
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
    """The workers that run. When this is left while some do, they are told to end, and killed if they do not."""
    running: list[_Worker] = []
    try:
        yield running
    finally:
        for worker in running:
            worker.child.send(signal.SIGTERM)
        for worker in running:
            worker.child.end()


def _sweep(sweep: Callable[[], Sequence[str]]) -> None:
    """What an engine that does not answer says, the cells say better."""
    with contextlib.suppress(SourceError):
        sweep()


def _log(task: Task) -> Path:
    return task.folder / "worker.log"
