"""Runs the cells of a matrix, several at once, each in a process of its own, and puts together what they found."""

from __future__ import annotations

import contextlib
import pickle
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import SourceError
from wheel_checks.interrupts import terminated_as
from wheel_checks.process import Child, StartError
from wheel_checks.sources.regular_file import read_end
from wheelproof.matrix.executors.base import Executor
from wheelproof.matrix.folders import make_folder, only_run
from wheelproof.matrix.trees import Trees
from wheelproof.matrix.way import Task
from wheelproof.matrix.worker import make_executor

GRACE = 60.0  # seconds that a cell has to end in good order: its containers are removed meanwhile
_TICK = 1.0  # seconds between two looks at the deadlines
_LAST_WORDS = 1500

Heard = Callable[[Task, str], None]
"""Is told of a cell each step that begins, and "" when the cell has ended."""


@dataclass(frozen=True, slots=True)
class Died:
    """A cell whose process ended otherwise than it should: how, the last that it wrote, and the path of all of it."""

    cell: str
    how: str
    words: str
    log: str = ""


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
    ended: Callable[[Task, Died | None], None],
    heard: Heard = lambda _task, _step: None,
) -> None:
    """Take all cells their way, ``jobs`` at a time. ``ended`` is called with each cell that has ended, and how when its
    process died; the records of its steps are in ``work`` then.

    Nothing that was started is left when this ends, however it ends: also of runs before that were killed. Raises
    WheelproofError when another run uses ``work`` or no cell at all can run here, KeyboardInterrupt after SIGINT and
    SIGTERM.
    """
    if not tasks:
        return
    executor = make_executor(tasks[0].executor)
    with terminated_as(KeyboardInterrupt()), only_run(work) as held, contextlib.ExitStack() as leaving:
        Trees(tasks[0].cache / "trees").prune(time.time())
        _sweep(executor.sweep)
        _refuse_in_vain(tasks, executor)
        leaving.callback(_sweep, executor.sweep)
        waiting, running = deque(tasks), leaving.enter_context(_ending())
        with selectors.DefaultSelector() as selector:
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


def _refuse_in_vain(tasks: Sequence[Task], executor: Executor) -> None:
    """Say at once, and not behind gigabytes of installing, that no cell can run here."""
    if any(task.unchanged for task in tasks):
        return  # these only resolve
    obstacles = [executor.obstacle(task.cell) for task in tasks]
    reasons = dict.fromkeys(obstacle for obstacle in obstacles if obstacle is not None)
    if None not in obstacles:
        what = "; ".join(obstacle.reason for obstacle in reasons)
        raise SourceError(f"no cell can run here: {what}", hint="; ".join(obstacle.hint for obstacle in reasons))


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
    how = f"with status {status}" if status > 0 else f"by signal {-status}"
    if worker.late:
        how += f", {GRACE:g} s after its deadline"
    words = read_end(_log(worker.task), _LAST_WORDS).decode(errors="replace")
    return Died(worker.task.cell.id, f"its process was ended {how}", words.strip(), str(_log(worker.task)))


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
