"""The other side of ``stack --against``: a file, or the same file at a commit, with the files that it includes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from wheel_checks.errors import NotFoundError, UsageError
from wheel_checks.formats.requirements_lines import logical_lines, setting
from wheel_checks.sources.git_files import CommitFiles
from wheel_checks.sources.requirement_files import LARGEST, MOST
from wheel_checks.sources.scratch_folder import scratch_folder
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheelproof.stacks.inputs import read_inputs
from wheelproof.stacks.request import StackRequest

LARGEST_LOCK = 64 << 20  # bytes, as git gives them; reading the lock has its own bound
_INCLUDES = ("-r", "--requirement", "-c", "--constraint")


@contextmanager
def opened_other(request: StackRequest, against: str, chosen: ExtrasAndGroups) -> Iterator[StackRequest | None]:
    """The request for the other side, for the same targets; None where the commit has no such file.

    Raises UsageError where not one file alone is judged, and what reading the other file raises.
    """
    asked = request.asked
    if asked.requirements or len(asked.files) != 1:
        raise UsageError("--against compares one file", expected="one lock, requirements file or pyproject.toml")
    with other_side(asked.files[0], against) as path:
        if path is None:
            yield None
            return
        other, lock = read_inputs([], [str(path)], chosen)
        yield replace(request, asked=other, lock=lock)


@contextmanager
def other_side(path: Path, against: str) -> Iterator[Path | None]:
    """The path of the file to compare ``path`` with; None where the commit has no such file.

    A file named ``against`` counts before a commit of that name. Raises UsageError when it is neither.
    """
    if os.path.lexists(against):
        if Path(against).is_dir():
            raise UsageError(f"{against} is a folder", expected="a file, a branch, a tag or a commit")
        yield Path(against)
        return
    commit = CommitFiles(path, against)
    with scratch_folder() as folder:
        try:
            found: Path | None = _written(commit, path, folder)
        except NotFoundError:
            found = None
        yield found


def _written(commit: CommitFiles, path: Path, folder: Path) -> Path:
    """The file of the commit with what it includes, written to ``folder`` at the same places below it."""
    base = path.parent
    front, done = [path], set[str]()
    while front and len(done) < MOST:
        one = front.pop()
        inside = os.path.normpath(os.path.relpath(one, base))
        if inside in done or inside.startswith(".."):
            continue
        done.add(inside)
        is_lock = one.suffix in (".toml", ".lock")
        try:
            data = commit.read(one, LARGEST_LOCK if is_lock else LARGEST)
        except NotFoundError:
            if one is path:
                raise
            continue  # reading the file that includes it says so
        target = folder / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if not is_lock:
            front += _included(one.parent, data.decode("utf-8-sig", "replace"))
    return folder / path.name


def _included(folder: Path, text: str) -> list[Path]:
    found = []
    for line in logical_lines(text):
        option, value = setting(line.text) if line.text.startswith("-") else ("", "")
        if option in _INCLUDES and value and "://" not in value:
            found.append(folder / value)
    return found
