"""``ci/matrix.toml`` read into a matrix; ``matrix.schema.json`` beside this file says the same to editors."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.expectations import parse_expectation
from wheel_checks.facts.gpu.compile_targets import parse_target
from wheel_checks.formats.toml_table import LARGEST, TomlTable, read_toml
from wheel_checks.targets.target import OLDEST_GLIBC, parse_python
from wheelproof.matrix.model import CUDA, GPU_RUNNER, Cell, Known, Matrix, Smoke

AXES = ("platform", "python", "torch")
LEVELS = ("quick", "full", "deep")  # of the suite of kernels
MOST_COMBINATIONS = 10_000  # of the axes, before any is excluded
MOST_CELLS = 256  # what GitHub runs of one matrix (docs.github.com, "Usage limits")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,40}")
_PYTHON = re.compile(r"3\.[0-9]{1,2}(?:\.[0-9]{1,2})?t?")  # without the other forms of --python: it is part of the id
_GLIBC = re.compile(r"2\.(?:1[7-9]|[2-9][0-9])")  # 2.17 is the oldest for which there are aarch64 wheels (PEP 599)


def read_matrix(path: Path) -> Matrix:
    """The matrix in a file. Raises UsageError when it cannot be read, or with every fault that it has."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        hint = "" if path.name != "matrix.toml" else "docs/matrix.md shows one; --matrix names another"
        raise UsageError(f"the matrix {path} cannot be read: {error.strerror}", hint=hint) from error
    try:
        return parse_matrix(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"the matrix {path} is not UTF-8 (line {line})") from None


def parse_matrix(text: str, source: str = "the matrix") -> Matrix:
    """The matrix in a text. Raises UsageError that names every fault by its key and line."""
    try:
        document = read_toml(text, source)
        cells = _cells(document, source)
        document.finish(source)
    except FormatError as error:
        raise UsageError(error.what, expected=error.expected, hint="docs/matrix.md describes the keys") from None
    return Matrix(source, cells)


def _cells(document: TomlTable, source: str) -> tuple[Cell, ...]:
    """All that the axes span, less what is excluded; then the included ones; each with what overrides say of it."""
    common = _options(document.table("cell"))
    runners, images = _runners(document.table("runners")), _images(document.table("images"))
    spanned = [_cell(values, common) for values in _combinations(document, source)]
    for pattern in document.texts("exclude"):
        if not any(fnmatchcase(cell.id, pattern) for cell in spanned):
            document.fault("exclude", f"{pattern!r} matches no cell", _ids(spanned))
        spanned = [cell for cell in spanned if not fnmatchcase(cell.id, pattern)]
    cells = [*spanned, *(_included(table, common) for table in document.tables("include"))]
    for table in document.tables("override"):
        cells = _overridden(cells, table)
    if aimless := [cell.id for cell in cells if Smoke.COMPILE in cell.smoke and not cell.gpu]:
        more = f" and {len(aimless) - 1} more" if len(aimless) > 1 else ""
        named = f"names no GPU for which the kernels of {aimless[0]}{more} are compiled"
        document.fault("cell", named, 'gpu = ["GB200"], or smoke without "compile"')
    if not cells:
        document.fault("axes", "spans no cell", "values for platform, python and torch, or an [[include]]")
    elif len(cells) > MOST_CELLS:
        document.fault("axes", f"spans {len(cells):,} cells", f"at most {MOST_CELLS}, which GitHub can run")
    for name in sorted(name for name, count in Counter(cell.id for cell in cells).items() if count > 1):
        document.fault("include", f"makes a second cell {name}", "a name of its own: name = ...")
    return tuple(_placed(cell, runners, images) for cell in cells)


def _combinations(document: TomlTable, source: str) -> list[dict[str, str]]:
    """Every combination of the axes. Raises FormatError for more than anybody can mean."""
    table = document.table("axes")
    values = {
        "platform": _distinct(table, "platform", _platform),
        "python": _distinct(table, "python", _python),
        "torch": _distinct(table, "torch", _version),
    }
    count = math.prod(map(len, values.values()))
    if count > MOST_COMBINATIONS:
        expected = f"at most {MOST_COMBINATIONS:,}, and {MOST_CELLS} cells of them"
        raise FormatError(f"{source}: the axes have {count:,} combinations", expected=expected)
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]


def _distinct(table: TomlTable, key: str, parse: Callable[[str], str]) -> tuple[str, ...]:
    values = tuple(table.try_parse(key, text, parse, text) for text in table.texts(key))
    if len(set(values)) < len(values):
        table.fault(key, "holds a value twice", "each once")
    return tuple(dict.fromkeys(values))


