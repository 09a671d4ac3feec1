"""The folder of records: a report of each cell that has ended, so that any machine can continue where others stopped.

<records>/<cell>.json          the report of ``matrix run`` about this cell alone
<records>/<cell>/<step>.log    the logs of its steps
"""

import functools
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.formats.documents import parse_json
from wheel_checks.model import Outcome, Report
from wheel_checks.report import render
from wheel_checks.sources.regular_file import read_whole
from wheelproof.kernels import package_folder
from wheelproof.matrix.folders import make_folder
from wheelproof.matrix.model import Cell
from wheelproof.matrix.records import CellRecord, inputs_digest, parse_record
from wheelproof.matrix.steps import LARGEST, digest_of_files
from wheelproof.matrix.way import our_code
from wheelproof.reporting import Selection

MOST_FILES, MOST_BYTES = 20_000, 256 << 20  # of a project that a command may read
_NOT_READ = ("__pycache__", "build", "node_modules")  # what builds and tests leave behind
_OUR_LOGS = "wheelproof-*.log"  # of the tasks of an array


def inputs_of(cell: Cell, selection: Selection, written: Sequence[Path] = ()) -> str:
    """The digest of all that the result of a cell depends on, but for what its requirements resolve to.

    "" when that is unknown: the cell has a command, and the project that it may read is too large. The folders that
    are ``written`` meanwhile are no part of the project.
    """
    project = project_digest(Path.cwd(), tuple(path.absolute() for path in written)) if cell.command else "-"
    kernels = _kernels() if cell.smoke else ""
    return inputs_digest(cell, selection.asked, selection.ignore, _ours(), kernels, project) if project else ""


@functools.cache
def project_digest(folder: Path, without: tuple[Path, ...] = ()) -> str:
    """The digest of the files of a project, hidden ones and environments omitted; "" when it has too many, or one
    cannot be read. Other file systems are no part of it: /proc has files that never end.
    """
    found, files, size = hashlib.sha256(), 0, 0
    try:
        for path in _files(folder, without):
            files, size = files + 1, size + path.lstat().st_size
            if files > MOST_FILES or size > MOST_BYTES:
                return ""
            content = os.fsencode(path.readlink()) if path.is_symlink() else read_whole(path, MOST_BYTES)
            found.update(os.fsencode(path.relative_to(folder)) + b"\0%d\0" % len(content))
            found.update(content)
    except OSError:
        return ""
    return found.hexdigest()


def _files(folder: Path, without: Sequence[Path]) -> Iterator[Path]:
    """Regular files, and links as such, in order of their names."""
    device = folder.lstat().st_dev
    for place, folders, files in os.walk(folder, onerror=_refuse):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in links and _is_part(here / name, device, without))
        for path in (here / name for name in sorted([*files, *links]) if not name.startswith(".")):
            if (path.is_file() or path.is_symlink()) and not fnmatch(path.name, _OUR_LOGS):
                yield path


def _is_part(folder: Path, device: int, without: Sequence[Path]) -> bool:
    """Whether a folder is of the project: not hidden, not what builds leave behind, no environment, no other device."""
    if folder.name.startswith(".") or folder.name in _NOT_READ or folder in without:
        return False
    return folder.lstat().st_dev == device and not (folder / "pyvenv.cfg").exists()


def _refuse(error: OSError) -> None:
    raise error


@functools.cache
def _ours() -> str:
    return our_code()


@functools.cache
def _kernels() -> str:
    return digest_of_files([package_folder()])


def read_report(folder: Path, cell: str) -> CellRecord | None:
    """The record of a cell; None if none exists, or it is not complete: something in it was left undecided."""
    path = folder / f"{cell}.json"
    try:
        document = parse_json(read_whole(path, LARGEST), path.name, LARGEST)
        (subject,) = document["subjects"]
        record = parse_record(subject["record"], path.name)
        undecided = any(result["outcome"] == Outcome.ERROR for result in subject["results"])
    except (OSError, FormatError, ValueError, TypeError, KeyError):
        return None
    return None if undecided or record.died or record.cell.id != cell else record


def write_report(folder: Path, cell: str, report: Report) -> None:
    """Write the report of a cell, whole or not at all. Raises SourceError."""
    path = folder / f"{cell}.json"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="ascii") as stream:
            render(report, stream, "json")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SourceError(f"{path} cannot be written: {error.strerror}", hint="see --records") from error


def with_copied_logs(folder: Path, record: CellRecord) -> CellRecord:
    """The record with the paths of its logs as seen from ``folder``, to which they are copied. Raises SourceError."""

    def copied(log: str) -> str:
        target = make_folder(folder / record.cell.id) / Path(log).name
        try:
            shutil.copyfile(log, target)
        except OSError as error:
            raise SourceError(f"{target} cannot be written: {error.strerror}", hint="see --records") from error
        return str(target.relative_to(folder))

    return record.with_logs(copied)


def marked_as_kept(record: CellRecord) -> CellRecord:
    """The record as of a run that has kept all of it."""
    return replace(record, steps=tuple(replace(step, kept=True) for step in record.steps))
