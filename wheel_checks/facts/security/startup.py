"""What of a wheel runs when Python starts, and what installers and other programs start of it."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.facts.security.places import place_of
from wheel_checks.formats.wheel import entry_points, startup_file
from wheel_checks.formats.wheel.entry_points import EntryPoints, parse_entry_points
from wheel_checks.formats.wheel.startup_file import StartupFile, parse_startup_file
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable

NO_ENTRY_POINTS = EntryPoints(())
MOST_FILES = 16
"""Files of one wheel that are read; more than one is rare."""

T = TypeVar("T")

_CUSTOM = re.compile(r"(?:sitecustomize|usercustomize)(?:\.[^/]+|/__init__\.[^/]+)")


@dataclass(frozen=True, slots=True)
class StartupFacts:
    """The files that ``site`` reads, those that it imports by their name, and the entry points.

    ``files`` are the ``.pth`` and ``.start`` files that were read, ``unread`` those that were not, with the reason.
    ``customize`` are members that are sitecustomize or usercustomize. ``entry_points`` is empty where there is no file.
    """

    files: tuple[StartupFile, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    customize: tuple[str, ...] = ()
    entry_points: EntryPoints | Unavailable = NO_ENTRY_POINTS

    @property
    def runs(self) -> tuple[str, ...]:
        """What runs when Python starts: ``member: line``, and the modules that ``site`` imports."""
        lines = tuple(f"{file.member}: {line.text}" for file in self.files for line in file.code)
        return (*lines, *self.customize)


def startup_members(members: Iterable[Member], dist_info: str) -> dict[str, int]:
    """The members to read for :func:`startup_facts`, and the most bytes of each."""
    names = [member.name for member in members if is_startup_file(member.name)]
    found = dict.fromkeys(names[:MOST_FILES], startup_file.MAX_SIZE)
    return {**found, f"{dist_info}/entry_points.txt": entry_points.MAX_SIZE}


def is_startup_file(member: str) -> bool:
    """True for the ``.pth`` and ``.start`` files that an installer puts directly into site-packages."""
    if not member.endswith((".pth", ".start")):
        return False
    place = place_of(member)
    return place.area == "site" and "/" not in place.path


def startup_facts(
    members: Iterable[Member], dist_info: str, contents: Mapping[str, bytes | Unavailable]
) -> StartupFacts:
    """What the ``contents`` of those members say."""
    files: list[StartupFile] = []
    unread: list[tuple[str, str]] = []
    customize: list[str] = []
    for member in members:
        if "customize" in member.name and _CUSTOM.fullmatch(place_of(member.name).path):
            customize.append(member.name)
        if not is_startup_file(member.name):
            continue
        content = contents.get(member.name, Unavailable(f"at most {MOST_FILES} files are read"))
        found = _parsed(content, partial(parse_startup_file, member.name))
        if isinstance(found, Unavailable):
            unread.append((member.name, found.reason))
        else:
            files.append(found)
    points = contents.get(f"{dist_info}/entry_points.txt", b"")
    return StartupFacts(tuple(files), tuple(unread), tuple(customize), _parsed(points, parse_entry_points))


def _parsed(content: bytes | Unavailable, parse: Callable[[bytes], T]) -> T | Unavailable:
    if isinstance(content, Unavailable):
        return content
    try:
        return parse(content)
    except FormatError as error:
        return Unavailable(str(error))
