"""The file name of a wheel (binary distribution format specification, "File name convention")."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.tags import Tag
from packaging.version import Version


@dataclass(frozen=True, slots=True)
class WheelName:
    """The parts of ``{distribution}-{version}(-{build})?-{python}-{abi}-{platform}.whl``.

    ``distribution``, ``version`` and ``build`` are the texts as written ("" for no build tag); ``parsed_version``
    is the version as packaging understands it; ``tags`` is the expanded set of compressed tags.
    """

    file_name: str
    distribution: str
    version: str
    build: str
    tags: frozenset[Tag]
    parsed_version: Version
