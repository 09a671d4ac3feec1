"""The wheel under test: a cell's key ``wheel`` as a requirement."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import UsageError
from wheel_checks.formats.index.page import IndexFile, file_from_url
from wheel_checks.parsing import requirement_or_none
from wheel_checks.phrases import and_so_on
from wheel_checks.targets.selection import choose
from wheelproof.matrix.model import Cell

_URL = re.compile(r"(https?|file)://", re.IGNORECASE)
_DIRECT = re.compile(r"[A-Za-z0-9][\w.-]*\s*(\[[^\]]*\]\s*)?@\s*[a-z]+:", re.ASCII | re.IGNORECASE)  # mine @ file:
_EXPECTED = "the path, the glob or the URL of a wheel, or a requirement"


def with_requirement(cell: Cell, folder: Path) -> Cell:
    """The cell with its ``wheel`` as a requirement; a path or a glob starts at ``folder``.

    Of several wheels the installer's choice for the cell counts. Raises UsageError without one, or for an invalid text.
    """
    return replace(cell, wheel=_requirement(cell, folder)) if cell.wheel else cell


def _requirement(cell: Cell, folder: Path) -> str:
    text = cell.wheel
    if _URL.match(text):
        return _fitting(cell, [_linked(text)])
    if not _DIRECT.match(text) and (text.endswith(".whl") or "/" in text or "*" in text.partition("=")[0]):
        found = sorted(glob.glob(text, root_dir=folder))  # noqa: PTH207  # of pathlib no pattern may be absolute
        if not found:
            raise UsageError(f"{cell.id}: no file matches wheel = {text!r} in {folder}", expected=_EXPECTED)
        return _fitting(cell, [_linked((folder / name).absolute().as_uri()) for name in found])
    if requirement := requirement_or_none(text):
        return str(requirement)
    raise UsageError(f"{cell.id}: wheel = {text!r} is not a requirement", expected=_EXPECTED)


def _linked(url: str) -> IndexFile:
    file = file_from_url(url, "")
    if file is None or not file.is_wheel:
        raise UsageError(f"{url} names no wheel", expected=_EXPECTED)
    return file


def _fitting(cell: Cell, files: Sequence[IndexFile]) -> str:
    """The requirement of the file among ``files`` that fits the cell."""
    projects = {canonicalize_name(file.file_name.partition("-")[0]) for file in files}
    if len(projects) > 1:
        named = and_so_on(sorted(projects), 6)
        raise UsageError(f"{cell.id}: wheel = {cell.wheel!r} means wheels of {named}", expected="wheels of one project")
    (project,) = projects
    choice = choose(Requirement(project), files, cell.target, pre=True)
    if choice.chosen is None:
        names = and_so_on([file.file_name for file in files], 4)
        raise UsageError(
            f"{cell.id}: no wheel that wheel = {cell.wheel!r} means can be installed: {choice.explanation}",
            expected=f"one for {cell.target.label}; there is {names}",
        )
    return f"{project} @ {choice.chosen.url}"
