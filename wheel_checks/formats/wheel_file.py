"""The WHEEL file in a wheel's dist-info folder (binary distribution format specification)."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.tags import Tag


@dataclass(frozen=True, slots=True)
class WheelFile:
    """The fields of WHEEL. ``tags`` are the expanded Tag lines; ``faults`` are sentences about what is missing or malformed."""

    wheel_version: str
    generator: str
    root_is_purelib: bool | None
    tags: frozenset[Tag]
    build: str
    faults: tuple[str, ...]
