"""A wheel as its directory shows it: libraries with names and places, of which nothing else was read."""

from collections.abc import Iterable

from wheel_checks.facts.links.linking import LaidOutWheel
from wheel_checks.facts.links.possible_needs import supposed_dynamic
from wheel_checks.formats.elf.file import ElfFacts, Missing, Part
from wheel_checks.formats.elf.header import ElfHeader
from wheel_checks.targets.target import Target


def outline_of(
    file_name: str, paths: Iterable[str], target: Target, bytes_read: int = 0, requests: int = 0
) -> LaidOutWheel:
    """The libraries at ``paths`` as they would be found by their names: for the machine of the target, needing nothing.

    Their sonames are supposed to be the names of their files, as those of nearly all libraries are.
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
