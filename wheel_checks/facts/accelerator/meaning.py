"""What names mean: of sections, of libraries, and which libraries show which accelerator and which version of it.

The names are data: ``wheel_checks/data/accelerators.toml``.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from wheel_checks.data import load

LONGEST_NAME = 1_000  # characters of a soname or section that are inspected
_HASH = re.compile(r"[-.][0-9a-f]{8,64}(?=\.(?:so|dll))")  # what auditwheel and delvewheel put into names
_BEGINS = re.compile("lib")


def section_meaning(name: str) -> list[str]:
    """The accelerators whose code a section of this name holds."""
    if len(name) > LONGEST_NAME:
        return []
    return [row["accelerator"] for pattern, row in rows("section") if pattern.search(name)]


def library_meaning(soname: str) -> Iterator[tuple[str, str]]:
    """The accelerators that a library of this name is for, each with the version of it that the name gives ("13")."""
    if len(soname) > LONGEST_NAME:
        return
    plain = _HASH.sub("", soname)
    for pattern, row in rows("library"):
        if match := pattern.search(plain):
            number = match.groupdict().get("soname") or ""
            versions = row.get("versions", {})
            yield row["accelerator"], number if versions == "same" else versions.get(number, "")


def runtime_match(project: str) -> re.Match[str] | None:
    """The match of the name of a package that brings libraries of CUDA itself; its group ``major`` may be None."""
    return re.fullmatch(load("accelerators")["runtime"]["pattern"], project)


def is_known_by_name(project: str) -> bool:
    """True for a package whose name says what it has to do with CUDA."""
    return runtime_match(project) is not None or bool(
        re.fullmatch(load("accelerators")["any_cuda"]["pattern"], project)
    )


def may_show(name: str) -> bool:
    """True when a string of .dynstr is, or ends in, a library that shows an accelerator.

    Linkers let a string be the end of a longer one.
    """
    if len(name) > LONGEST_NAME:
        return True
    return any(True for begin in _BEGINS.finditer(name) for _ in library_meaning(name[begin.start() :]))


def file_name(library: str) -> str:
    """The name of a library as its loader compares it: that of Windows takes upper and lower case for the same."""
    return library.lower() if library.lower().endswith(".dll") else library


@cache
def rows(table: str) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    """The rows of a table with names, each with its pattern."""
    return [(re.compile(row["pattern"]), row) for row in load("accelerators")[table]]
