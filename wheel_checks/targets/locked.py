"""The packages of a lock that a target gets, without resolving, as its installer would choose them. Pure.

The lock of uv is a graph, walked from the projects of its workspace; those of poetry and pdm state the groups and the
marker of each package (older ones are graphs, too); ``pylock.toml`` is a list with markers; ``pixi.lock`` lists
packages for each environment and platform.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from wheel_checks.errors import UsageError
from wheel_checks.formats.lock.model import (
    CONDA,
    PDM,
    PIXI,
    PROJECT,
    PYLOCK,
    UV,
    CondaPlatform,
    Lock,
    LockedDependency,
    LockedPackage,
    Member,
)
from wheel_checks.parsing import specifiers_or_none, version_or_none
from wheel_checks.phrases import joined, summarised
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheel_checks.targets.lock_markers import Conditions, python_fits
from wheel_checks.targets.target import Target

_GLIBC = re.compile(r"__glibc[>=]{0,2}(?P<major>\d{1,3})\.(?P<minor>\d{1,3})")
_CONDA_PLATFORMS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}
_PDM_PLATFORMS = {"linux": "x86_64"}  # pdm's short name (dep-logic, tags/platform.py)
_MOST_ROUNDS = 10
_PYTHON = "python"  # of conda
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Selected:
    """The packages that a target gets of a lock, in the order of the lock.

    ``outside`` says why the lock is not for this target (then there are no packages), or is "". ``open`` are sentences
    about undecided points, ``notes`` about how it was read.
    """

    target: Target
    packages: tuple[LockedPackage, ...] = ()
    outside: str = ""
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def validated(lock: Lock, choice: ExtrasAndGroups, name: str) -> ExtrasAndGroups:
    """The choice with normalised names, and every extra if all are requested.

    Raises UsageError for an extra or a group that the lock ``name`` does not have, and for a choice that it declares to
    be in conflict.
    """
    extras = tuple(dict.fromkeys(map(canonicalize_name, choice.extras)))
    normalised = {canonicalize_name(group): group for group in lock.groups}
    groups = tuple(dict.fromkeys(map(canonicalize_name, choice.groups)))
    knows_extras = lock.format not in (PDM, PIXI)
    known = {canonicalize_name(extra) for extra in lock.extras}
    if lock.format == PDM:  # a group of optional dependencies is a group of the lock
        known = set(normalised)
    for requested, of_lock, kind in ((extras, known, "extra"), (groups, set(normalised), "group")):
        if unknown := [one for one in requested if one not in of_lock]:
            listed = summarised(sorted(of_lock), _NAMED) or "none"
            raise UsageError(f"{name} has no {kind} {unknown[0]!r}", expected=f"one of these: {listed}")
    if choice.all_extras and knows_extras:
        extras = tuple(sorted(known))
    _require_no_conflict(lock, extras, groups, name)
    if lock.format == PDM:
        groups, extras = (*groups, *extras), ()
    if lock.format == PIXI and len(groups) > 1:
        raise UsageError("several pixi environments were given", expected="one --group for pixi.lock")
    return ExtrasAndGroups(extras, tuple(dict.fromkeys(groups)))


def _require_no_conflict(lock: Lock, extras: Sequence[str], groups: Sequence[str], name: str) -> None:
    roots = set(lock.roots)

    def is_chosen(member: Member) -> bool:
        if member.package not in roots:
            return False
        if member.extra:
            return member.extra in extras
        return member.group in groups if member.group else len(roots) > 1

    for members in lock.conflicts:
        chosen = [str(member) for member in members if is_chosen(member)]
        if len(chosen) > 1 and any(m.extra or m.group for m in members if is_chosen(m)):
            raise UsageError(f"{name} declares {joined(chosen)} to be in conflict", expected="one of them")


def covered_targets(lock: Lock, targets: Iterable[Target], choice: ExtrasAndGroups) -> tuple[Target, ...]:
    """The targets that the lock is for; all of them if it is for none."""
    every = tuple(targets)
    return tuple(target for target in every if not _outside(lock, target, choice)) or every


def python_of(lock: Lock, choice: ExtrasAndGroups) -> str:
    """The Python that an environment of pixi has, such as "3.13", "" for another format, or when it is unknown."""
    if lock.format != PIXI:
        return ""
    environment = lock.chosen.get(choice.groups[0] if choice.groups else lock.default_groups[0], {})
    for places in environment.values():
        for place in places:
            package = lock.packages[place]
            if package.source == CONDA and package.name == _PYTHON:
                return ".".join(package.version.split(".")[:2])
    return ""


def select(lock: Lock, target: Target, choice: ExtrasAndGroups) -> Selected:
    """The packages that ``target`` gets; ``choice`` was :func:`validated`. Raises FormatError for invalid markers."""
    if outside := _outside(lock, target, choice):
        return Selected(target, outside=outside)
    if lock.format == PIXI:
        environment = lock.chosen[choice.groups[0] if choice.groups else lock.default_groups[0]]
        platform = _platform_of(environment, target)
        packages = [lock.packages[place] for place in environment[platform]] if platform else []
        notes = (f"the platform {platform} of the lock is checked",) if platform and platform.virtual_packages else ()
        return Selected(target, tuple(_with_distinct_names(packages)), notes=notes)
    if lock.format == UV:
        return _Walk(lock, target, choice).of_uv()
    if lock.format == PYLOCK:
        groups = frozenset(map(canonicalize_name, (*lock.default_groups, *choice.groups)))
        conditions = Conditions(target, frozenset(choice.extras), groups)
        return _unique(target, [p for p in lock.packages if conditions.hold(p.marker)])
    if lock.has_groups:
        return _by_groups(lock, target, choice)
    return _Walk(lock, target, choice).of_old()


def _with_distinct_names(packages: Sequence[LockedPackage]) -> Iterator[LockedPackage]:
    """The packages of an environment, with another name for a conda package that Python's index gives, too."""
    of_index = {package.name for package in packages if package.source != CONDA}
    for package in packages:
        twice = package.source == CONDA and canonicalize_name(package.name) in of_index
        yield replace(package, name=f"{package.name} (conda)") if twice else package


