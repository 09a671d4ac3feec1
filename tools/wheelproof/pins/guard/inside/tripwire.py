"""The tripwire: damage of a command to held packages, found by RECORD and by the files, and undone.

Before a command the held files are linked into a folder of the guard (hard links take no space), so that they can be
restored; after it these links are removed. On an overlay file system, which would copy the file, there are no links.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import functools
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .held import Distribution, Held, every, installed, version_of

_BOOKKEEPING = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")

Status = tuple[int, int, int]
"""Size, time of modification in nanoseconds, and number of the inode."""


@dataclass(frozen=True)
class Seen:
    """A held distribution as it was: by path, the status of each file of RECORD, and its digest in RECORD."""

    version: str
    folder: str
    site: str
    record: str  # the digest of its rows
    files: Mapping[str, Status]
    digests: Mapping[str, str] = field(default_factory=dict)
    hidden: str = ""  # a sentence about the modules of that name in an earlier folder


@dataclass(frozen=True)
class Damage:
    """A fault of a held distribution; ``what`` is a sentence about it."""

    name: str
    what: str


def look(held: Held, sites: Sequence[str]) -> dict[str, Seen]:
    """The pinned distributions as they are now."""
    found = {}
    for name, one in held.pinned.items():
        digests = read_rows(one)
        statuses = ((path, status_of(path)) for path in digests)
        files = {path: status for path, status in statuses if status is not None}
        seen = Seen(version_of(one), one.folder, one.site, digest_of_rows(one), files, digests)
        found[name] = replace(seen, hidden=_hidden(name, seen, sites))
    return found


def read_rows(distribution: Distribution) -> dict[str, str]:
    """The digest of each file that RECORD lists, by its absolute path, except bytecode and bookkeeping."""
    return _rows_of(distribution, status_of(distribution.record))


@functools.cache
def _rows_of(distribution: Distribution, _status: Status | None) -> dict[str, str]:
    """Read once, as long as RECORD is unchanged: torch has 15,000 rows."""
    found: dict[str, str] = {}
    try:
        with open(distribution.record, encoding="utf-8", errors="surrogateescape", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, csv.Error):
        return found
    own = os.path.basename(distribution.folder)
    for row in rows:
        path = row[0]
        is_own = path.startswith(f"{own}/") and os.path.basename(path) in _BOOKKEEPING
        if not is_own and not path.endswith((".pyc", ".pyo")) and "/__pycache__/" not in path:
            found[os.path.normpath(os.path.join(distribution.site, path))] = row[1] if len(row) > 1 else ""
    return found


def digest_of_rows(distribution: Distribution) -> str:
    """A digest of RECORD that does not depend on the order of rows or on the installer."""
    return _digest_of(distribution, status_of(distribution.record))


@functools.cache
def _digest_of(distribution: Distribution, _status: Status | None) -> str:
    total = hashlib.sha256()
    site = f"{distribution.site}{os.sep}"
    for path, digest in sorted(read_rows(distribution).items()):
        total.update(f"{path.replace(site, '', 1)},{digest}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def status_of(path: str) -> Status | None:
    """The status of a file, None when it is missing."""
    try:
        found = os.stat(path)  # of a link's target: uv can link into its cache
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ino)


def compare(before: Mapping[str, Seen], needed: Mapping[str, str], sites: Sequence[str]) -> list[Damage]:
    """The changes since ``before``; ``needed`` are versions of packages that must stay, by name."""
    now = installed(sites)
    damages = []
    for name, seen in before.items():
        what = _damage(name, seen, now) or _newly_hidden(name, seen, sites)
        if what:
            damages.append(Damage(name, what))
    for name, version in needed.items():
        if name not in now and name not in before:
            damages.append(Damage(name, f"{name} {version}, which is required, was removed"))
    return damages


def _damage(name: str, seen: Seen, now: Mapping[str, Distribution]) -> str:
    current = now.get(name)
    if current is None:
        return f"{name} {seen.version} was removed"
    version = version_of(current)
    if current.site != seen.site:
        return f"{name} {version} in {current.site} hides {name} {seen.version}"
    if version != seen.version:
        return f"{name} {seen.version} was replaced by {version}"
    digests = read_rows(current)
    if digest_of_rows(current) != seen.record:
        return f"{name} {seen.version} was replaced by another build of the same version"
    changed = [path for path in _touched(seen) if not _is_recorded(path, digests.get(path, ""))]
    if not changed:
        return ""
    shown = os.path.relpath(changed[0], seen.site)
    more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
    owners = [other for other in sorted(now) if other != name and changed[0] in read_rows(now[other])]
    by = f" by {owners[0]} {version_of(now[owners[0]])}" if owners else ""
    gone = "removed" if status_of(changed[0]) is None else "overwritten"
    return f"{shown}{more} of {name} {seen.version} was {gone}{by}"


def _touched(seen: Seen) -> list[str]:
    """The files of another status than before, whose content is then compared with RECORD.

    Where every inode is another one, the environment was copied, or its image came from elsewhere: there the size and
    the time to the second decide, which an archive of a layer keeps. Else 3 GB would be read before each command.
    """
    now = {path: status_of(path) for path in seen.files}
    touched = [path for path, status in seen.files.items() if now[path] != status]
    found = [(seen.files[path], current) for path in touched if (current := now[path]) is not None]
    if len(touched) < len(seen.files) or any(then[2] == current[2] for then, current in found):
        return touched
    return [path for path in touched if _to_the_second(now[path]) != _to_the_second(seen.files[path])]


def _to_the_second(status: Status | None) -> tuple[int, int] | None:
    return None if status is None else (status[0], status[1] // 10**9)


def _newly_hidden(name: str, seen: Seen, sites: Sequence[str]) -> str:
    hidden = _hidden(name, seen, sites)
    return hidden if hidden != seen.hidden else ""


def _hidden(name: str, seen: Seen, sites: Sequence[str]) -> str:
    """The modules that imports find in place of a distribution's; "" if its own."""
    places = hiding(seen, sites)
    return f"{places[0]} hides that of {name} {seen.version}" if places else ""


