"""The effect of an install on installed families, from the import order before and after."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.data import load
from wheel_checks.facts.pins.changes import Fate, PackageChange, Role
from wheel_checks.facts.pins.families import Family, families, matches
from wheel_checks.facts.pins.fit import fit, partner
from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.facts.wheel.resolution import active_with_extras
from wheel_checks.model import Unavailable

_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([^'"]+)['"]|['"]([^'"]+)['"]\s*==\s*extra\b""")


@dataclass(frozen=True, slots=True)
class Watch:
    """The families with an installed package, and the packages that the user names (globs)."""

    families: tuple[Family, ...]
    named: tuple[str, ...] = ()

    @classmethod
    def of(cls, installed: Iterable[str], named: Sequence[str] = ()) -> Watch:
        """The families whose framework, or a package that is built for it, is among the installed ones."""
        there = tuple(installed)
        found = [
            one
            for one in families()
            if one.anchor and any(one.is_anchor(n) or matches(n, one.companions) for n in there)
        ]
        return cls(tuple(found), tuple(named))

    def role(self, name: str) -> Role | None:
        """The role of a package; None if it is not watched."""
        if matches(name, self.named):
            return Role.NAMED
        for role, is_one in (
            (Role.ANCHOR, lambda one: one.is_anchor(name)),
            (Role.COMPANION, lambda one: matches(name, one.companions)),
            (Role.LIBRARY, lambda one: matches(name, one.closure)),
        ):
            if any(map(is_one, self.families)):
                return role
        return None

    def rank(self, name: str) -> tuple[int, int, str]:
        """Sort key of a package in a report: frameworks first, in the order of the table."""
        role = self.role(name)
        number = next((n for n, one in enumerate(self.families) if one.is_member(name)), len(self.families))
        return (list(Role).index(role) if role else len(Role), number, name)


def changes_between(
    before: ImportOrder,
    after: ImportOrder,
    watch: Watch,
    environment: Mapping[str, str],
    installer: str,
    machine: str,
    overwritten: Mapping[str, str] | None = None,
) -> list[PackageChange]:
    """The effect on watched packages, and their lost requirements.

    ``environment`` has the target's markers; ``overwritten`` has the package that writes over files of another one, by
    the name of the latter.
    """
    names = {n for n in (*before.copies, *after.copies) if watch.role(n)}
    known = overwritten or {}
    changes = {name: _change(name, before, after, watch, installer, machine, known.get(name, "")) for name in names}
    judging = _Judging(before, after, watch, environment, changes)
    judged = [judging.judge(change) for change in changes.values()]
    return sorted(judged, key=lambda change: (change.fate is Fate.KEPT, watch.rank(change.name)))


@dataclass(frozen=True, slots=True)
class _Judging:
    """Checks the requirements of packages once the effect on each package itself is known."""

    before: ImportOrder
    after: ImportOrder
    watch: Watch
    environment: Mapping[str, str]
    changes: Mapping[str, PackageChange]

    def judge(self, change: PackageChange) -> PackageChange:
        """The change with the requirements that the package would lack, and with incompatible ones."""
        name = change.name
        is_there = change.fate not in (Fate.REMOVED, Fate.OVERWRITTEN)
        if not is_there or name in self.before.loose or change.role is Role.LIBRARY:
            return change
        lacking = list(self._lacking(name))
        closure = _Closure(self.before, self.environment, self.watch).closure(name)
        lost = [
            self.changes[other]
            for other in sorted(self.changes)
            if self.changes[other].fate is Fate.OVERWRITTEN and other in closure and other != name
        ]
        broken = [_in_words(holder, name, requirement, found) for holder, requirement, found in lacking]
        broken += [other.sentence for other in lost]
        culprits = [str(canonicalize_name(requirement.name)) for _, requirement, _ in lacking]
        culprits += [other.by.partition(" ")[0] for other in lost]
        unfit, unknown = _fits(name, self.before, self.after, self.changes)
        is_new_anchor = change.role is Role.ANCHOR and change.fate is not Fate.KEPT
        breaks = (broken or unfit) and change.fate is not Fate.SHADOWED and not is_new_anchor
        return replace(
            change,
            fate=Fate.BROKEN if breaks else change.fate,
            broken=tuple(dict.fromkeys(broken)),
            unfit=unfit,
            open=(*unknown, *self._unread(change)),
            culprits=tuple(dict.fromkeys(culprits)),
        )

    def _lacking(self, name: str) -> Iterator[tuple[Copy, Requirement, Copy | None]]:
        """The requirements that the closure of a package would lack after the install, and did not before."""
        lacked = _Closure(self.before, self.environment, self.watch).lacking(name)
        known = {(holder.name, str(requirement)) for holder, requirement, _ in lacked}
        for holder, requirement, found in _Closure(self.after, self.environment, self.watch).lacking(name):
            if (holder.name, str(requirement)) not in known:
                yield holder, requirement, found

    def _unread(self, change: PackageChange) -> Iterator[str]:
        """Whether a framework allows the changed libraries is unknown if only its name and version are known."""
        copy = self.before.visible(change.name)
        if copy is None or not isinstance(copy.requirements, Unavailable) or change.role is not Role.ANCHOR:
            return
        closure = [pattern for one in self.watch.families if one.is_anchor(change.name) for pattern in one.closure]
        for other, changed in sorted(self.changes.items()):
            may = copy.may_require is None or other in copy.may_require
            if changed.fate is not Fate.KEPT and matches(other, closure) and may:
                yield f"{changed.sentence}: the requirements of {copy.label} are unknown"


