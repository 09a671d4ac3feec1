"""``*/version.py`` as text: the assignments of plain literals. The file is parsed, never executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VersionFile:
    """Top-level assignments of a string, number, bool or None, by name (``__version__``, ``cuda``, ``hip``, ``xpu``, ...)."""

    member: str
    values: Mapping[str, str | int | float | bool | None]