def _outside(lock: Lock, target: Target, choice: ExtrasAndGroups) -> str:
    """Why the lock is not for the target."""
    python = f"{target.python[0]}.{target.python[1]}"
    if lock.format == PIXI:
        return _outside_pixi(lock, target, choice, python)
    if lock.requires_python and not python_fits(lock.requires_python, target):
        return f"it is for Python {lock.requires_python}, not {target.python_full_version}"
    conditions = Conditions(target, any_extra=True)
    for markers, what in ((lock.environments, "environments"), (lock.forks, "forks")):
        if not conditions.any_of(markers):
            return f"none of its {what} is {target.machine} with Python {python}: {summarised(markers, 2)}"
    if lock.platforms and not any(_of_pdm(name, target.machine) for name in lock.platforms):
        return f"it is for {joined(list(lock.platforms))}, not for {target.machine}"
    return ""


def _of_pdm(name: str, machine: str) -> bool:
    return _PDM_PLATFORMS.get(name) == machine or (name.startswith(("manylinux", "linux")) and name.endswith(machine))


def _platform_of(platforms: Iterable[CondaPlatform], target: Target) -> CondaPlatform | None:
    """The platform that fits the target: with ``__cuda`` if there is one, as on a machine with a GPU."""
    subdir = _CONDA_PLATFORMS[target.machine]
    fitting = [one for one in platforms if one.subdir == subdir and not _unmet(one, target)]
    return max(fitting, key=lambda one: any(name.startswith("__cuda") for name in one.virtual_packages), default=None)


def _unmet(platform: CondaPlatform, target: Target) -> str:
    """The virtual package of a glibc that is newer than the target's, or ""."""
    newer = (m for text in platform.virtual_packages if (m := _GLIBC.fullmatch(text.replace(" ", ""))))
    return next((m[0] for m in newer if (int(m["major"]), int(m["minor"])) > target.glibc), "")


