"""The target in a wheel's own tags, for wheels that are judged without a requested target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.tags import Tag

from wheel_checks.targets.target import (
    DEFAULT_GLIBC,
    LEGACY_MANYLINUX,
    NEWEST_MACOS,
    OLDEST_GLIBC,
    WINDOWS,
    Target,
    other_system,
    this_machine,
)

NEWEST_MUSL = (1, 2)  # the version of all musllinux wheels of November 2026, and uv's for resolutions

_UNIVERSAL = re.compile(r"macosx_\d+_\d+_universal2")
_MUSL = re.compile(r"musllinux_1_\d+_(?P<machine>x86_64|aarch64)")
_PLATFORM = re.compile(r"(?:manylinux_2_(?P<minor>\d+)|(?P<legacy>manylinux\d+)|linux)_(?P<machine>\w+)")

# Platform tags of systems that Target does not describe, with their marker variables (PEP 508) and, if it differs from
# the tag, platform_machine.
_OTHER_SYSTEMS: tuple[tuple[re.Pattern[str], dict[str, str], dict[str | None, str]], ...] = (
    (
        re.compile(r"win_(?P<machine>\w+)|win32"),
        {"os_name": "nt", "platform_system": "Windows", "sys_platform": "win32"},
        {"amd64": "AMD64", "arm64": "ARM64", None: "x86"},
    ),
    (
        re.compile(r"macosx_\d+_\d+_(?P<machine>\w+)"),
        {"os_name": "posix", "platform_system": "Darwin", "sys_platform": "darwin"},
        {"universal2": "arm64"},
    ),
    (
        re.compile(r"musllinux_\d+_\d+_(?P<machine>\w+)"),
        {"os_name": "posix", "platform_system": "Linux", "sys_platform": "linux"},
        {},
    ),
)


def target_of_tags(tags: Iterable[Tag]) -> Target | None:
    """The Linux target that the tags name, None when they name none (another system, or ``any``) or several machines.

    The Python is the interpreter's (``cp312``), and this host's for tags that fit several (``abi3``, ``py3``); the
    glibc is the oldest that the wheel accepts.
    """
    tags = list(tags)
    found = [match for tag in tags if (match := _PLATFORM.fullmatch(tag.platform))]
    machines = {match["machine"] for match in found}
    if len(machines) != 1 or not machines <= OLDEST_GLIBC.keys():
        return None
    machine = machines.pop()
    here = this_machine().target
    glibcs = [
        (2, int(m["minor"])) if m["minor"] else LEGACY_MANYLINUX.get(m["legacy"] or "", here.glibc) for m in found
    ]
    exact = exact_pythons(tags)
    free_threaded = any(tag.abi.endswith("t") and tag.abi.startswith("cp") for tag in tags)
    if len(exact) == 1:
        return Target(exact[0], machine, min(glibcs), free_threaded)
    return Target(here.python, machine, min(glibcs), here.free_threaded, here.patch)


def with_python_of_tags(target: Target, tags: Iterable[Tag]) -> Target:
    """``target`` with a Python that the tags accept: its own if they do, else the oldest that they name."""
    tags = list(tags)
    exact = exact_pythons(tags)
    names = sorted({(3, int(m[1])) for tag in tags if (m := re.fullmatch(r"cp3(\d{1,3})", tag.interpreter))})
    free_threaded = any(tag.abi.endswith("t") and tag.abi.startswith("cp") for tag in tags)
    python = target.python
    if names and (python not in exact if exact else python < names[0]):
        python = names[0]
    patch = target.patch if python == target.python else None
    return replace(target, python=python, free_threaded=free_threaded, patch=patch)


def with_platform_of_tags(target: Target, tags: Iterable[Tag]) -> Target | None:
    """``target`` on a platform of the tags; None if no target describes it."""
    tags = list(tags)
    if own := target_of_tags(tags):
        return replace(own, python=target.python, free_threaded=target.free_threaded, patch=target.patch)
    return next(iter(newest_machines(tags, target)), None)


def newest_machines(tags: Iterable[Tag], python: Target) -> tuple[Target, ...]:
    """The latest machine of each kind that a wheel with these tags installs on, with the Python of ``python``.

    The wheel's requirements may need a newer system than its own tag. For a wheel of any platform it is ``python``.
    Empty if a tag names a kind that no target describes.
    """
    platforms = sorted({tag.platform for tag in tags})
    machines = [_machines_of(platform, python) for platform in platforms]
    return tuple(dict.fromkeys(machine for found in machines for machine in found)) if all(machines) else ()


def _machines_of(platform: str, python: Target) -> tuple[Target, ...]:
    """The machines of one platform tag."""
    if platform == "any":
        return (python,)
    if _UNIVERSAL.fullmatch(platform):
        return (*_machines_of("macosx_arm64", python), *_machines_of("macosx_x86_64", python))
    found: Target | None = None
    if platform == "win32":
        found = replace(python, machine="i686", glibc=(0, 0), system=WINDOWS)
    elif other := other_system(platform, python):
        found = replace(other, macos=max(other.macos, NEWEST_MACOS)) if any(other.macos) else other
    elif matched := _MUSL.fullmatch(platform):
        found = replace(python, machine=matched["machine"], glibc=(0, 0), musl=NEWEST_MUSL)
    elif (matched := _PLATFORM.fullmatch(platform)) and matched["machine"] in OLDEST_GLIBC:
        glibc = (2, int(matched["minor"])) if matched["minor"] else DEFAULT_GLIBC
        found = replace(python, machine=matched["machine"], glibc=max(glibc, DEFAULT_GLIBC))
    return (found,) if found else ()


def exact_pythons(tags: Iterable[Tag]) -> Sequence[tuple[int, int]]:
    """The CPythons (major, minor) that the tags name exactly, ascending: not those of ``abi3``, ``py3`` and similar.

    ``cp312-none`` means 3.12 although newer Pythons accept it, as no other is meant.
    """
    names = (tag.interpreter for tag in tags if tag.abi != "abi3")
    return sorted({(3, int(match[1])) for name in names if (match := re.fullmatch(r"cp3(\d{1,3})", name))})


def markers_of_tags(tags: Iterable[Tag]) -> dict[str, str]:
    """The marker variables (PEP 508) of the one platform in the tags, else (``any``, several) of this machine."""
    tags = list(tags)
    if target := target_of_tags(tags):
        return target.markers()
    here = this_machine().target.markers()
    found = [
        here | system | {"platform_machine": machines.get(match["machine"], match["machine"] or "")}
        for tag in tags
        for pattern, system, machines in _OTHER_SYSTEMS
        if (match := pattern.fullmatch(tag.platform))
    ]
    return found[0] if found and all(markers == found[0] for markers in found) else here
