"""METADATA (core metadata specification), read leniently: every fault is kept as a sentence, nothing raises half-way."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.requirements import Requirement


@dataclass(frozen=True, slots=True)
class CoreMetadata:
    """The fields that matter. ``faults`` are sentences about fields that are missing or malformed.

    ``requirements`` holds the Requires-Dist lines that parse, in their order; ``bad_requirements`` the texts of those
    that do not, each with the parser's reason.
    """

    metadata_version: str
    name: str
    version: str
    requires_python: str
    requirements: tuple[Requirement, ...]
    bad_requirements: tuple[tuple[str, str], ...]
    provides_extra: tuple[str, ...]
    license: str
    faults: tuple[str, ...]
