"""Resolve as pip and uv do, source archives included: uv resolves again while there are newer ones to choose.

uv with ``--no-build`` walks back to releases that have a wheel, however old. So after each resolution the archives of
newer releases are read, and made usable (:mod:`wheelproof.wheels.source_archives`); nearly every stack needs none, and
then one run of uv is all.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.errors import SourceError, WheelproofError
from wheel_checks.facts.stack.facts import PreRelease, Refused
from wheel_checks.facts.wheel.resolution import active_with_extras, exact_pin
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.parsing import requirement_or_none, version_or_none
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.scratch_folder import scratch_folder
from wheel_checks.sources.uv.explanation import Explanation
from wheel_checks.sources.uv.resolver import NoSolutionError, Resolution
from wheel_checks.targets.selection import Reason, releases
from wheel_checks.targets.target import Target
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.source_archives import ArchiveFolder

MOST_ROUNDS = 12  # runs of uv; real stacks need one to three
MOST_ARCHIVES = 64  # read for one stack; each costs up to 128 MiB, nearly all less than one
MOST_RELEASES = 200  # newer releases whose requirements are read after one resolution
MOST_EXPLAINED = 4  # packages whose refused newer releases are explained, with one run of uv each
MOST_SENTENCES = 3
FEW = 8  # packages without an explanation: looking at their newer releases costs less than finding one
_AT_ONCE = 8
_ONLY = re.compile(r"(?P<there>only \S+) is available and (?P<by>\S+) depends on (?P<what>\S+)")

Run = Callable[[tuple[str, ...], tuple[str, ...]], Resolution]
"""Resolves with more find-links places and more constraints.

