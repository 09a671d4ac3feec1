"""``ci/matrix.toml`` read into a matrix; ``matrix.schema.json`` beside this file says the same to editors."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
import typing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheel_checks.decode import Check, DecodeError, Fault, Filled, Key, Made, Policy, decode, key_of
from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.expectations import AcceleratorExpectation
from wheel_checks.facts.gpu.compile_targets import parse_target
from wheel_checks.formats.documents import LARGEST, Ratio, parse_json, read_toml
from wheel_checks.phrases import and_so_on, summarised
from wheel_checks.sources.regular_file import read_start
from wheel_checks.targets.target import OLDEST_GLIBC, parse_python
from wheelproof.matrix.model import GPU_RUNNER, Accelerator, Cell, Known, Matrix, Smoke

SCHEMA = "wheelproof.matrix/1"
MOST_COMBINATIONS = 10_000  # of the axes, before any is excluded
MOST_CELLS = 256  # what GitHub runs of one matrix (docs.github.com, "Usage limits")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,40}")
_PYTHON = re.compile(r"3\.[0-9]{1,2}(?:\.[0-9]{1,2})?t?")  # without the other forms of --python: it is part of the id
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")  # of a cell: also the name of its folder
_LONGEST_MODULE = 200  # characters
_GLIBC = re.compile(r"2\.(?:1[7-9]|[2-9][0-9])")  # 2.17 is the oldest for which there are aarch64 wheels (PEP 599)


def _python(text: str) -> str:
    if not _PYTHON.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is no version of Python", expected="one such as 3.12 or 3.13t")
    parse_python(text)
    return text


def _version(text: str) -> str:
    try:
        version = Version(text)
    except InvalidVersion:
        raise UsageError(f"{text[:80]!r} is no version", expected="one such as 2.11.0") from None
    return str(version)


def _gpu(text: str) -> str:
    parse_target(text)
    return text


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is no name", expected="letters, digits and . _ + - alone")
    return text


def _package(text: str) -> str:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise UsageError(f"{text[:80]!r} is no requirement", expected="one such as numpy or triton==3.6.0") from None
    if canonicalize_name(requirement.name) == "torch":
        raise UsageError("torch stands on an axis of its own", expected="further packages")
    return text


def _module(text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")) or len(text) > _LONGEST_MODULE:
        raise UsageError(f"{text[:80]!r} is no module", expected="one such as mine or mine.kernels")
    return text


def _glibc(text: str) -> str:
    if not _GLIBC.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is no version of glibc", expected="one from 2.17 on, such as 2.28")
    return text


def _one_of(*known: str) -> Check:
    return Check(known.__contains__, f"one of {', '.join(known)}")


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise UsageError(f"{max(values, key=values.count)!r} is there twice", expected="each once")
    return values


Platform = Annotated[str, _one_of(*OLDEST_GLIBC)]
Python = Annotated[str, Made(_python)]
Torch = Annotated[str, Made(_version)]
Name = Annotated[str, Made(_name)]
Place = Annotated[str, _one_of(*OLDEST_GLIBC, GPU_RUNNER)]


@dataclass(frozen=True, slots=True)
class _Axes:
    platform: Annotated[tuple[str, ...], Made(_distinct, of=tuple[Platform, ...])] = ()
    python: Annotated[tuple[str, ...], Made(_distinct, of=tuple[Python, ...])] = ()
    torch: Annotated[tuple[str, ...], Made(_distinct, of=tuple[Torch, ...])] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The fields of a cell that a table sets; None for the others."""

    accelerator: Accelerator | None = None
    gpu: tuple[Annotated[str, Made(_gpu)], ...] | None = None
    smoke: tuple[Smoke, ...] | None = None
    level: Annotated[str, _one_of("quick", "full", "deep")] | None = None  # of the suite of kernels
    kernels: tuple[Name, ...] | None = None
    packages: tuple[Annotated[str, Made(_package)], ...] | None = None
    wheel: Filled | None = None
    imports: Annotated[tuple[Annotated[str, Made(_module)], ...] | None, Key("import")] = None
    command: Filled | None = None
    glibc: Annotated[str, Made(_glibc)] | None = None
    image: str | None = None
    runner: tuple[str, ...] | None = None
    deadline: Ratio | None = None
    expect: Known | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The fields with their values."""
        values = ((option.name, getattr(self, option.name)) for option in fields(_Options))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Include(_Options):
    platform: Platform
    python: Python
    torch: Torch
    name: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Override(_Options):
    select: Filled


@dataclass(frozen=True, slots=True)
class _File:
    axes: _Axes = _Axes()
    cell: _Options = _Options()
    exclude: tuple[str, ...] = ()
    include: tuple[_Include, ...] = ()
    override: tuple[_Override, ...] = ()
    runners: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    images: Mapping[Platform, str] = field(default_factory=dict)


def read_matrix(path: Path) -> Matrix:
    """The matrix in a file. Raises UsageError when it cannot be read, or with the faults that it has."""
    try:
        return parse_matrix(read_start(path, LARGEST + 1, given=True), str(path))
    except OSError as error:
        hint = "" if path.name != "matrix.toml" else "docs/matrix.md shows one; --matrix names another"
        raise UsageError(f"the matrix {path} cannot be read: {error.strerror}", hint=hint) from error


def parse_matrix(data: bytes, source: str = "the matrix") -> Matrix:
    """The matrix in a TOML document, or in what `matrix list --format json` writes.

    Raises UsageError that names the faults by key and, in TOML, by line.
    """
    try:
        if data.lstrip()[:1] == b"{":  # no TOML document begins so
            return Matrix(source, _from_json(parse_json(data, source, LARGEST), source))
        return Matrix(source, read_toml(data, source, _File, _cells))
    except FormatError as error:
        raise UsageError(error.what, expected=error.expected, hint="docs/matrix.md describes the keys") from None


@dataclass(frozen=True, slots=True)
class _Cells:
    """What `matrix list --format json` writes: every cell with all that a machine needs to run it."""

    schema: Annotated[str, _one_of(SCHEMA)]
    cells: Annotated[tuple[Mapping[str, Any], ...], Check(bool, "at least one cell")]


def _from_json(document: Any, source: str) -> tuple[Cell, ...]:
    """The cells of such a document. Raises DecodeError."""
    cells, faults = [], list[Fault]()
    for number, values in enumerate(decode(_Cells, document, Policy(), source).cells):
        try:
            cells.append(parse_cell(values))
        except DecodeError as error:
            faults += [Fault(("cells", number, *fault.path), fault.what, fault.expected) for fault in error.faults]
    faults += [] if faults else _faults_of(cells)
    if faults:
        raise DecodeError(faults, source)
    return tuple(cells)


def _cells(file: _File) -> tuple[Cell, ...]:
    """All that the axes span, less what is excluded; then the included ones; each with what overrides say of it."""
    faults: list[Fault] = []
    spanned = _spanned(file)
    for number, pattern in enumerate(file.exclude):
        kept = [cell for cell in spanned if not fnmatchcase(cell.id, pattern)]
        if len(kept) == len(spanned):
            faults.append(Fault(("exclude", number), f"{pattern!r} matches no cell", _ids(spanned)))
        spanned = kept
    cells = [*spanned, *(_cell(cell.platform, cell.python, cell.torch, file, cell) for cell in file.include)]
    for number, override in enumerate(file.override):
        chosen = {cell.id for cell in cells if fnmatchcase(cell.id, override.select)}
        if not chosen:
            what = f"{override.select!r} matches no cell"
            faults.append(Fault(("override", number, "select"), what, _ids(cells)))
        cells = [replace(cell, **override.given) if cell.id in chosen else cell for cell in cells]
    faults += _faults_of(cells)
    if faults:
        raise DecodeError(faults)
    return tuple(_placed(cell, file) for cell in cells)


def _spanned(file: _File) -> list[Cell]:
    """Every combination of the axes. Raises DecodeError for more than anybody can mean."""
    axes = (file.axes.platform, file.axes.python, file.axes.torch)
    count = math.prod(map(len, axes))
    if count > MOST_COMBINATIONS:
        expected = f"at most {MOST_COMBINATIONS:,}, and {MOST_CELLS} cells of them"
        raise DecodeError([Fault(("axes",), f"have {count:,} combinations", expected)])
    return [_cell(*combination, file) for combination in itertools.product(*axes)]


def _cell(platform: str, python: str, torch: str, file: _File, included: _Include | None = None) -> Cell:
    name, options = (included.name, included.given) if included else ("", {})
    parts = (platform, f"py{python}", f"torch{torch}", name)
    return Cell("-".join(filter(None, parts)), platform, python, torch, **{**file.cell.given, **options})


def _faults_of(cells: Sequence[Cell]) -> Iterator[Fault]:
    if aimless := [cell.id for cell in cells if Smoke.COMPILE in cell.smoke and not cell.gpu]:
        named = f"names no GPU for which the kernels of {summarised(aimless, 1)} are compiled"
        yield Fault(("cell",), named, 'gpu = ["GB200"], or smoke without "compile"')
    if not cells:
        yield Fault(("axes",), "spans no cell", "values for platform, python and torch, or an [[include]]")
    elif len(cells) > MOST_CELLS:
        yield Fault(("axes",), f"spans {len(cells):,} cells", f"at most {MOST_CELLS}, which GitHub can run")
    for name in sorted(name for name, count in Counter(cell.id for cell in cells).items() if count > 1):
        yield Fault(("include",), f"makes a second cell {name}", "a unique name: name = ...")


def _placed(cell: Cell, file: _File) -> Cell:
    """With its runner and its image, which follow from the platform unless it needs a GPU or names one itself."""
    runner = file.runners.get(GPU_RUNNER if cell.needs_gpu else cell.platform, ())
    return replace(cell, runner=cell.runner or runner, image=cell.image or file.images.get(cell.platform, ""))


def _ids(cells: Sequence[Cell]) -> str:
    return f"a pattern for {and_so_on([cell.id for cell in cells], 6)}"


def cell_document(cell: Cell) -> dict[str, Any]:
    """Every key of a cell as the file names it, JSON-ready: what another machine needs to run it.

    It follows from the keys that a table may set, so that a new key is part of it; :func:`parse_cell` reads it back.
    """
    values = {"id": cell.id, "platform": cell.platform, "python": cell.python, "torch": cell.torch}
    return values | {key: _plain(getattr(cell, name)) for name, key in _keys().items()}


@functools.cache
def _keys() -> dict[str, str]:
    """The keys of the options, by the names of their fields."""
    hints = typing.get_type_hints(_Options, include_extras=True)
    return {option.name: key_of(option.name, hints[option.name]).replace("_", "-") for option in fields(_Options)}


def parse_cell(values: Mapping[str, Any]) -> Cell:
    """The cell of a document that :func:`cell_document` made, on any machine. Raises DecodeError with its faults."""
    given = {key: value for key, value in values.items() if key != "id" and value not in ("", None)}
    cell_id, policy = values.get("id"), Policy(toml=True)
    if not isinstance(cell_id, str) or not _ID.fullmatch(cell_id):
        raise DecodeError([Fault(("id",), f"is {str(cell_id)[:80]!r}", "letters, digits and . _ + - alone")])
    cell = decode(_Include, given, policy)
    return Cell(cell_id, cell.platform, cell.python, cell.torch, **cell.given)


def _plain(value: Any) -> Any:
    """A value of a cell as JSON has it; what is expected of torch is text, as in the file."""
    if isinstance(value, AcceleratorExpectation):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if dataclasses.is_dataclass(value):
        return {field.name.replace("_", "-"): _plain(getattr(value, field.name)) for field in fields(value)}
    return str(value) if isinstance(value, StrEnum) else value
