"""The constraints of poetry (``^1.2``, ``~1.2``, ``*``) as the specifiers of PEP 440."""

from __future__ import annotations

import re

from packaging.version import Version

from wheel_checks.parsing import specifiers_or_none, version_or_none

_BETWEEN = re.compile(r"\s*,\s*|\s+(?=[<>=!~^\d])")


def specifier_of(constraint: str) -> str:
    """The specifier of a constraint; "" for ``*``, for alternatives (``||``), and for anything else."""
    if "||" in constraint or len(constraint) > 1_000:
        return ""
    glued = re.sub(r"([<>=!~^])\s+", r"\1", constraint.strip().strip("()"))
    parts = [part for part in _BETWEEN.split(glued) if part and part != "*"]
    found = ",".join(filter(None, map(_one, parts)))
    return str(specifiers_or_none(found) or "")


def _one(part: str) -> str:
    if part[0] == "^" and (version := version_or_none(part[1:])):
        numbers = list(version.release)
        first = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
        return f">={version},<{_raised(version, first)}"
    if part[0] == "~" and part[1:2] != "=" and (version := version_or_none(part[1:])):
        return f">={version},<{_raised(version, min(1, len(version.release) - 1))}"
    return part if part[0] in "<>=!~" else f"=={part}"


def _raised(version: Version, place: int) -> str:
    numbers = [*version.release[:place], version.release[place] + 1]
    return ".".join(map(str, numbers))
