"""Where a run keeps things: the work folder with the steps of each cell, and the cache of installed trees.

<cache>/matrix/trees/<lock>/             what a lock installs, shared by all runs and never changed
<cache>/matrix/trees/<lock>.pycache/     the byte code of its modules
<cache>/matrix/work/<matrix>/            the default work folder of a matrix file
<work>/<cell>/<step>.json, <step>.log    the result and the log of a step
"""

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from wheel_checks.errors import DeadlineError, SourceError, WheelproofError
from wheel_checks.sources.http.cache import default_cache_path

_PATIENCE = 90.0  # seconds that what is left of a run that was killed has to end
_TICK = 0.2  # seconds between two looks at a lock that someone else holds


def default_cache() -> Path:
    """The matrix's part of wheelproof's cache."""
    return default_cache_path().parent / "matrix"


def default_work(cache: Path, matrix: Path, cells: Sequence[str] = ()) -> Path:
    """The work folder of a matrix file, or of the ``cells`` of it that are run alone: other runs have other cells."""
    path = matrix.absolute()
    name = hashlib.sha256(b"\0".join(os.fsencode(each) for each in (str(path), *cells))).hexdigest()[:12]
    return cache / "work" / f"{path.stem}-{name}"


def make_folder(path: Path) -> Path:
    """Make a folder and those above it. Raises SourceError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"the folder {path} cannot be made: {error.strerror}", hint="see --work") from error
    return path


@contextlib.contextmanager
def only_run(work: Path) -> Iterator[int]:
    """Hold ``work``; the descriptor that holds it is for the processes of this run, so that the last one gives it free.

    Those of a run that was killed get the time to end. Raises WheelproofError when another run has it.
    """
    with _locked_file(work / ".lock") as descriptor:
        end = time.monotonic() + _PATIENCE
        while not _locked(descriptor):
            owner = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            if time.monotonic() >= end or (owner.isdecimal() and Path(f"/proc/{owner}").exists()):
                raise WheelproofError(
                    f"another run uses the work folder {work}" + (f" (process {owner})" if owner else ""),
                    expected="only one run at a time in a folder",
                    hint="wait for it, or name another folder with --work",
                )
            time.sleep(_TICK)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor


@contextlib.contextmanager
def only_writer(path: Path, deadline: float) -> Iterator[None]:
    """Hold the lock file ``path``, for which others may wait. Raises DeadlineError after ``deadline`` seconds."""
    end = time.monotonic() + deadline
    with _locked_file(path) as descriptor:
        while not _locked(descriptor):
            if time.monotonic() >= end:
                what = f"another process did not finish {path.name} within {deadline:.0f} s"
                raise DeadlineError(what, hint="--deadline gives it more")
            time.sleep(_TICK)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _locked_file(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}", hint="see --work") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