def _change(
    name: str, before: ImportOrder, after: ImportOrder, watch: Watch, installer: str, machine: str, overwritten: str
) -> PackageChange:
    """The effect on one package by itself."""
    old, new = before.visible(name), after.visible(name)
    role = watch.role(name) or Role.LIBRARY
    change = PackageChange(name, old.version if old else "", new.version if new else "", installer, machine, role=role)
    if name in before.loose or (old is not None and old is new):
        alike = None if name in before.loose else _overwriting(old, after)
        by = alike.label if alike else overwritten
        change = replace(change, after=change.before)
        return replace(change, fate=Fate.OVERWRITTEN, by=by) if by else change
    if old is None:
        return replace(change, fate=Fate.ADDED)
    if new is None:
        return replace(change, fate=Fate.REMOVED)
    if old in after.copies[name]:
        return replace(change, fate=Fate.SHADOWED, place=after.folders[new.folder])
    return replace(change, fate=Fate.REPLACED)


def _overwriting(old: Copy | None, after: ImportOrder) -> Copy | None:
    """The new package that installs the files of another one into the same folder; None without one."""
    if old is None:
        return None
    new = (copy for rows in after.copies.values() for copy in rows if copy.is_new and copy.name != old.name)
    return next((c for c in new if c.folder == old.folder and shares_files(old.name, c.name)), None)


@cache
def shares_files(one: str, other: str) -> bool:
    """Whether two packages are known to install the same files."""
    pattern = re.compile(load("accelerators")["same_paths"]["pattern"])
    libraries = [match[1] if (match := pattern.fullmatch(name)) else "" for name in (one, other)]
    if libraries[0] and libraries[0] == libraries[1]:
        return True
    if any(row.is_anchor(one) and row.is_anchor(other) for row in families()):
        return True
    return any({one, other} <= set(projects) for projects in load("import_names")["imports"].values())


@dataclass(frozen=True, slots=True)
class _Closure:
    """The requirements among packages in one import order."""

    order: ImportOrder
    environment: Mapping[str, str]
    watch: Watch

    def closure(self, root: str) -> dict[str, Copy]:
        """The packages that ``root`` leads to, itself included."""
        found: dict[str, Copy] = {}
        front = [root]
        while front:
            copy = self.order.visible(name := front.pop())
            if copy is None or name in found:
                continue
            found[name] = copy
            front += [str(canonicalize_name(requirement.name)) for requirement in self._requirements(copy)]
        return found

    def lacking(self, root: str) -> Iterator[tuple[Copy, Requirement, Copy | None]]:
        """The unmet requirements in the closure of a package, with the copy that is present."""
        for copy in self.closure(root).values():
            for requirement in self._requirements(copy):
                found = self.order.visible(str(canonicalize_name(requirement.name)))
                if found is None:
                    if not (copy.is_new and _is_of_an_extra(requirement)):  # that extra may not have been requested
                        yield copy, requirement, None
                elif not requirement.specifier.contains(found.version, prereleases=True):
                    yield copy, requirement, found

    def _requirements(self, copy: Copy) -> list[Requirement]:
        """The requirements of a package; of its extras, which nothing records, only packages of a family."""
        if isinstance(copy.requirements, Unavailable):
            return []
        active = active_with_extras(copy.requirements, self.environment, extras_of(copy.requirements))
        is_watched = self.watch.role(copy.name) is not None
        return [
            r
            for r in active
            if not _is_of_an_extra(r) or (is_watched and self.watch.role(str(canonicalize_name(r.name))))
        ]


@cache
def extras_of(requirements: tuple[Requirement, ...]) -> tuple[str, ...]:
    """The extras that the markers of requirements name."""
    found = (a or b for r in requirements if r.marker for a, b in _EXTRA.findall(str(r.marker)))
    return tuple(dict.fromkeys(found))


def _is_of_an_extra(requirement: Requirement) -> bool:
    return requirement.marker is not None and bool(_EXTRA.search(str(requirement.marker)))


def _in_words(holder: Copy, root: str, requirement: Requirement, found: Copy | None) -> str:
    name = str(canonicalize_name(requirement.name))
    who = "it" if holder.name == root else holder.label
    wanted = str(requirement).partition(";")[0].strip()
    return f"{who} requires {wanted}, but {f'{name} {found.version}' if found else f'no {name}'} would be installed"


def _fits(
    name: str, before: ImportOrder, after: ImportOrder, changes: Mapping[str, PackageChange]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The incompatible packages of a companion, and undecided ones; empty if neither of the two changes."""
    other = partner(name)
    ours, theirs = after.visible(name), after.visible(other) if other else None
    old, old_theirs = before.visible(name), before.visible(other) if other else None
    if ours is None or theirs is None or (ours is old and theirs is old_theirs):
        return (), ()
    if old is not None and old_theirs is not None and fit(name, old.version, old_theirs.version).fits is False:
        return (), ()  # it is incompatible already: not because of the install
    judged = fit(name, ours.version, theirs.version)
    if judged.fits is False:
        return (f"{ours.label} does not match {theirs.label}: {judged.expected}",), ()
    is_silent = any(matches(name, one.silent) for one in families())
    if judged.fits is None and is_silent and not (other in changes and changes[other].is_lost):
        return (), (f"it is unknown whether {ours.label} matches {theirs.label}",)
    return (), ()
