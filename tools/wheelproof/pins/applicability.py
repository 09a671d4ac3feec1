"""Does a requirement apply on any of the targets? By its marker, and by the equivalents of poetry and pixi."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

from wheel_checks.targets.target import DEFAULT_GLIBC, LINUX, MACOS, OLDEST_GLIBC, WINDOWS, Target
from wheelproof.pins.model import Form, FoundRequirement

_PYTHONS = tuple((3, minor) for minor in range(8, 16))
EVERY_LINUX = tuple(Target(python, machine, DEFAULT_GLIBC) for machine in OLDEST_GLIBC for python in _PYTHONS)
"""The targets if none is named: Linux on both machines, with every Python."""

_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']|["']([^"']+)["']\s*(?:==|in)\s*extras?\b""")
_IN_TABLE = re.compile(r"""\b(markers|platform|python)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*')""")
_TABLE = re.compile(r"""\{(?:[^{}"']|"(?:[^"\\]|\\.)*"|'[^']*')*\}""")
_VERSION_KEY = re.compile(r"\bversion\s*=")
_PLATFORMS = {"win": (WINDOWS, ""), "osx": (MACOS, ""), "linux": (LINUX, ""), "unix": ("", "")}
_MACHINES = {"64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def with_every_python(targets: Sequence[Target]) -> tuple[Target, ...]:
    """The same machines, with every Python."""
    return tuple(dict.fromkeys(replace(one, python=python, patch=None) for one in targets for python in _PYTHONS))


def applies(found: FoundRequirement, targets: Sequence[Target]) -> bool:
    """Whether an install on one of the targets uses the requirement; an unreadable requirement counts as used."""
    return bool(applying(found, targets))


def applying(found: FoundRequirement, targets: Sequence[Target]) -> list[FoundRequirement]:
    """The parts of a requirement that an install on one of the targets uses: poetry allows several tables."""
    if not any(_by_keys(found, target) for target in targets):
        return []
    return [one for one in _alternatives(found) if all(_holds(text, targets) for text in _markers(one))]


def _alternatives(found: FoundRequirement) -> list[FoundRequirement]:
    tables = _TABLE.findall(found.text) if found.form is Form.VERSION else []
    if len(tables) < 2:
        return [found]
    return [
        replace(found, text=f"{found.name} = {table}", values=found.values[:1] if _VERSION_KEY.search(table) else ())
        for table in tables
    ]


def _markers(found: FoundRequirement) -> list[str]:
    if found.form is Form.PEP508:
        _, semicolon, marker = found.text.partition(" ;" if "://" in found.text else ";")
        return [marker] if semicolon and marker.strip() else []
    return _of_table(found.text) if found.form is Form.VERSION else []


def _of_table(text: str) -> list[str]:
    markers = []
    for match in _IN_TABLE.finditer(text):
        value = match[2][1:-1]
        if match[1] == "markers":
            markers.append(value)
        elif match[1] == "platform":
            markers.append(f'sys_platform == "{value}"')
    return markers


def _holds(text: str, targets: Sequence[Target]) -> bool:
    try:
        marker = Marker(text.strip())
        extras = ["", *(one or other for one, other in _EXTRA.findall(text))]
        return any(marker.evaluate({**target.markers(), "extra": extra}) for target in targets for extra in extras)
    except (InvalidMarker, UndefinedEnvironmentName, ValueError, KeyError):
        return True


def _by_keys(found: FoundRequirement, target: Target) -> bool:
    """Pixi's ``target.win-64.dependencies``."""
    keys = found.keys
    if "target" not in keys[:-1]:
        return True
    name, _, machine = str(keys[keys.index("target") + 1]).partition("-")
    if name not in _PLATFORMS:
        return True
    system = _PLATFORMS[name][0]
    right_system = target.system == system if system else target.system != WINDOWS
    return right_system and (not machine or _MACHINES.get(machine) == target.machine)