def hiding(seen: Seen, sites: Sequence[str]) -> list[str]:
    """The paths of modules that hide those of a distribution: same names, in earlier folders."""
    earlier = sites[: sites.index(seen.site)] if seen.site in sites else []
    earlier = [site for site in earlier if os.path.isdir(site)]
    if not earlier:
        return []
    own = {name for path in seen.files for name in [_module(path, seen)] if name}
    found = [os.path.join(site, f"{name}{end}") for site in earlier for name in sorted(own) for end in ("", ".py")]
    return [path for path in found if os.path.exists(path)]


def _module(path: str, seen: Seen) -> str:
    """The module or package to which a file belongs, as a path without suffix; that below a namespace package."""
    inside = path[len(seen.site) + 1 :].split(os.sep) if path.startswith(f"{seen.site}{os.sep}") else [""]
    top = inside[0]
    if not top or top.endswith((".dist-info", ".data")):
        return ""
    if len(inside) == 1:
        return top[:-3] if top.endswith(".py") else ""
    if len(inside) == 2 or os.path.join(seen.site, top, "__init__.py") in seen.files:
        return top
    return os.path.join(top, inside[1])


def remove_hiding(before: Mapping[str, Seen], there: set[str], sites: Sequence[str]) -> None:
    """Remove the distributions that were not ``there`` before and hide held modules."""
    paths = [path for seen in before.values() for path in hiding(seen, sites)]
    for one in every(sites) if paths else ():
        owned = read_rows(one)
        if one.folder not in there and any(
            row == path or row.startswith(f"{path}/") for row in owned for path in paths
        ):
            with contextlib.suppress(OSError):
                _remove(one, set())
                for path in paths:
                    _remove_empty(path)


def _remove_empty(path: str) -> None:
    """Remove a folder that has only empty folders and bytecode, since it would be a namespace package."""
    if os.path.isdir(path) and all(name.endswith(".pyc") for _, _, names in os.walk(path) for name in names):
        shutil.rmtree(path, ignore_errors=True)


def _is_recorded(path: str, digest: str) -> bool:
    """Whether a file has its digest in RECORD; False without a digest."""
    method, equals, expected = digest.partition("=")
    if not equals or method not in hashlib.algorithms_guaranteed:
        return False
    total = hashlib.new(method)
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                total.update(block)
    except OSError:
        return False
    return base64.urlsafe_b64encode(total.digest()).rstrip(b"=").decode() == expected


class Stash:
    """Hard links to every held file, in a folder of the guard."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._links: dict[str, str] = {}

    def fill(self, distributions: Iterable[Distribution]) -> bool:
        """Link every file; False, with nothing left, where the file system cannot."""
        try:
            os.mkdir(self.folder, 0o700)
            if not _is_overlay(self.folder):
                for one in distributions:
                    self._link(one)
                return True
        except OSError:
            pass
        self.remove()
        return False

    def _link(self, distribution: Distribution) -> None:
        own = [os.path.join(distribution.folder, name) for name in os.listdir(distribution.folder)]
        for path in {*read_rows(distribution), *own}:
            if os.path.isfile(path):
                link = os.path.join(self.folder, str(len(self._links)))
                os.link(path, link)
                self._links[path] = link

    def put_back(self, before: Mapping[str, Seen], needed: Mapping[str, Distribution], sites: Sequence[str]) -> None:
        """Restore every changed held file, and remove its replacements."""
        now = installed(sites)
        kept = set(self._links)
        for name, seen in before.items():
            current = now.get(name)
            if current is not None and current.folder != seen.folder:
                _remove(current, kept)
        for name, one in needed.items():
            if name not in before and name not in now:
                os.makedirs(one.folder, exist_ok=True)
        for path, link in self._links.items():
            linked = os.stat(link)
            status = status_of(path)
            if status is None or status[2] != linked.st_ino:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                temporary = f"{path}.{os.getpid()}.tmp"
                os.link(link, temporary)
                os.replace(temporary, path)
        for seen in before.values():  # files that another build added to the same folder
            for name in os.listdir(seen.folder) if os.path.isdir(seen.folder) else ():
                path = os.path.join(seen.folder, name)
                if path not in kept and os.path.isfile(path):
                    os.unlink(path)

    def remove(self) -> None:
        """Remove the links."""
        self._links.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def _remove(distribution: Distribution, kept: set[str]) -> None:
    """Remove a distribution that replaced a held one, except the restored files."""
    for path in read_rows(distribution):
        inside = path.startswith(f"{distribution.site}{os.sep}")
        if inside and path not in kept and os.path.isfile(path):
            os.unlink(path)
    shutil.rmtree(distribution.folder, ignore_errors=True)


def _is_overlay(path: str) -> bool:
    """Whether a path is on an overlay file system, by the longest mount point in front of it."""
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    real = os.path.realpath(path)
    for line in lines:
        fields = line.split()
        if "-" not in fields:
            continue
        point = fields[4]
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, fields[fields.index("-") + 1]
    return kind in ("overlay", "fuse-overlayfs", "aufs")
