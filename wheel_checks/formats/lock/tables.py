"""Fields of the tables of a lock, each with a FormatError that names it; and the lines on which packages stand."""

import re
from typing import Any
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.formats.index_page import IndexFile, file_from_url
from wheel_checks.formats.lock.model import LockedDependency
from wheel_checks.parsing import version_or_none

MAX_SIZE = 32 << 20
"""Bytes of a lock; the largest public ones have 5 MB."""

MOST_PACKAGES = 20_000
MOST_FILES = 200_000  # of all packages together
MOST_DEPENDENCIES = 400_000  # of all packages together
LONGEST_MARKER = 200_000  # characters; with twenty conflicting extras uv writes 50,000
_SHORTEST_DIGEST = 32  # hexadecimal digits, of MD5
_SHOWN = 120
_HEX = frozenset("0123456789abcdef")


def shown(value: object) -> str:
    """A value of the lock for a message: short, and without what a terminal would execute."""
    return repr(value)[:_SHOWN]


def table(value: object, where: str) -> dict[str, Any]:
    """The value as a table."""
    if not isinstance(value, dict):
        raise FormatError(f"{where} is of type {type(value).__name__}", expected="a table")
    return value


def rows(owner: dict[str, Any], key: str, where: str, most: int) -> list[Any]:
    """The value of a key as a list, empty where it is missing."""
    value = owner.get(key, [])
    if not isinstance(value, list):
        raise FormatError(f"{where}.{key} is not a list", expected="an array")
    if len(value) > most:
        raise FormatError(f"{where}.{key} has {len(value):,} values", expected=f"at most {most:,}")
    return value


def texts(owner: dict[str, Any], key: str, where: str, most: int = 10_000) -> tuple[str, ...]:
    """The value of a key as a list of strings."""
    found = rows(owner, key, where, most)
    if not all(isinstance(value, str) for value in found):
        raise FormatError(f"{where}.{key} has a value that is not a string", expected="strings")
    return tuple(found)


def text(owner: dict[str, Any], key: str, where: str) -> str:
    """The value of a key as a string, "" where it is missing."""
    value = owner.get(key, "")
    if not isinstance(value, str):
        raise FormatError(f"{where}.{key} is of type {type(value).__name__}", expected="a string")
    return value


def marker(owner: dict[str, Any], key: str, where: str) -> str:
    """A marker, bounded; it is parsed when it is evaluated."""
    found = text(owner, key, where)
    if len(found) > LONGEST_MARKER:
        raise FormatError(
            f"{where}.{key} has {len(found):,} characters", expected=f"a marker of at most {LONGEST_MARKER:,}"
        )
    return found


def name(owner: dict[str, Any], where: str) -> str:
    """The normalised name of a project."""
    found = text(owner, "name", where)
    return project(found, f"{where}.name")


def project(found: str, where: str) -> str:
    """The normalised name of a project."""
    try:
        canonicalize_name(found, validate=True)
    except InvalidName:
        raise FormatError(f"{where} is {shown(found)}", expected="the name of a project") from None
    return canonicalize_name(found)


def version(owner: dict[str, Any], where: str) -> str:
    """A version of PEP 440, "" where the lock states none."""
    found = text(owner, "version", where)
    if found and version_or_none(found) is None:
        raise FormatError(f"{where}.version is {shown(found)}", expected="a version (PEP 440)")
    return found


def digests(pairs: dict[str, Any]) -> dict[str, str]:
    """Hex digests by the name of their algorithm; anything else is omitted."""
    found = {key: value.lower() for key, value in pairs.items() if isinstance(value, str)}
    return {key: value for key, value in found.items() if len(value) >= _SHORTEST_DIGEST and set(value) <= _HEX}


def digest(stated: str) -> dict[str, str]:
    """The digest of "sha256:9f3a..."; nothing for anything else."""
    algorithm, _, value = stated.partition(":")
    return digests({algorithm: value})


def file_at(place: str, where: str) -> IndexFile:
    """The file that a URL leads to."""
    try:
        linked = file_from_url(place, "")
        _ = urlsplit(place).port
    except ValueError:  # what no URL can hold
        linked = None
    if linked is None:
        raise FormatError(f"{where} names no file", expected="a url (http, https or file) or a path")
    return linked


def named_file(file_name: str, hashes: dict[str, str], where: str) -> IndexFile:
    """A file of which the lock has the name and hashes, and no address."""
    if not re.fullmatch(r"[^\s/\\\x00-\x1f\x7f]{1,255}", file_name):
        raise FormatError(f"{where} is {shown(file_name)}", expected="the name of a file")
    return IndexFile(file_name, "", hashes)


def size(value: object) -> int | None:
    """The size in bytes, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def dependency_of(written: str, where: str) -> LockedDependency:
    """A dependency that is written as a requirement (PEP 508)."""
    try:
        requirement = Requirement(written[:LONGEST_MARKER])
    except (InvalidRequirement, RecursionError):
        raise FormatError(f"{where} is {shown(written)}", expected="a requirement (PEP 508)") from None
    return LockedDependency(
        canonicalize_name(requirement.name),
        tuple(sorted(map(canonicalize_name, requirement.extras))),
        str(requirement.marker or ""),
        specifier=str(requirement.specifier),
    )


def lines_of(data: bytes, header: bytes) -> list[int]:
    """The lines that are this header of an array of tables, such as ``[[package]]``, from 1."""
    found, line, start = [], 1, 0
    for match in re.finditer(rb"^" + re.escape(header) + rb"[ \t]*(?:#[^\n]*)?\r?$", data, re.MULTILINE):
        line += data.count(b"\n", start, match.start())
        start = match.start()
        found.append(line)
    return found