Raises the errors of :func:`wheel_checks.sources.uv.resolver.resolve`.
"""


@dataclass(frozen=True, slots=True)
class Settled:
    """A resolution in which every package has the wheel or source archive that an installer chooses.

    ``archives`` are its source archives, by package name. ``failed`` says, by package name, why an archive that an
    installer would try could not be read. ``unfinished`` says why newer releases may have been missed, "" if none.
    ``refused`` are newer releases of requested packages, ``pre_releases`` those for which pip chooses others.
    """

    resolution: Resolution
    archives: Mapping[str, SourceArchive] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    unfinished: str = ""
    refused: tuple[Refused, ...] = ()
    pre_releases: tuple[PreRelease, ...] = ()


class UndecidedConflictError(NoSolutionError):
    """No solution with the requirements of source archives; those in ``computed`` compute theirs at build time."""

    def __init__(self, explanation: Explanation, computed: Sequence[SourceArchive]) -> None:
        super().__init__(explanation)
        self.computed = tuple(computed)


class ArchiveSearch:
    """Looks for the source archives that an installer would take on ``target``.

    ``run`` resolves ``requested`` under ``constraints``. ``passed_over`` packages have no archives: omitted ones, and
    those bound to one index.
    """

    def __init__(
        self,
        run: Run,
        requested: Iterable[Requirement],
        target: Target,
        indexes: KnownIndexes,
        client: HttpClient,
        *,
        constraints: Iterable[Requirement] = (),
        pre: bool = False,
        passed_over: Iterable[str] = (),
    ) -> None:
        self._run = run
        self._passed_over = frozenset(map(canonicalize_name, passed_over))
        self.folder = ArchiveFolder(Path(), client, indexes, target, pre)
        self._read: dict[str, CoreMetadata] = {}
        self.requested: dict[str, list[Requirement]] = {}
        self.constraints: dict[str, list[Requirement]] = {}
        for requirement in active_with_extras(requested, target.markers()):
            if not requirement.url:
                self.requested.setdefault(canonicalize_name(requirement.name), []).append(requirement)
        for constraint in active_with_extras(constraints, target.markers()):
            self.constraints.setdefault(canonicalize_name(constraint.name), []).append(constraint)

    def settle(self, *, compared: bool = True) -> Settled:
        """Resolve until every package is the latest that an installer would take.

        ``compared`` also says which newer releases are refused, and if pip takes others.

        Raises errors of ``run``, UndecidedConflictError, and SourceError when an index does not answer or the search
        does not end.
        """
        with scratch_folder() as folder:
            self.folder.folder = folder
            self._look_ahead()
            resolution: Resolution | None = None
            for _ in range(MOST_ROUNDS):
                try:
                    resolution = self._run(self._places, ())
                except NoSolutionError as error:
                    if not self._explained(error.explanation):
                        raise self._conflict(error) from None
                else:
                    if not self._resolved(resolution):
                        settled = self._settled(resolution)
                        if not compared:
                            return settled
                        return replace(
                            settled,
                            refused=tuple(self._refused(resolution)),
                            pre_releases=tuple(self._pre_releases(resolution)),
                        )
        unfinished = f"uv did not finish within {MOST_ROUNDS} rounds of source archives"
        if resolution is None:
            raise SourceError(unfinished, hint="pin the versions that you want")
        return replace(self._settled(resolution), unfinished=unfinished)

    @property
    def _places(self) -> tuple[str, ...]:
        return (self.folder.folder.as_uri(),) if self.folder.archives else ()

    def _refused(self, resolution: Resolution) -> Iterator[Refused]:
        """The newer releases of requested packages that are not chosen, with uv's error if they are required."""
        taken = {package.name: version for package in resolution.packages if (version := _version(package))}
        requested = [(name, taken[name]) for name in self.requested if name in taken and name not in self._passed_over]
        for name, version in requested[:MOST_EXPLAINED]:
            newest = self.folder.newest(self._of(name), version)
            if newest is None or newest.version is None:
                continue
            try:
                self._run(self._places, (f"{name}=={newest.version}",))
                reason = "uv selects it only when it is pinned"
            except NoSolutionError as error:
                reason = _in_words(error.explanation, name)
            except SourceError as error:
                reason = str(error)
            yield Refused(name, str(newest.version), str(version), reason)

    def _pre_releases(self, resolution: Resolution) -> Iterator[PreRelease]:
        """The pre-releases in a resolution of which pip, without ``--pre``, takes another release, or nothing."""
        packages = [(package, version) for package in resolution.packages if (version := _version(package))]
        found = [
            (package.name, version)
            for package, version in packages
            if version.is_prerelease and not self.folder.pre and package.name not in self._passed_over
        ]
        found = [(n, v) for n, v in found if self.folder.taken_by_pip(self._of(n)).version != v]
        demands = self._demands(packages, found, few=-1) if found else {}
        for name, version in found:
            choice = self.folder.taken_by_pip([*self._of(name), *demands.get(name, ())])
            if choice.version != version:
                gone = [r.file for r in choice.rejected if r.reason is Reason.YANKED]
                finals = [v for v in releases(name, gone) if not v.is_prerelease]
                newest = str(max(finals)) if finals else ""
                yield PreRelease(name, str(version), str(choice.version or ""), newest)

    def _conflict(self, error: NoSolutionError) -> NoSolutionError:
        """The error; undecided when it is about archives whose requirements a build computes."""
        known = [archive for archive, _ in self.folder.archives.values()]
        computed = [archive for archive in known if archive.computed and archive.name in str(error)]
        return UndecidedConflictError(error.explanation, computed) if computed else error

    def _look_ahead(self) -> None:
        """Search archives of the requested packages, and of their requirements in turn."""
        extras = {name: {extra for r in rows for extra in r.extras} for name, rows in self.requested.items()}
        front, seen = list(self.requested), set(self.requested)
        while front:
            found = self._add((name, self._of(name), None) for name in front)
            front = []
            for archive in found:
                active = active_with_extras(
                    archive.requirements, self.folder.target.markers(), extras.get(archive.name, ())
                )
                for requirement in active:
                    name = canonicalize_name(requirement.name)
                    extras.setdefault(name, set()).update(requirement.extras)
                    if name not in seen and not requirement.url:
                        front.append(name)
                        seen.add(name)

    def _resolved(self, resolution: Resolution) -> bool:
        """Whether archives were added after looking at a resolution."""
        packages = [(package, version) for package in resolution.packages if (version := _version(package))]
        wanted: list[_Wanted] = [(package.name, self._of(package.name), version) for package, version in packages]
        for unusable in resolution.unusable:
            wanted += [(unusable.name, rows, None) for rows in self._demanded(unusable.name, unusable.explanation)]
        return bool(
            self._add(wanted)
            or self._add(self._behind(packages), older=True)
            or self._add(self._of_newer_releases(packages))
        )

    def _behind(self, packages: Sequence[tuple[LockedPackage, Version]]) -> list[_Wanted]:
        """The packages with a read archive newer than the chosen release: an older one may fit."""
        found = [
            (p.name, v) for p, v in packages if any(n == p.name and known > v for n, known in self.folder.archives)
        ]
        demands = self._demands(packages, found, few=0) if found else {}
        return [(name, [*self._of(name), *demands.get(name, ())], version) for name, version in found]

    def _of_newer_releases(self, packages: Sequence[tuple[LockedPackage, Version]]) -> list[_Wanted]:
        """Requirements of newer releases that are not chosen, perhaps because of an archive among them."""
        taken = {package.name: version for package, version in packages}
        older = [(name, version) for name, version in taken.items() if self._is_older(name, version, ())]
        demands = self._demands(packages, older) if older else {}
        front = [
            _Newer(name, [*self._of(name), *demands.get(name, ())], version)
            for name, version in older
            if self._is_older(name, version, demands.get(name, ()))
        ]
        seen: set[tuple[str, str]] = set()
        wanted: list[_Wanted] = []
        with ThreadPoolExecutor(_AT_ONCE, "newer") as pool:
            while front and len(seen) < MOST_RELEASES:
                found = list(pool.map(self._requirements_of, front))
                front = []
                for requirement in (r for requirements in found for r in requirements):
                    name = canonicalize_name(requirement.name)
                    version = taken.get(name)
                    fits = version is not None and requirement.specifier.contains(version, prereleases=True)
                    if requirement.url or (fits and not requirement.extras) or (name, str(requirement)) in seen:
                        continue
                    seen.add((name, str(requirement)))
                    rows = [requirement, *self._of(name)]
                    wanted.append((name, rows, None))
                    front.append(_Newer(name, rows, Version("0.dev0")))
        return wanted

    def _requirements_of(self, newer: _Newer) -> list[Requirement]:
        """The requirements of the latest release on the target; none if it cannot be read."""
        choice = None if newer.name in self._passed_over else self.folder.newest(newer.requirements, newer.above)
        if choice is None or choice.version is None:
            return []
        known = self.folder.archives.get((newer.name, choice.version))
        found: Sequence[Requirement] = known[0].requirements if known else ()
        if choice.chosen is not None:
            try:
                found = self._metadata(choice.chosen).requirements
            except WheelproofError:  # uv could not take it either
                return []
        extras = {extra for requirement in newer.requirements for extra in requirement.extras}
        return active_with_extras(found, self.folder.target.markers(), extras)

    def _explained(self, explanation: Explanation) -> bool:
        """Whether archives were added of packages that the explanation names: older ones, as uv would try."""
        names = {*explanation.unusable, *(_name_of(demand.what) for demand in explanation.demands)}
        wanted: list[_Wanted] = []
        for name in sorted(filter(None, map(canonicalize_name, names))):
            wanted += [(name, rows, None) for rows in self._demanded(name, explanation)]
        return bool(self._add(wanted, older=True))

    def _settled(self, resolution: Resolution) -> Settled:
        """The resolution with archives in place of their substitutes."""
        packages, archives = [], {}
        for package in resolution.packages:
            found = self.folder.archives.get((package.name, _version(package) or Version("0")))
            is_archive = found is not None and any(self.folder.holds(file) for file in package.files)
            if found is not None and is_archive:
                archives[package.name] = found[0]
            packages.append(replace(package, files=(found[1],)) if found is not None and is_archive else package)
        versions = {package.name: _version(package) for package in packages}
        failed = {
            name: reason
            for (name, version), reason in self.folder.failed.items()
            if (taken := versions.get(name)) is None or version > taken
        }
        return Settled(replace(resolution, packages=tuple(packages)), archives, failed)

    def _of(self, name: str) -> list[Requirement]:
        return [*self.requested.get(name, [Requirement(name)]), *self.constraints.get(name, ())]

    def _demanded(self, name: str, explanation: Explanation) -> Iterator[list[Requirement]]:
        """The requirements on a package, with each demand in the explanation, and without."""
        for demand in explanation.demands:
            with contextlib.suppress(InvalidRequirement):
                if canonicalize_name(_name_of(demand.what)) == name:
                    yield [*self._of(name), Requirement(demand.what)]
        yield self._of(name)

    def _add(self, wanted: Iterable[_Wanted], *, older: bool = False) -> list[SourceArchive]:
        """Read the latest archive that each of the requirements allows, if that is news; at most ``MOST_ARCHIVES``."""
        rows = [row for row in wanted if row[0] not in self._passed_over]
        with ThreadPoolExecutor(_AT_ONCE, "archives") as pool:
            choices = filter(None, pool.map(lambda row: self.folder.candidate(row[1], row[2], older=older), rows))
            new = {(choice.requirement.name, choice.version): choice for choice in choices}
            room = MOST_ARCHIVES - len(self.folder.archives) - len(self.folder.failed)
            return list(filter(None, pool.map(self.folder.add, list(new.values())[: max(0, room)])))

    def _is_older(self, name: str, version: Version, demands: Sequence[Requirement]) -> bool:
        """Whether a newer release has a file for the target, and nothing demands this one."""
        rows = [*self._of(name), *demands]
        return (
            name not in self._passed_over
            and not any(map(exact_pin, rows))
            and self.folder.newest(rows, version) is not None
        )

    def _demands(
        self,
        packages: Sequence[tuple[LockedPackage, Version]],
        older: Sequence[tuple[str, Version]],
        few: int = FEW,
    ) -> dict[str, list[Requirement]]:
        """The requirements among the packages of a resolution, by name, read until they explain ``older``."""
        by_name = {package.name: package for package, _ in packages}
        extras = {name: {extra for row in rows for extra in row.extras} for name, rows in self.requested.items()}
        demands: dict[str, list[Requirement]] = {}
        first = [name for name in self.requested if name in by_name]
        front = [*first, *(name for name in by_name if name not in first)]
        unexplained = list(older)
        with ThreadPoolExecutor(_AT_ONCE, "demands") as pool:
            while front and len(unexplained) > few:
                now, front = front[:_AT_ONCE], front[_AT_ONCE:]
                found = zip(now, pool.map(self._required_by, [by_name[name] for name in now]), strict=True)
                again = set()
                for name, rows in found:
                    for row in active_with_extras(rows, self.folder.target.markers(), extras.get(name, ())):
                        other = canonicalize_name(row.name)
                        if row not in demands.setdefault(other, []):
                            demands[other].append(row)
                        if not row.extras <= extras.setdefault(other, set()):
                            again.add(other)
                        extras[other].update(row.extras)
                front += [name for name in again if name in by_name and name not in front]
                front.sort(key=lambda name: not any(map(exact_pin, demands.get(name, ()))))
                unexplained = [(n, v) for n, v in unexplained if self._is_older(n, v, demands.get(n, ()))]
        return demands

    def _required_by(self, package: LockedPackage) -> Sequence[Requirement]:
        found = self.folder.archives.get((package.name, _version(package) or Version("0")))
        wheels = [file for file in package.files if file.is_wheel]
        if found is not None or not wheels:
            return found[0].requirements if found else ()
        try:
            return self._metadata(wheels[-1]).requirements
        except WheelproofError:  # a demand that is missing allows more archives, never fewer
            return ()

    def _metadata(self, file: IndexFile) -> CoreMetadata:
        if file.file_name not in self._read:
            self._read[file.file_name] = self.folder.metadata(file)
        return self._read[file.file_name]


class _Newer(NamedTuple):
    """A package whose releases above a version are inspected."""

    name: str
    requirements: list[Requirement]
    above: Version


_Wanted = tuple[str, list[Requirement], Version | None]


def _version(package: LockedPackage) -> Version | None:
    """The version of a package from an index, None for a direct reference."""
    return None if package.direct or package.source else version_or_none(package.version)


def _in_words(explanation: Explanation, name: str) -> str:
    """Why a release of ``name`` that was demanded by its version cannot be had."""
    own = f"you require {name}=="
    sentences = [text for text in explanation.sentences if not text.replace(" and ", " ").startswith(own)]
    if (
        len(sentences) == 1
        and (only := _ONLY.fullmatch(sentences[0]))
        and canonicalize_name(_name_of(only["by"])) == name
    ):
        return f"it requires {only['what']}, but {only['there']} is available"
    return "; ".join(sentences[:MOST_SENTENCES])


def _name_of(text: str) -> str:
    requirement = requirement_or_none(text)
    return requirement.name if requirement else ""