def _outside_pixi(lock: Lock, target: Target, choice: ExtrasAndGroups, python: str) -> str:
    name = choice.groups[0] if choice.groups else lock.default_groups[0]
    subdir = _CONDA_PLATFORMS[target.machine]
    found = lock.chosen.get(name)
    if found is None:
        return f"it has no environment {name}; it has {summarised(sorted(lock.chosen), _NAMED)}"
    platform = _platform_of(found, target)
    if platform is None:
        reason = f"its environment {name} is for {joined(sorted(map(str, found))) or 'no platform'}, not for {subdir}"
        elsewhere = [other for other, platforms in lock.chosen.items() if _platform_of(platforms, target)]
        unmet = next((f", glibc {target.glibc[0]}.{target.glibc[1]}" for one in found if _unmet(one, target)), "")
        return f"{reason} ({target.machine}{unmet})" + (f"; {summarised(elsewhere, _NAMED)} is" if elsewhere else "")
    own = [lock.packages[p] for p in found[platform] if lock.packages[p].name == _PYTHON]
    locked = [package.version for package in own if package.source == CONDA]
    if locked and ".".join(locked[0].split(".")[:2]) != python:
        return f"its environment {name} has Python {locked[0]}, not {python}"
    return ""


def _by_groups(lock: Lock, target: Target, choice: ExtrasAndGroups) -> Selected:
    """Poetry from 2.1 on, pdm with inherited metadata: each package states its groups."""
    groups = frozenset(map(canonicalize_name, (*lock.default_groups, *choice.groups)))
    conditions = Conditions(target, frozenset(choice.extras), groups)

    def is_taken(package: LockedPackage) -> bool:
        chosen = [group for group in package.in_groups if group in groups]
        if not chosen or not conditions.hold(package.marker):
            return False
        return any(conditions.hold(package.group_markers.get(group, "")) for group in chosen)

    return _unique(target, [package for package in lock.packages if is_taken(package)])


def _unique(target: Target, packages: Sequence[LockedPackage]) -> Selected:
    """One package of each name: pdm has one entry more for the extras of a package, and forks may overlap."""
    taken: dict[str, LockedPackage] = {}
    left_open = []
    for package in packages:
        before = taken.get(package.name)
        if before is None or (before.extras and not package.extras and before.version == package.version):
            taken[package.name] = package
        elif before.version != package.version:
            better = _preferred(before, package, target)
            left_open.append(f"the lock has {before.label} and {package.version} for it; {better.version} is checked")
            taken[package.name] = better
    return Selected(target, tuple(taken.values()), open=tuple(left_open))


def _preferred(one: LockedPackage, other: LockedPackage, target: Target) -> LockedPackage:
    """That whose Python fits, else the newer one."""
    fitting = [package for package in (one, other) if python_fits(package.requires_python, target)]
    known = [(version_or_none(package.version), package) for package in fitting or (one, other)]
    return max(known, key=lambda pair: (pair[0] is not None, pair[0]))[1] if all(v for v, _ in known) else one