def _included(table: TomlTable, common: Mapping[str, Any]) -> Cell:
    values = {
        "platform": table.parsed("platform", _platform, ""),
        "python": table.parsed("python", _python, ""),
        "torch": table.parsed("torch", _version, ""),
    }
    for key in AXES:
        if key not in table:
            table.fault(key, "is missing", "a string")
    name = table.parsed("name", _name, "")
    return _cell(values, {**common, **_options(table)}, name)


def _cell(values: Mapping[str, str], options: Mapping[str, Any], name: str = "") -> Cell:
    parts = (values["platform"], f"py{values['python']}", f"torch{values['torch']}", name)
    return Cell("-".join(filter(None, parts)), values["platform"], values["python"], values["torch"], **options)


def _overridden(cells: Sequence[Cell], table: TomlTable) -> list[Cell]:
    pattern = table.text("select", required=True)
    if pattern and not any(fnmatchcase(cell.id, pattern) for cell in cells):
        table.fault("select", f"{pattern!r} matches no cell", _ids(cells))
    options = _options(table)
    return [replace(cell, **options) if fnmatchcase(cell.id, pattern) else cell for cell in cells]


def _placed(cell: Cell, runners: Mapping[str, tuple[str, ...]], images: Mapping[str, str]) -> Cell:
    """With its runner and its image, which follow from the platform unless it needs a GPU or names one itself."""
    runner = runners.get(GPU_RUNNER if cell.needs_gpu else cell.platform, ())
    return replace(cell, runner=cell.runner or runner, image=cell.image or images.get(cell.platform, ""))


def _options(table: TomlTable) -> dict[str, Any]:
    """The fields of a cell that this table sets."""
    readers: dict[str, Callable[[str], Any]] = {
        "accelerator": lambda key: table.parsed(key, parse_expectation, CUDA),
        "gpu": lambda key: _parsed_all(table, key, _gpu),
        "smoke": lambda key: tuple(Smoke(v) for v in _parsed_all(table, key, _smoke) if v in list(Smoke)),
        "level": lambda key: table.parsed(key, _level, LEVELS[0]),
        "kernels": lambda key: _parsed_all(table, key, _name),
        "packages": lambda key: _parsed_all(table, key, _package),
        "glibc": lambda key: table.parsed(key, _glibc, ""),
        "image": table.text,
        "runner": table.texts,
        "deadline": table.ratio,
    }
    read = {key: reader(key) for key, reader in readers.items()}  # every key, so that all of them are known
    known = table.table("expect")
    if "expect" in table:
        read["expect"] = _known(known)
    return {key: value for key, value in read.items() if key in table}


def _known(table: TomlTable) -> Known:
    accelerator = table.parsed("accelerator", parse_expectation, CUDA)
    reason = table.text("reason")
    for key in ("accelerator", "reason"):
        if key not in table:
            table.fault(key, "is missing", "a string")
    return Known(accelerator, reason)


def _runners(table: TomlTable) -> dict[str, tuple[str, ...]]:
    return {key: labels for key in (*OLDEST_GLIBC, GPU_RUNNER) if (labels := table.texts(key))}


def _images(table: TomlTable) -> dict[str, str]:
    return {key: image for key in OLDEST_GLIBC if (image := table.text(key))}


def _parsed_all(table: TomlTable, key: str, parse: Callable[[str], str]) -> tuple[str, ...]:
    """The values of a list that parse; the others become faults."""
    parsed = [table.try_parse(key, text, parse, "") for text in table.texts(key)]
    return tuple(filter(None, parsed))


def _ids(cells: Sequence[Cell]) -> str:
    shown = ", ".join(cell.id for cell in cells[:6])
    return f"a pattern for {shown}{', ...' if len(cells) > 6 else ''}"


def _one_of(text: str, what: str, known: Sequence[str]) -> str:
    if text not in known:
        raise UsageError(f"{text[:80]!r} is no {what}", expected=f"one of {', '.join(known)}")
    return text


def _platform(text: str) -> str:
    return _one_of(text, "platform", tuple(OLDEST_GLIBC))


def _level(text: str) -> str:
    return _one_of(text, "level", LEVELS)


def _smoke(text: str) -> str:
    return _one_of(text, "smoke test", tuple(Smoke))


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


def _glibc(text: str) -> str:
    if not _GLIBC.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is no version of glibc", expected="one from 2.17 on, such as 2.28")
    return text
