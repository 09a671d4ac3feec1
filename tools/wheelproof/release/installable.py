"""Can the release be installed today? What each wheel requires is resolved for its cell of the matrix, without a build.

uv is asked first, by wheels alone: that there is a solution is all that matters. Where there is none, source archives
are looked at as in ``stack``. uv does not resolve for free-threaded Pythons: there it is asked for the other build, and
for versions that have a file, until each has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from wheel_checks.errors import OfflineError, WheelproofError
from wheel_checks.facts.accelerator.signals import active_requirements
from wheel_checks.facts.release import Cell, Installation, ReleaseFacts, ReleaseFile
from wheel_checks.formats.file_names import sdist_version
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installer_config import IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.uv.resolver import NoSolutionError, Resolution, resolve
from wheel_checks.targets.of_wheel import target_of_tags
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import DEFAULT_GLIBC, NEWEST_MACOS, Target, other_system, parse_targets
from wheelproof.wheels.dependencies import keeping_of
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import ArchiveSearch, Run, UndecidedConflictError

AT_ONCE = 4  # runs of uv
_MOST_ROUNDS = 4  # of looking for versions that a free-threaded Python has files of
_ANY_CELL = Cell("", "")
_MACHINE = "x86_64"  # for wheels that name no platform


class _Question(NamedTuple):
    """Requirements to be resolved for a target."""

    texts: tuple[str, ...]
    target: Target


@dataclass(frozen=True, slots=True)
class Installer:
    """Resolves with these indexes, and with the ``places`` (folders) where the files of the release are."""

    config: IndexConfig
    index: SimpleIndex
    client: HttpClient
    offline: bool = False
    pre: bool = False
    places: tuple[str, ...] = field(default=())

    def with_files(self, paths: Iterable[Path]) -> Installer:
        """The same, with the folders of these files: what requires the release in turn finds it there."""
        return replace(self, places=tuple(dict.fromkeys(path.resolve().parent.as_uri() for path in paths)))

    def try_all(self, release: ReleaseFacts) -> tuple[Installation, ...]:
        """What comes of it for each cell whose file requires something, in the order of the matrix."""
        asked = list(_questions(release))
        with ThreadPoolExecutor(AT_ONCE, "resolve") as pool:
            known = dict.fromkeys(_of_uv(question) for _, question in asked if isinstance(question, _Question))
            answers = dict(zip(known, pool.map(self._resolved, known), strict=True))
            return tuple(pool.map(lambda one: self._installation(one[0], one[1], answers), asked))

    def _installation(
        self, cell: Cell, question: _Question | str, answers: dict[_Question, Resolution | Installation]
    ) -> Installation:
        if isinstance(question, str):
            return Installation(cell, unproven=question)
        answer = answers[_of_uv(question)]
        if isinstance(answer, Installation) and question.target.free_threaded and not answer.unproven:
            return Installation(
                cell, unproven=f"nothing can be installed with the GIL, {question.target.label} is open"
            )
        if isinstance(answer, Installation):
            return replace(answer, cell=cell)
        if not question.target.free_threaded:
            return Installation(cell)
        try:
            return Installation(cell, unproven=self._without_free_threads(answer, question))
        except WheelproofError as error:
            return Installation(cell, unproven=_reason(error))

    def _resolved(self, question: _Question) -> Resolution | Installation:
        """A solution by wheels, else one with source archives, else why there is none or none is known."""
        try:
            found = self._run(question)((), ())
        except NoSolutionError:
            found = None
        except WheelproofError as error:
            return Installation(_ANY_CELL, unproven=_reason(error))
        if found is not None and not found.unusable:
            return found
        if not self.config.indexes:
            return Installation(_ANY_CELL, unproven="no index is asked, and find-links lack what is required")
        return self._with_archives(question)

    def _with_archives(self, question: _Question) -> Resolution | Installation:
        try:
            settled = ArchiveSearch(
                self._run(question),
                map(Requirement, question.texts),
                question.target,
                KnownIndexes(self.index),
                self.client,
                pre=self.pre,
            ).settle()
        except UndecidedConflictError as error:
            return Installation(
                _ANY_CELL, unproven=f"requirements of a source archive are computed by a build: {error}"
            )
        except NoSolutionError as error:
            return Installation(_ANY_CELL, conflict=str(error.explanation))
        except WheelproofError as error:
            return Installation(_ANY_CELL, unproven=_reason(error))
        unread = "; ".join(f"{name}: {reason}" for name, reason in settled.failed.items())
        missing = [unusable.name for unusable in settled.resolution.unusable if unusable.name not in settled.failed]
        if missing or unread:
            return Installation(_ANY_CELL, missing=tuple(missing), unproven=unread)
        return settled.resolution

    def _run(self, question: _Question) -> Run:
        def run(more_links: tuple[str, ...], more_constraints: tuple[str, ...]) -> Resolution:
            return resolve(
                question.texts,
                question.target,
                replace(self.config, find_links=(*self.config.find_links, *self.places, *more_links)),
                constraints=more_constraints,
                pre=self.pre,
                offline=self.offline,
                leave_out_unusable=not more_constraints,
                keeping=None if more_links or self.places else keeping_of(self.client, offline=self.offline),
            )

        return run

    def _without_free_threads(self, found: Resolution, question: _Question) -> str:
        """Which package has no file for a free-threaded Python, in any version that fits; "" when all have one."""
        constraints: dict[str, str] = {}
        for _ in range(_MOST_ROUNDS):
            lacking = [package for package in found.packages if not self._has_file(package, question.target)]
            if not lacking:
                return ""
            for package in lacking:
                files = self.index.files(package.name).files
                newest = choose(Requirement(package.name), files, question.target, pre=self.pre)
                if newest.version is None or package.name in constraints:
                    return f"{package.label} has no file for {question.target.label}, another version may have one"
                constraints[package.name] = f"{package.name}=={newest.version}"
            found = self._run(_of_uv(question))((), tuple(constraints.values()))
        return f"no versions were found in {_MOST_ROUNDS} rounds that have files for {question.target.label}"

    def _has_file(self, package: LockedPackage, target: Target) -> bool:
        """Whether this version has a wheel for the target, or a source archive."""
        requirement = Requirement(f"{package.name}=={package.version}")
        if choose(requirement, package.files, target, pre=True).chosen:
            return True
        files = self.index.files(package.name).files
        is_built = any(sdist_version(file.file_name, package.name) == package.version for file in files)
        return is_built or choose(requirement, files, target, pre=True).chosen is not None


def _reason(error: WheelproofError) -> str:
    return f"{error} (--offline)" if isinstance(error, OfflineError) else str(error)


def _of_uv(question: _Question) -> _Question:
    """The question that uv is asked: for the build of Python with the global interpreter lock."""
    return question._replace(target=replace(question.target, free_threaded=False))


def _questions(release: ReleaseFacts) -> Iterator[tuple[Cell, _Question | str]]:
    """What is asked for each filled cell, or why it cannot be."""
    for cell, files in release.filled.items():
        metadata = files[0].metadata if files else None
        if not isinstance(metadata, CoreMetadata):
            continue  # an empty cell is REL101, METADATA that cannot be read WHL106
        target = _target(files[0], cell)
        if target is None:
            if any("extra" not in str(requirement.marker) for requirement in metadata.requirements):
                yield cell, f"what {files[0].file_name} requires is not resolved for its platform"
            continue
        texts = tuple(str(r) for r in active_requirements(metadata.requirements, target.markers()) if not r.url)
        if texts:
            yield cell, _Question(texts, target)


def _target(file: ReleaseFile, cell: Cell) -> Target | None:
    """The newest machine that the file serves: what it requires may need a newer system than its own tag."""
    tags = file.name.tags if file.name else frozenset()
    (python,) = parse_targets([_MACHINE], [cell.python])
    for platform in sorted(tag.platform for tag in tags):
        if other := other_system(platform, python):
            return replace(other, macos=max(other.macos, NEWEST_MACOS)) if any(other.macos) else other
    of_tags = target_of_tags(tags)
    if of_tags is not None:
        return replace(python, machine=of_tags.machine, glibc=max(of_tags.glibc, DEFAULT_GLIBC))
    return python if all(tag.platform == "any" for tag in tags) else None
