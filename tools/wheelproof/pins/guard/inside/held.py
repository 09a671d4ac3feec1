"""The packages that a guard holds: distributions of families such as torch's, and the libraries that they require."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FOLDER = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.dist-info")
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA = re.compile(r"\bextra\s*==")


@dataclass(frozen=True)
class Distribution:
    """An installed distribution; ``folder`` is its .dist-info, ``site`` its folder on sys.path."""

    name: str
    version: str
    folder: str
    site: str

    @property
    def record(self) -> str:
        """The path of its RECORD."""
        return os.path.join(self.folder, "RECORD")


def normalized(name: str) -> str:
    """A name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """The normalized name at the start of a requirement, "" when it has no name."""
    found = _NAME.match(requirement)
    return normalized(found[1]) if found else ""


def sites_of(settings: Mapping[str, Any]) -> list[str]:
    """The folders from which the environment imports, first the user's site-packages, if there is one."""
    sites = list(settings["sites"])
    if not settings.get("user_site"):
        return sites
    base = os.environ.get("PYTHONUSERBASE") or os.path.join(os.path.expanduser("~"), ".local")
    own = os.path.join(base, "lib", settings["user_site"], "site-packages")
    return [own, *(site for site in sites if site != own)]


def every(sites: Sequence[str]) -> Iterator[Distribution]:
    """Every distribution, hidden ones included, in import order."""
    for site in sites:
        try:
            names = sorted(os.listdir(site))
        except OSError:
            continue
        for name in names:
            matched = _FOLDER.fullmatch(name)
            if matched:
                yield Distribution(normalized(matched["name"]), matched["version"], os.path.join(site, name), site)


def installed(sites: Sequence[str]) -> dict[str, Distribution]:
    """Every distribution by its normalized name; imports find the first of two."""
    found: dict[str, Distribution] = {}
    for one in every(sites):
        found.setdefault(one.name, one)
    return found


def required(distribution: Distribution, *, extras: bool) -> set[str]:
    """The names in its Requires-Dist, with or without its ``extras``."""
    found = set()
    for line in _metadata(distribution):
        if line.startswith("Requires-Dist:") and (extras or not _EXTRA.search(line)):
            found.add(name_of(line[len("Requires-Dist:") :]))
    return found


def version_of(distribution: Distribution) -> str:
    """The version in METADATA, local part included; or the version in the folder's name if that cannot be read."""
    for line in _metadata(distribution):
        if line.startswith("Version:"):
            return line[len("Version:") :].strip()
    return distribution.version


def _metadata(distribution: Distribution) -> list[str]:
    """The lines of the headers of METADATA."""
    try:
        with open(os.path.join(distribution.folder, "METADATA"), encoding="utf-8", errors="replace") as file:
            return file.read().partition("\n\n")[0].splitlines()
    except OSError:
        return []


@dataclass(frozen=True)
class Held:
    """``pinned`` packages may not change at all; ``needed`` ones, which include these, may not be removed."""

    pinned: Mapping[str, Distribution]
    needed: Mapping[str, Distribution]


def find_held(distributions: Mapping[str, Distribution], families: Iterable[Mapping[str, Any]]) -> Held:
    """The held packages among the installed ``distributions``.

    Of each family: its anchors, their companions, and the libraries (``closure``) that these reach by Requires-Dist.
    Markers are not evaluated: installed packages that are reached count.
    """
    pinned: dict[str, Distribution] = {}
    needed: dict[str, Distribution] = {}
    for family in families:
        roots = [name for name in distributions if _matches(name, family["anchors"])]
        if not roots and family["anchors"]:
            continue
        roots += [name for name in distributions if _matches(name, family["companions"]) and name not in roots]
        pinned.update((name, distributions[name]) for name in roots)
        needed.update(_reached(roots, distributions, extras=False))
        libraries = _reached(roots, distributions, extras=True)
        pinned.update((name, one) for name, one in libraries.items() if _matches(name, family["closure"]))
    needed.update(pinned)
    return Held(pinned, needed)


def _reached(
    roots: Iterable[str], distributions: Mapping[str, Distribution], *, extras: bool
) -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in distributions:
            continue
        found[name] = distributions[name]
        waiting += sorted(required(distributions[name], extras=extras))
    return found


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
