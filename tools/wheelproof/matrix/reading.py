"""``ci/matrix.toml`` read into a matrix; ``matrix.schema.json`` next to this file says the same to editors."""

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

from wheel_checks.decode import Check, DecodeError, Fault, Filled, Made, Policy, decode, key_of
from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.expectations import AcceleratorExpectation
from wheel_checks.formats.documents import LARGEST, parse_json, read_toml
from wheel_checks.phrases import and_so_on, summarised
from wheel_checks.sources.regular_file import read_start
from wheelproof.matrix.keys import Name, Options, Place, Platform, Python, Torch, distinct
from wheelproof.matrix.model import GPU_RUNNER, NIGHTLY, Cell, Matrix, Smoke

SCHEMA = "wheelproof.matrix/1"
MOST_COMBINATIONS = 10_000  # of the axes, before any is excluded
_WORDS = {">=": "ge", "<=": "le", "==": "eq", "!=": "ne", "~=": "compatible", ">": "gt", "<": "lt", ",": "-", "*": "x"}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")  # of a cell: also the name of its folder
MOST_CELLS = 256  # what GitHub runs of one matrix (docs.github.com, "Usage limits")


@dataclass(frozen=True, slots=True)
class _Axes:
    platform: Annotated[tuple[str, ...], Made(distinct, of=tuple[Platform, ...])] = ()
    python: Annotated[tuple[str, ...], Made(distinct, of=tuple[Python, ...])] = ()
    torch: Annotated[tuple[str, ...], Made(distinct, of=tuple[Torch, ...])] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Include(Options):
    platform: Platform
    python: Python
    torch: Torch
    name: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Override(Options):
    select: Filled


@dataclass(frozen=True, slots=True)
class _File:
    axes: _Axes = _Axes()
    choices: Mapping[Name, Mapping[Name, Options]] = field(default_factory=dict)
    cell: Options = field(default_factory=Options)
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

    schema: Annotated[str, Check((SCHEMA).__eq__, SCHEMA)]
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
    cells = [
        *spanned,
        *(_cell(cell.platform, cell.python, cell.torch, cell.name, [file.cell, cell]) for cell in file.include),
    ]
    for number, override in enumerate(file.override):
        chosen = {cell.id for cell in cells if fnmatchcase(cell.id, override.select)}
        if not chosen:
            what = f"{override.select!r} matches no cell"
            faults.append(Fault(("override", number, "select"), what, _ids(cells)))
        cells = [replace(cell, **override.given) if cell.id in chosen else cell for cell in cells]
    cells = [_placed(cell, file) for cell in cells]
    faults += _faults_of(cells)
    if faults:
        raise DecodeError(faults)
    return tuple(cells)


def _spanned(file: _File) -> list[Cell]:
    """Every combination of the axes. Raises DecodeError for more than anybody can mean."""
    axes = (file.axes.platform, file.axes.python, file.axes.torch, *file.choices.values())
    count = math.prod(map(len, axes))
    if count > MOST_COMBINATIONS:
        expected = f"at most {MOST_COMBINATIONS:,}, and {MOST_CELLS} cells of them"
        raise DecodeError([Fault(("axes",), f"have {count:,} combinations", expected)])
    cells = []
    for platform, python, torch, *labels in itertools.product(*axes):
        chosen = [file.choices[name][label] for name, label in zip(file.choices, labels, strict=True)]
        cells.append(_cell(platform, python, torch, "-".join(labels), [file.cell, *chosen]))
    return cells


def _cell(platform: str, python: str, torch: str, name: str, tables: Sequence[Options]) -> Cell:
    """The cell with the keys of these tables, of which later ones win; ``name`` is the end of its id."""
    parts = (platform, f"py{python}", f"torch{_in_words(torch)}", name)
    given = {key: value for table in tables for key, value in table.given.items()}
    return Cell("-".join(filter(None, parts)), platform, python, torch, **given)


def _in_words(torch: str) -> str:
    """What is asked of torch, for the name of a folder and for globs: ``2.11.0``, ``-latest``, ``-ge2.11-lt3``."""
    if torch[0].isdigit():
        return torch
    for operator, word in _WORDS.items():
        torch = torch.replace(operator, word)
    return f"-{torch}"


def _faults_of(cells: Sequence[Cell]) -> Iterator[Fault]:
    if aimless := [cell.id for cell in cells if Smoke.COMPILE in cell.smoke and not cell.gpu]:
        named = f"names no GPU for which the kernels of {summarised(aimless, 1)} are compiled"
        yield Fault(("cell",), named, 'gpu = ["GB200"], or smoke without "compile"')
    for key, what, faulty, expected in _CONFLICTS:
        if found := [cell.id for cell in cells if faulty(cell)]:
            yield Fault(("cell", key), f"of {summarised(found, 1)} {what}", expected)
    if not cells:
        yield Fault(("axes",), "spans no cell", "values for platform, python and torch, or an [[include]]")
    elif len(cells) > MOST_CELLS:
        yield Fault(("axes",), f"spans {len(cells):,} cells", f"at most {MOST_CELLS}, which GitHub can run")
    for name in sorted(name for name, count in Counter(cell.id for cell in cells).items() if count > 1):
        yield Fault(("include",), f"makes a second cell {name}", "a unique name: name = ...")


def _lacks_an_index(cell: Cell) -> bool:
    return cell.torch == NIGHTLY and not (cell.index or cell.torch_index or cell.find_links)


def _lacks_a_command(cell: Cell) -> bool:
    return bool(cell.junit) and not cell.command


def _has_own_image(cell: Cell) -> bool:
    return bool(cell.system_packages and cell.image)


_CONFLICTS = (
    (
        "torch",
        "is nightly, but the default index has no nightly builds",
        _lacks_an_index,
        'torch-index = "https://..."',
    ),
    ("junit", "needs a command that writes it", _lacks_a_command, 'command = "python -m pytest --junitxml=..."'),
    ("system-packages", "are not installed into your own image", _has_own_image, "an image that contains them"),
)


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
    hints = typing.get_type_hints(Options, include_extras=True)
    return {option.name: key_of(option.name, hints[option.name]).replace("_", "-") for option in fields(Options)}


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
