"""A wheel by its directory alone: the names and paths of its libraries."""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.links.linking import LaidOutWheel
from wheel_checks.facts.links.possible_needs import supposed_dynamic
from wheel_checks.formats.elf.file import ElfFacts, Missing, Part
from wheel_checks.formats.elf.header import ElfHeader
from wheel_checks.targets.target import Target


def outline_of(
    file_name: str, paths: Iterable[str], target: Target, bytes_read: int = 0, requests: int = 0
) -> LaidOutWheel:
    """The libraries at ``paths``, assumed to be for the machine of the target and to need nothing.

    Their sonames are assumed to be the names of their files, as for nearly all libraries.
    """
    header = ElfHeader.of_machine(target.machine)
    missing = Missing()
    files = {
        path: ElfFacts(
            header,
            missing,
            missing,
            supposed_dynamic(path, ()),
            missing,
            missing,
            missing,
            missing,
            frozenset({Part.DYNAMIC}),
        )
        for path in paths
    }
    return LaidOutWheel(file_name, files, frozenset(), bytes_read, requests)
