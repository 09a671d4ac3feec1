"""Families of packages, from the table ``families``: an anchor such as torch, and what belongs to it."""

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from packaging.utils import canonicalize_name

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.phrases import joined

TORCH = "torch"


@dataclass(frozen=True, slots=True)
class Family:
    """One row of the table; names are normalized, and every tuple may hold globs."""

    name: str
    anchor: str
    alternatives: tuple[str, ...]
    core: tuple[str, ...]
    wide: tuple[str, ...]
    companions: tuple[str, ...]
    silent: tuple[str, ...]
    closure: tuple[str, ...]
    conda: tuple[str, ...]

    def is_anchor(self, name: str) -> bool:
        """Whether a distribution is the anchor, or provides the same import package."""
        return name == self.anchor or matches(name, self.alternatives)

    def in_set(self, name: str, *, wide: bool) -> bool:
        """Whether the set ``core``, or that and ``wide``, has a name."""
        return matches(name, self.core) or (wide and matches(name, self.wide))

    def is_member(self, name: str) -> bool:
        """Whether a change of this distribution can take the anchor away, break it, or leave it with one that does not
        fit.
        """
        groups = (self.core, self.wide, self.companions, self.closure)
        return self.is_anchor(name) or any(matches(name, group) for group in groups)


@cache
def families() -> tuple[Family, ...]:
    """All families, torch first."""
    rows = load("families")["family"]
    lists = ("alternatives", "core", "wide", "companions", "silent", "closure", "conda")
    return tuple(Family(row["name"], row["anchor"], *(tuple(row[key]) for key in lists)) for row in rows)


def family(name: str) -> Family:
    """The family of that name, or with that anchor. Raises UsageError when no family is known by it."""
    found = next((one for one in families() if name in (one.name, one.anchor)), None)
    if found is None:
        raise UsageError(
            f"the family {name!r} does not exist", expected=f"one of {joined([one.name for one in families()])}"
        )
    return found


def families_of(names: Iterable[str]) -> tuple[Family, ...]:
    """The families whose anchor, or an alternative to it, is among these (normalized) distributions."""
    there = set(names)
    return tuple(one for one in families() if any(map(one.is_anchor, there)))


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a normalized name is one of these, or matches one that is a glob."""
    return any(name == pattern or bool(is_glob(pattern) and _regex(pattern).match(name)) for pattern in patterns)


def is_glob(pattern: str) -> bool:
    """Whether a pattern may match more than one name."""
    return any(character in pattern for character in "*?[")


def as_pattern(text: str) -> str:
    """A name or a glob as it is compared: ``NVIDIA_*`` is ``nvidia-*``."""
    return str(canonicalize_name(text.strip()))


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))
