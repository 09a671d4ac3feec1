"""Does a companion fit the package that it is built for? By tables, since its metadata may not show it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.pins.families import TORCH, matches
from wheel_checks.parsing import version_or_none

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a companion fits the package ``of``; None if no table has it. ``expected`` are compatible releases."""

    of: str
    fits: bool | None
    expected: str = ""


def partner(name: str) -> str:
    """The package that a companion must match by a table; "" if no table has it."""
    if name in ("torchvision", "torchaudio"):
        return TORCH
    row = _row(name)
    return str(row["of"]) if row else ""


def fit(name: str, version: str, other: str) -> Fit:
    """Whether release ``version`` of a companion fits release ``other`` of its :func:`partner`."""
    of = partner(name)
    companion, base = version_or_none(version), version_or_none(other)
    if companion is None or base is None:
        return Fit(of, None)
    if name in ("torchvision", "torchaudio"):
        return _by_releases(name, companion, base)
    row = _row(name)
    if row is None or row.get("any"):
        return Fit(of, True if row else None)
    if row.get("same_release"):
        ours, theirs = _NUMBERS.match(str(companion)), _NUMBERS.match(str(base))
        numbers = ours[0] if ours else version
        return Fit(of, bool(ours and theirs and ours[0] == theirs[0]), f"it needs {of} {numbers}")
    known = next((rule for rule in row["rows"] if _is_of(companion, rule["release"])), None)
    if known is None or base.is_prerelease:
        return Fit(of, None)
    return Fit(of, _allows(known["fits"], base), f"it needs {of}{known['fits']}")


def _by_releases(name: str, companion: Version, base: Version) -> Fit:
    if base.is_prerelease or companion.is_prerelease:
        return Fit(TORCH, None)
    row = next((row for row in load("torch_releases")["release"] if row["version"] == base.public), None)
    if row is None or not row.get(name):
        return Fit(TORCH, None)
    return Fit(TORCH, _allows(row[name], companion), f"{TORCH} {base.public} needs {name}{row[name]}")


def _allows(specifier: str, version: Version) -> bool:
    return SpecifierSet(specifier).contains(version.public, prereleases=True)


def _is_of(version: Version, release: str) -> bool:
    numbers = tuple(map(int, release.split(".")))
    return version.release[: len(numbers)] == numbers


def _row(name: str) -> dict[str, Any] | None:
    return next((row for row in load("companions")["companion"] if matches(name, [row["name"]])), None)
