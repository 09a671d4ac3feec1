"""Can every installer write each member and each script? (pip and uv refuse some, or write to different places)"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from wheel_checks.data import load
from wheel_checks.facts.security.places import place_of
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Finding, Fix, Location, need
from wheel_checks.registry import rule
from wheel_checks.rules.shared.installers import finding_of, installer_evidence

_LONGEST_NAME = 255  # bytes: NAME_MAX of Linux, macOS and Windows alike
_LONGEST_PATH = 1024  # bytes: PATH_MAX of macOS, the shortest but for old programs of Windows
_SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
_SCHEMES = ("purelib", "platlib", "headers", "scripts", "data")
_RENAME = Fix("Rename or remove the member in the source tree, and rebuild the wheel.")


@rule(
    "WHL017",
    "every member can be written as a file or as a folder",
    why="File systems do not allow a file that is also a folder, or a name of more than 255 bytes: an install fails "
    "half-way, and which of two members remains depends on the installer.",
    example="`demo/data` next to `demo/data/table.csv`; a folder entry `demo/` with 4 bytes of data",
    fix="Rename or remove one of them, and rebuild the wheel.",
)
def writable(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No name is a file and a folder, no folder has data, and no name is too long."""
    members = need(wheel.archive).members
    files = {member.name for member in members if not member.is_directory}
    clashing: set[str] = set()
    for member in members:
        place = Location(member.name)
        for case, message in _unwritable(member):
            yield Finding(message, installer_evidence(case), _RENAME, place)
        parent = member.name.rstrip("/") if member.is_directory else member.name.rpartition("/")[0]
        while parent and parent not in clashing:
            if parent in files:
                clashing.add(parent)
                message = f"{parent} is a file, but also the folder of {member.name}"
                yield Finding(message, installer_evidence("file-and-folder"), _RENAME, place)
            parent = parent.rpartition("/")[0]


def _unwritable(member: Member) -> Iterator[tuple[str, str]]:
    """The rows of ``data/installers.toml``, and the faults of one member."""
    if member.is_directory and (member.size or member.crc32 or (member.flags & 0x8 and member.compressed_size)):
        yield "folder-data", f"the folder {member.name} has data, or a checksum of data"
    name = member.name if len(member.name) > _LONGEST_NAME // 4 else ""  # a character takes four bytes at most
    longest = max((part.encode("utf-8", "replace") for part in name.split("/")), key=len)
    if len(longest) > _LONGEST_NAME:
        shown = longest.decode("utf-8", "replace")[:40]
        yield "long-name", f"the name {shown}... has {len(longest)} bytes; the limit of file systems is {_LONGEST_NAME}"
    if name and (length := len(name.encode("utf-8", "replace"))) > _LONGEST_PATH:
        yield "long-path", f"the path {name[:40]}... has {length:,} bytes; the limit of systems is {_LONGEST_PATH:,}"


@rule(
    "WHL018",
    "files in a .data folder use schemes that installers support",
    why="Installers move the files of `{name}-{version}.data` by scheme: purelib, platlib, headers, scripts, data. pip "
    "rejects any other scheme, in every top-level folder that ends with .data; uv does not move folders with other "
    "names.",
    example="`demo-1.0.data/include/demo.h`, `tables.data` at the top of the wheel",
    fix="Use the schemes of the binary distribution format, and no other top-level name that ends with .data.",
)
def schemes(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Of top-level names with .data, only the wheel's own, and in it the five schemes; scripts lie in no folder."""
    own = {folder.removesuffix(".dist-info") + ".data" for folder in wheel.dist_infos}
    fix = Fix("Move the file into the package, or to a scheme of the format, and rebuild the wheel.")
    for member in need(wheel.archive).members:
        top, slash, rest = member.name.partition("/")
        if not top.endswith(".data") or (slash and not rest):
            continue
        scheme, below, path = rest.partition("/")
        case = message = ""
        if top not in own:
            case, message = "data-other", f"pip treats {member.name} as a file of a data folder, but uv does not"
        elif scheme not in _SCHEMES or not below:
            case, message = "data-scheme", f"{member.name} uses a scheme that installers do not support"
        elif scheme == "scripts" and "/" in path:
            case, message = "scripts-folder", f"{member.name} is a script in a subfolder, which uv rejects"
        if message:
            yield finding_of(case, message, fix, Location(member.name))


@rule(
    "WHL125",
    "installers can read entry_points.txt and create every script",
    why="pip and uv read the file line by line and create a program for each script: pip fails on a line without a "
    "value in any group, uv rejects names of interpreters, and both reject a script without an object.",
    example="a line `; tools` in entry_points.txt; `tool = demo.cli`; a script called `python3.12`",
    fix="Write `name = package.module:object` in groups that occur once, and do not name scripts after interpreters.",
)
def scripts(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The file parses for both, scripts name an object, and none has a name that uv keeps for interpreters."""
    reserved = re.compile(load("installers")["reserved_scripts"]["pattern"])
    fix = Fix("Correct the entry points of the project, and rebuild the wheel.")
    for name, place in _script_members(wheel):
        if reserved.fullmatch(name.lower().removesuffix(".exe").removesuffix(".py")):
            message = f"uv installs no script named {name}"
            yield finding_of("reserved-script", message, fix, place)
    points = need(need(wheel.startup).entry_points)
    for line, fault in points.unreadable:
        place = Location("entry_points.txt", line=line)
        message = f"entry_points.txt, line {line}: {fault}"
        yield finding_of("entry-points-file", message, fix, place)
    for point in points.entries:
        if point.group not in _SCRIPT_GROUPS:
            continue
        place = Location("entry_points.txt", line=point.line)
        if reserved.fullmatch(point.name.lower().removesuffix(".py")):
            message = f"uv installs no script named {point.name}"
            yield finding_of("reserved-script", message, fix, place)
        if ":" not in point.value:
            message = f"the script {point.name} does not refer to an object: {point.value[:160]!a}"
            yield finding_of("script-without-object", message, fix, place)


def _script_members(wheel: WheelFacts) -> Iterator[tuple[str, Location]]:
    for member in need(wheel.archive).members:
        if ".data/" in member.name and not member.is_directory:
            place = place_of(member.name)
            if place.area == "scripts":
                yield place.path, Location(member.name)
