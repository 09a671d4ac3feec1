"""The small members that describe a wheel: its dist-info folder, and the version files of its packages."""

from __future__ import annotations

from collections.abc import Mapping
from email import message_from_string
from functools import partial

from packaging.utils import canonicalize_name

from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.members import MemberContents
from wheel_checks.facts.security.places import place_of
from wheel_checks.formats.wheel.version_file import MAX_SIZE as LARGEST_VERSION_FILE
from wheel_checks.formats.wheel.version_file import VersionFile, parse_version_file
from wheel_checks.formats.wheel.wheel_name import WheelName
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.parsing import version_or_none

EGG_INFOS = 16  # whose PKG-INFO is read; a wheel should have none
VERSION_FILES = 8  # more than any real wheel has at the top of its packages


def dist_infos(archive: Archive) -> tuple[str, ...]:
    """The names of all top-level ``*.dist-info`` folders, and then of files, which pip takes for folders."""
    tops = [member.name.partition("/") for member in archive.members]
    found = [(top, slash) for top, slash, _ in tops if top.endswith(".dist-info")]
    return tuple(dict.fromkeys(top for top, _ in sorted(found, key=lambda one: not one[1])))


def egg_infos(members: tuple[Member, ...]) -> dict[str, str]:
    """The egg-info folders and files that end up in site-packages, and the member of each that pip reads."""
    found: dict[str, str] = {}
    for member in members:
        if ".egg-info" not in member.name or member.is_directory:
            continue
        place = place_of(member.name)
        top, slash, _rest = place.path.partition("/")
        if place.area != "site" or not top.endswith(".egg-info"):
            continue
        folder = member.name.removesuffix(place.path) + top
        found.setdefault(folder, f"{folder}/PKG-INFO" if slash else folder)
    return found


def egg_info_facts(eggs: Mapping[str, str], read: MemberContents) -> tuple[tuple[str, str | Unavailable], ...]:
    """Why pip cannot read each egg-info, or ""; unavailable if its PKG-INFO was not read."""
    names = list(eggs.items())
    known = [(egg, egg_info_fault(read.contents.get(member))) for egg, member in names[:EGG_INFOS]]
    return (*known, *((egg, Unavailable(f"{EGG_INFOS} others were read")) for egg, _ in names[EGG_INFOS:]))


def egg_info_fault(content: bytes | Unavailable | None) -> str | Unavailable:
    """Why pip ends with an error in an environment that has an egg-info with this PKG-INFO (None: without one)."""
    if content is None:
        return "it has no PKG-INFO"
    if isinstance(content, Unavailable):
        return content
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return "its PKG-INFO is not UTF-8"
    version = message_from_string(text.partition("\n\n")[0]).get("Version")
    if version_or_none(version or ""):
        return ""
    return f"its PKG-INFO has the version {version[:80]!r}" if version else "its PKG-INFO has no Version"


def own_dist_info(folders: tuple[str, ...], name: WheelName | Unavailable) -> str:
    """The dist-info folder that an installer would read: the only one, or the one with the wheel's name."""
    if not isinstance(name, Unavailable):
        for folder in folders:
            if canonicalize_name(folder.partition("-")[0]) == canonicalize_name(name.distribution):
                return folder
    return folders[0] if folders else "*.dist-info"


def version_members(members: tuple[Member, ...]) -> list[str]:
    """``*/version.py`` at the top of the wheel's packages."""
    found = [
        m.name
        for m in members
        if m.name.endswith("/version.py") and m.name.count("/") == 1 and m.size <= LARGEST_VERSION_FILE
    ]
    return found[:VERSION_FILES]


def version_files(read: MemberContents, names: list[str]) -> tuple[VersionFile, ...]:
    """The versions in the readable ones."""
    parsed = [read.parse(name, partial(parse_version_file, name)) for name in names]
    return tuple(file for file in parsed if not isinstance(file, Unavailable))