class _Walk:
    """Follows the edges of a lock that is a graph."""

    def __init__(self, lock: Lock, target: Target, choice: ExtrasAndGroups) -> None:
        self.lock, self.target, self.choice = lock, target, choice
        self.by_name: dict[str, list[LockedPackage]] = {}
        for package in lock.packages:
            self.by_name.setdefault(package.name, []).append(package)
        self.conditions = Conditions(target)
        self.possible = Conditions(target, any_extra=True)
        self.open: dict[str, None] = {}

    def of_uv(self) -> Selected:
        """Walk until the extras that markers of conflicts name do not change any more."""
        roots = [p for name in self.lock.roots for p in self.by_name.get(name, ()) if p.source == PROJECT]
        active = {f"project-{len(p.name)}-{p.name}" for p in roots}
        for package in roots:
            active |= {_long("extra", package.name, e) for e in self.choice.extras if e in package.optional}
            active |= {_long("group", package.name, g) for g in self.choice.groups if g in package.development}
        found: dict[int, LockedPackage] = {}
        for _ in range(_MOST_ROUNDS):
            self.conditions = Conditions(self.target, frozenset(active))
            found, met = self._from(roots)
            if met <= active:
                break
            active |= met
        packages = [p for p in self.lock.packages if id(p) in found and p.source != PROJECT]
        chosen = _unique(self.target, packages)
        return replace(chosen, open=(*chosen.open, *self.open))

    def _from(self, roots: Sequence[LockedPackage]) -> tuple[dict[int, LockedPackage], set[str]]:
        """The packages reached under the current conditions, by identity, and the extras that edges request."""
        found: dict[int, LockedPackage] = {id(root): root for root in roots}
        met: set[str] = set()
        seen: set[tuple[int, str]] = set()
        front = deque(edge for edge in self._first_edges(roots) if self.conditions.hold(edge.marker))
        while front:
            edge = front.popleft()
            for package in self._ends(edge):
                found[id(package)] = package
                met.update(_long("extra", package.name, extra) for extra in edge.extras)
                for extra in ("", *edge.extras):
                    if (id(package), extra) in seen:
                        continue
                    seen.add((id(package), extra))
                    edges = package.optional.get(extra, ()) if extra else package.dependencies
                    front.extend(e for e in edges if self.conditions.hold(e.marker))
        return found, met

    def _first_edges(self, roots: Sequence[LockedPackage]) -> Iterator[LockedDependency]:
        """The requirements of the projects, with the chosen extras and groups."""
        for root in roots:
            yield from root.dependencies
            for extra in self.choice.extras:
                yield from root.optional.get(extra, ())
            for group in self.choice.groups:
                yield from root.development.get(group, ())
        for group in self.choice.groups:
            yield from self.lock.development.get(group, ())
        yield from self.lock.requirements

    def _ends(self, edge: LockedDependency) -> list[LockedPackage]:
        """The package that an edge leads to; several only if the lock does not distinguish them."""
        found = self.by_name.get(edge.name, [])
        if not found:
            self.open.setdefault(f"{edge.name} is required, but the lock has no entry for it")
            return []
        if edge.version:
            found = [p for p in found if p.version == edge.version] or found
        if edge.origin:
            found = [p for p in found if p.origin == edge.origin] or found
        if len(found) > 1:
            found = [p for p in found if self.possible.any_of(p.forks)] or found
        return found

    def of_old(self) -> Selected:
        """Poetry before 2.1, pdm before it inherited metadata: the roots are packages that no other depends on.

        If the lock has no groups, packages that only groups need are considered requested.
        """
        required = {edge.name for package in self.lock.packages for edge in package.dependencies}
        required -= {p.name for p in self.lock.packages if any(e.name == p.name for e in p.dependencies)}
        chosen = {name for extra in self.choice.extras for name in self.lock.extras.get(extra, ())}
        front = deque(
            p
            for p in self.lock.packages
            if (p.name not in required and not p.is_optional and self.conditions.hold(p.marker)) or p.name in chosen
        )
        extras = frozenset(self.choice.extras)
        demanded: dict[str, list[str]] = {}
        seen: set[str] = set()
        while front:
            package = front.popleft()
            if package.name in seen:
                continue
            seen.add(package.name)
            for version in self.by_name[package.name]:
                if not python_fits(version.requires_python, self.target):
                    continue
                for edge in version.dependencies:
                    held = (
                        Conditions(self.target, extras | set(edge.extras))
                        if "extra" in edge.marker
                        else self.conditions
                    )
                    if held.hold(edge.marker):
                        demanded.setdefault(edge.name, []).append(edge.specifier)
                        front.extend(self.by_name.get(edge.name, ())[:1])
        packages = [self._of_demands(name, demanded.get(name, ())) for name in self.by_name if name in seen]
        note = "it does not state which packages its groups request, so all of them count"
        return Selected(self.target, tuple(packages), open=tuple(self.open), notes=(note,))

    def _of_demands(self, name: str, specifiers: Sequence[str]) -> LockedPackage:
        """Of several versions of a package the latest that fits the Python and all demands."""
        found = self.by_name[name]
        if len(found) == 1:
            return found[0]

        together = specifiers_or_none(",".join(filter(None, specifiers)))

        def fits(package: LockedPackage) -> bool:
            return together is None or together.contains(package.version, prereleases=True)

        fitting = [p for p in found if python_fits(p.requires_python, self.target)] or found
        fitting = [p for p in fitting if fits(p)] or fitting
        if len(fitting) > 1:
            versions = joined([p.version for p in fitting])
            self.open.setdefault(f"the lock has {name} {versions} but does not state which one this target gets")
        best = fitting[0]
        for package in fitting[1:]:
            best = _preferred(best, package, self.target)
        return best


def _long(kind: str, package: str, name: str) -> str:
    """The name of an extra or a group in the markers of uv.lock."""
    return f"{kind}-{len(package)}-{package}-{name}"
