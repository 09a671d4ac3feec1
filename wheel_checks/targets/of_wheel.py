"""What a wheel's own tags say of where it installs, for wheels that are judged without a target being asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from packaging.tags import Tag

from wheel_checks.targets.target import LEGACY_MANYLINUX, OLDEST_GLIBC, Target, this_machine

_PLATFORM = re.compile(r"(?:manylinux_2_(?P<minor>\d+)|(?P<legacy>manylinux\d+)|linux)_(?P<machine>\w+)")

# Platform tags of systems that Target does not describe, with their marker variables (PEP 508) and, where it is
# another than in the tag, platform_machine.
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

    The Python is the interpreter's (``cp312``), and this machine's for tags that fit several (``abi3``, ``py3``); the
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


def exact_pythons(tags: Iterable[Tag]) -> Sequence[tuple[int, int]]:
    """The CPythons (major, minor) that the tags name exactly, ascending: not those of ``abi3``, ``py3`` and the like.

    ``cp312-none`` counts as 3.12 although newer Pythons accept it, as nobody else is meant.
    """
    names = (tag.interpreter for tag in tags if tag.abi != "abi3")
    return sorted({(3, int(match[1])) for name in names if (match := re.fullmatch(r"cp3(\d{1,3})", name))})


def markers_of_tags(tags: Iterable[Tag]) -> dict[str, str]:
    """The marker variables (PEP 508) of the one platform that the tags name, whatever its system.

    Those of this machine when the tags name none (``any``) or several.
    """
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
