"""What keeps cells from running, found before anything is installed: the place, the lock, the room on the disk."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.model import Unavailable
from wheel_checks.phrases import human_bytes, joined, plural
from wheel_checks.sources.installer_config import configured_indexes
from wheel_checks.sources.trust import Trust
from wheel_checks.sources.uv.resolver import python_platform
from wheel_checks.sources.uv_binary import run_uv
from wheelproof.matrix.executors.base import Executor
from wheelproof.matrix.facts import resolved_lock, wheel_of_torch
from wheelproof.matrix.model import Cell, Smoke
from wheelproof.matrix.places import places_of
from wheelproof.matrix.trees import Lock, Trees, nearest_folder
from wheelproof.matrix.way import Task

UNPACKED = 1.6  # how much larger than its wheels a tree is at least: torch 2.10.0 and 2.11.0 for Python 3.13 on both
# machines have 1.60 (aarch64, CUDA), 1.74 and 2.45 (x86_64, CUDA) and 3.78 (aarch64, CPU) (November 2026)
TRITON = ("triton", "pytorch-triton")  # the second is its name in nightly builds
_PATIENCE = 60.0  # seconds for uv to say where its cache is, or what it would download


def obstacle_of_place(cell: Cell, executor: Executor) -> Unavailable | None:
    """Why a cell can be neither resolved nor run here, with what to do about it; None when it can."""
    try:
        python_platform(cell.target)
    except UsageError as error:
        return Unavailable(error.what, f"expected {error.expected}" if error.expected else "")
    return executor.obstacle(cell)


def obstacles_of_locks(tasks: Sequence[Task]) -> dict[str, Unavailable]:
    """The obstacles by cell that show once the cells are resolved: what kernels need is not there, nor room for all."""
    locks = {task.cell.id: lock for task in tasks if (lock := resolved_lock(task)) is not None}
    found = dict(_without_compilers(tasks, locks))
    rest = [task for task in tasks if task.cell.id in locks and task.cell.id not in found]
    return found | _without_room(rest, locks)


def _without_compilers(tasks: Sequence[Task], locks: Mapping[str, Lock]) -> Iterator[tuple[str, Unavailable]]:
    for task in tasks:
        cell, lock = task.cell, locks.get(task.cell.id)
        if lock is None or not cell.smoke or _is_wrong_build(task):
            continue
        missing = [] if any(name in lock.versions for name in TRITON) else ["triton"]
        if Smoke.INTERPRET in cell.smoke and "numpy" not in lock.versions:
            missing.append("numpy")
        if missing:
            what = f"the kernels need {joined(missing)}, which no installed package requires"
            named = ", ".join(f'"{name}"' for name in missing)
            yield (
                cell.id,
                Unavailable(what, f"add it to the cell, in a version that fits torch: packages = [{named}]"),
            )


def _is_wrong_build(task: Task) -> bool:
    """Whether the torch build is known to fail the cell, which ends there: it also brings no triton."""
    build, cell = wheel_of_torch(task), task.cell
    if isinstance(build, Unavailable) or not task.stops:
        return False
    return not build.meets(cell.accelerator) and not build.meets(cell.expected)


def _without_room(tasks: Sequence[Task], locks: Mapping[str, Lock]) -> dict[str, Unavailable]:
    """The cells whose packages do not fit on the disk together, if they do not for certain.

    A file counts once, however many cells have it; what uv has in its cache, and what is installed, takes no room.
    """
    new = [task for task in tasks if not Trees(task.cache / "trees").path(locks[task.cell.id]).is_dir()]
    if not new:
        return {}
    need, free, where = _need(new, locks), *_least_room(tasks[0].cache)
    if need <= free:
        return {}
    new = [task for task in new if not _is_cached(task, locks[task.cell.id])]
    need = _need(new, locks)
    if need <= free:
        return {}
    whose = plural(len(new), "cell")
    what = f"the packages of {whose} need at least {human_bytes(need)}, but {where} has {human_bytes(free)} free"
    hint = "free some space, set WHEELPROOF_CACHE_DIR and UV_CACHE_DIR to other folders, or run fewer cells: --only"
    return {task.cell.id: Unavailable(what, hint) for task in new}


def _need(tasks: Sequence[Task], locks: Mapping[str, Lock]) -> int:
    """The bytes that the packages of cells take at least; those whose index states no size count as nothing."""
    sizes = {
        digests: lock.sizes.get(name, 0)
        for task in tasks
        for lock in [locks[task.cell.id]]
        for name, (_, digests) in lock.packages.items()
    }
    return int(UNPACKED * sum(sizes.values()))


def _least_room(cache: Path) -> tuple[int, Path]:
    """The free bytes where uv and the trees keep files, of the fuller of the two, and which that is."""
    answer = run_uv(["cache", "dir"], os.environ, _PATIENCE)
    folders = [cache, *([Path(answer.output.strip())] if answer.status == 0 else [])]
    rooms = [(shutil.disk_usage(folder).free, folder) for folder in map(nearest_folder, folders)]
    return min(rooms)


def _is_cached(task: Task, lock: Lock) -> bool:
    """Whether uv has all files of a lock in its cache."""
    configured = configured_indexes(os.environ, Path.cwd(), trust=Trust.parse(task.trust_index))
    places = places_of(task.cell, configured, named=task.named)
    try:
        return Trees(task.cache / "trees").is_cached(lock, task.cell.target, places.of_a_lock)
    except SourceError:
        return False
