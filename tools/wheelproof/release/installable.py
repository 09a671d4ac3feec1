"""Check whether the release can be installed: resolve each wheel's requirements for its cell, without builds.

uv is queried first, by wheels alone: that there is a solution is all that matters. Where there isn't one, source
archives are inspected as in ``stack``. uv does not resolve for free-threaded Pythons: there it is asked for the other
build, and for versions that have a file, until each has one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import OfflineError, WheelproofError
from wheel_checks.facts.accelerator.signals import active_requirements
from wheel_checks.facts.release.facts import Cell, Installation, ReleaseFacts, ReleaseFile
from wheel_checks.formats.index.file_names import sdist_version
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.uv.resolver import NoSolutionError, Resolution, resolve
from wheel_checks.targets.of_wheel import newest_machines
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import Target, parse_targets
from wheelproof.wheels.dependencies import keeping_of
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import ArchiveSearch, Run, UndecidedConflictError

AT_ONCE = 4  # runs of uv
_MOST_ROUNDS = 4  # of looking for versions that a free-threaded Python has files of
MOST_EXTRAS = 200  # of one wheel
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
        """A copy with the folders of these files, for packages that require the release in turn."""
        return replace(self, places=tuple(dict.fromkeys(path.resolve().parent.as_uri() for path in paths)))

    def try_all(self, release: ReleaseFacts) -> tuple[Installation, ...]:
        """The result for each cell whose file has requirements, in the order of the matrix.

        Then the results of extras, in cells that can be installed. All extras of a machine are resolved at once, and
        each by itself if that fails, since two of them may exclude each other on purpose.
        """
        questions = list(_questions(release))
        with ThreadPoolExecutor(AT_ONCE, "resolve") as pool:
            answers = self._answers(pool, (question for _, question in questions if isinstance(question, _Question)))
            found = tuple(pool.map(lambda one: self._installation(one[0], one[1], answers), questions))
            failed = {one.cell for one in found if one.failed}
            cells = release.filled.keys() - failed
            return (*found, *self._of_extras(pool, release, cells), *beyond(release, cells))

    def _answers(self, pool: Executor, questions: Iterable[_Question]) -> dict[_Question, Resolution | Installation]:
        known = dict.fromkeys(map(_of_uv, questions))
        return dict(zip(known, pool.map(self._resolved, known), strict=True))

    def _of_extras(self, pool: Executor, release: ReleaseFacts, cells: Collection[Cell]) -> Iterator[Installation]:
        """The extras that cannot be installed in these cells, or of which it is unknown."""
        extras = list(_with_extras(release, cells))
        texts: dict[tuple[Cell, Target], dict[str, None]] = {}
        for cell, _extra, question in extras:
            texts.setdefault((cell, question.target), {}).update(dict.fromkeys(question.texts))
        together = {key: _Question(tuple(found), key[1]) for key, found in texts.items()}
        answers = self._answers(pool, together.values())
        failed = {key for key, question in together.items() if isinstance(answers[question], Installation)}
        extras = [one for one in extras if (one[0], one[2].target) in failed]
        answers = self._answers(pool, (question for _, _, question in extras))
        for cell, extra, question in extras:
            answer = answers[question]
            if isinstance(answer, Installation):
                yield replace(answer, cell=cell, extra=extra)

    def _installation(
        self, cell: Cell, question: _Question | str, answers: dict[_Question, Resolution | Installation]
    ) -> Installation:
        if isinstance(question, str):
            return Installation(cell, unproven=question)
        answer = answers[_of_uv(question)]
        if isinstance(answer, Installation) and question.target.free_threaded and not answer.unproven:
            return Installation(
                cell, unproven=f"nothing can be installed with the GIL; {question.target.label} is undecided"
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
        """A solution by wheels, else one with source archives, else why there is no solution, or no answer."""
        try:
            found = self._run(question)((), ())
        except NoSolutionError:
            found = None
        except WheelproofError as error:
            return Installation(_ANY_CELL, unproven=_reason(error))
        if found is not None and not found.unusable:
            return found
        if not self.config.indexes:
            return Installation(_ANY_CELL, unproven="no index is used, and find-links lack requirements")
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
                    return f"{package.label} has no file for {question.target.label}; another version may have one"
                constraints[package.name] = f"{package.name}=={newest.version}"
            found = self._run(_of_uv(question))((), tuple(constraints.values()))
        return f"no versions with files for {question.target.label} were found in {_MOST_ROUNDS} rounds"

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
    """The question that uv is queried: for the Python build with the global interpreter lock."""
    return question._replace(target=replace(question.target, free_threaded=False))


def _questions(release: ReleaseFacts) -> Iterator[tuple[Cell, _Question | str]]:
    """The question for each machine of each filled cell, or why it has none."""
    for cell, file, metadata in _filled(release):
        targets = _targets(file, cell)
        if not targets and any("extra" not in str(requirement.marker) for requirement in metadata.requirements):
            yield cell, f"requirements of {file.file_name} are not resolved for its platform"
        for target in targets:
            if texts := _texts(metadata, target):
                yield cell, _Question(texts, target)


def _with_extras(release: ReleaseFacts, cells: Collection[Cell]) -> Iterator[tuple[Cell, str, _Question]]:
    """The question for each extra of the ``cells`` whose Python has a global interpreter lock."""
    for cell, file, metadata in _filled(release):
        for target in _targets(file, cell) if cell in cells else ():
            plain = _texts(metadata, target)
            for extra in () if target.free_threaded else metadata.provides_extra[:MOST_EXTRAS]:
                texts = _texts(metadata, target, extra)
                if set(texts) - set(plain):
                    yield cell, extra, _Question(texts, target)


def beyond(release: ReleaseFacts, cells: Collection[Cell]) -> Iterator[Installation]:
    """The cells whose wheel has more extras than are requested."""
    for cell, _file, metadata in _filled(release):
        if cell in cells and (more := metadata.provides_extra[MOST_EXTRAS:]):
            yield Installation(cell, extra=more[0], unproven=f"it and {len(more) - 1} others are not looked at")


def _filled(release: ReleaseFacts) -> Iterator[tuple[Cell, ReleaseFile, CoreMetadata]]:
    """The cells with the file that installers take there: an empty one is REL101, METADATA that is unread WHL106."""
    for cell, files in release.filled.items():
        if files and isinstance(files[0].metadata, CoreMetadata):
            yield cell, files[0], files[0].metadata


def _texts(metadata: CoreMetadata, target: Target, extra: str = "") -> tuple[str, ...]:
    """The requirements on a target, with an extra, and the extras that it names in turn."""
    extras, found = [extra], dict[str, None]()
    for one in extras:
        for requirement in active_requirements(metadata.requirements, target.markers(), one):
            if canonicalize_name(requirement.name) == canonicalize_name(metadata.name):
                extras += sorted(requirement.extras - set(extras))
            elif not requirement.url:
                found[_without_marker(requirement)] = None
    return tuple(found)


def _without_marker(requirement: Requirement) -> str:
    """The requirement as text, without its marker, which is true: uv would not know the extra."""
    bare = Requirement(str(requirement))
    bare.marker = None
    return str(bare)


def _targets(file: ReleaseFile, cell: Cell) -> tuple[Target, ...]:
    (python,) = parse_targets([_MACHINE], [cell.python])
    return newest_machines(file.name.tags if file.name else (), python)
