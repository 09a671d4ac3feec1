"""Libraries that no wheel need provide, and those loaded without DT_NEEDED: ``data/libraries.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from wheel_checks.data import load

DRIVER, SYSTEM = "driver", "system"
_LONGEST = 1_000  # characters of a soname or path that are matched; no file system takes longer names


@cache
def _rows(table: str) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    return [(re.compile(row["pattern"]), row) for row in load("libraries").get(table, [])]


def provider_of(soname: str, glibc: tuple[int, int] | None = None) -> str:
    """For a library outside of wheels, "driver", "system" (with ``glibc``: by its manylinux policy), or "".

    (0, 0) is a system with musl, of which a wheel may need little else (PEP 656).
    """
    for pattern, row in _rows("library") if len(soname) <= _LONGEST else ():
        if pattern.fullmatch(soname) and (glibc is None or _is_there(row, glibc)):
            return str(row["kind"])
    return ""


def _is_there(row: Mapping[str, Any], glibc: tuple[int, int]) -> bool:
    if glibc == (0, 0):
        return row["kind"] == DRIVER or "musl" in row
    return "musl" not in row and tuple(row.get("since", (0, 0))) <= glibc


def plugin_feature(path: str) -> str:
    """The optional feature for which this ELF file is opened by name, "" when it is not known to be a plugin."""
    return next((str(row["feature"]) for pattern, row in _rows("plugin") if pattern.search(path[-_LONGEST:])), "")


def package_of(soname: str) -> str:
    """The package whose wheels alone provide this library, or ""."""
    rows = _rows("package") if len(soname) <= _LONGEST else ()
    return next((str(row["by"]) for pattern, row in rows if pattern.fullmatch(soname)), "")


def brought_with(package: str, soname: str) -> bool:
    """True for a library that the requirements of this package provide, so that others need not require it."""
    return any(row["by"] == package and nvidia_project(soname) in row["requires"] for _, row in _rows("package"))


def nvidia_project(soname: str) -> str:
    """NVIDIA's project that provides this library, without the suffix of its CUDA; "" for another library."""
    return next((str(row["by"]) for _, row in _nvidia_rows(soname)), "")


def nvidia_package(soname: str, cuda: str) -> str:
    """NVIDIA's package that provides this library for a CUDA ("13"); "" for another library, or if it is ""."""
    for _, row in _nvidia_rows(soname) if cuda.isdecimal() else ():
        return str(row["by"]) + ("" if int(cuda) >= row.get("plain_from", int(cuda) + 1) else f"-cu{cuda}")
    return ""


def _nvidia_rows(soname: str) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    return [(pattern, row) for pattern, row in _rows("nvidia") if pattern.match(soname[:_LONGEST])]


def host_program_of(soname: str) -> str:
    """The program that provides this library if it is installed on a host ("FFmpeg"), or ""."""
    rows = _rows("host") if len(soname) <= _LONGEST else ()
    return next((str(row["by"]) for pattern, row in rows if pattern.fullmatch(soname)), "")


def preloader_of(path: str) -> str:
    """The package that opens this library itself, by path, before its extension modules; "" if none."""
    return next((str(row["by"]) for pattern, row in _rows("preload") if pattern.search(path[-_LONGEST:])), "")


def is_imported_by(project: str, soname: str) -> bool:
    """Whether the import of the package loads this library of NVIDIA's wheels."""
    rows = _rows("imported") if len(soname) <= _LONGEST else ()
    return any(row["by"] == project and pattern.fullmatch(soname) for pattern, row in rows)


def needs_no_driver(soname: str) -> bool:
    """Whether this library of NVIDIA's is known to need none of the driver's."""
    return any(pattern.fullmatch(soname[:_LONGEST]) for pattern, _ in _rows("without_driver"))
