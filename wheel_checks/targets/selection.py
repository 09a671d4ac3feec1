"""The file that an installer would take for a requirement on a target. Pure: lists in, a choice with its reasons out.

The rules are those that pip and uv share: the version specifiers and pre-releases of PEP 440, yanked files of PEP 592,
Requires-Python of PEP 345, the ranking of tags of PEP 425, build tags of PEP 427. If both leave it open (two files of
the same version, tag and build tag), the file listed last is taken, as pip does.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from wheel_checks.errors import UsageError
from wheel_checks.formats.index.file_names import WHEEL_SUFFIX, is_file_of, sdist_version
from wheel_checks.formats.index.page import IndexFile, file_from_url
from wheel_checks.formats.wheel.variant_label import split_label
from wheel_checks.formats.wheel.wheel_name import count_tags
from wheel_checks.parsing import specifiers_or_none
from wheel_checks.phrases import and_so_on
from wheel_checks.targets.target import Target

_MOST_TAGS = 1000  # compressed tag sets multiply: a hostile name of 255 characters would expand to 64,000 tags

_MOST_NAMED = 8  # Pythons or platforms in one sentence

Variants = Callable[[Version, str], int | str]
"""Of a release and a label: how preferred the variant is, 0 most, or why it is not taken ("is not for ...")."""


class Reason(StrEnum):
    """Why a file was not chosen."""

    NO_CANDIDATE = "no-candidate"
    VERSION = "version"
    PRE_RELEASE = "pre-release"
    YANKED = "yanked"
    TAGS = "tags"
    VARIANT = "variant"
    REQUIRES_PYTHON = "requires-python"
    OLDER = "older"
    LESS_PREFERRED = "less-preferred"


class Rejection(NamedTuple):
    """A file that was not chosen, why, and the same as a sentence for people."""

    file: IndexFile
    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class Choice:
    """An installer's choice.

    ``chosen`` is the wheel, or None; ``sdist`` the source archive that an installer would build instead, when the
    latest version that it may take has no wheel for the target. ``version`` is that of the chosen file.
    ``newest_release`` is the latest version that the requirement allows, for any platform. ``applies`` is False when
    the requirement's own marker is false on the target: then nothing is installed. ``notes`` are sentences that a user
    should know although a file was chosen; ``explanation`` says why no wheel was chosen.
    """

    requirement: Requirement
    target: Target
    chosen: IndexFile | None = None
    sdist: IndexFile | None = None
    version: Version | None = None
    newest_release: Version | None = None
    applies: bool = True
    rejected: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()
    explanation: str = ""

    @property
    def sdist_only(self) -> bool:
        """True when an installer would have to build from source."""
        return self.sdist is not None


class _Candidate(NamedTuple):
    """A file whose name parses; ``tags`` is None for an sdist, ``build`` () and ``label`` "" by default."""

    file: IndexFile
    version: Version
    tags: frozenset[Tag] | None
    build: tuple[int, str] | tuple[()]
    label: str = ""
    rank: int = sys.maxsize


def choose(
    requirement: Requirement,
    files: Sequence[IndexFile],
    target: Target,
    *,
    pre: bool = False,
    variants: Variants | None = None,
) -> Choice:
    """The file that pip or uv would take from ``files`` (all candidates of all indexes) on ``target``.

    ``pre`` allows pre-releases, as ``--pre`` does. A direct reference (``name @ URL``) is its own only candidate.
    Without ``variants`` variant wheels are no candidates, as for today's installers; with it they come before other
    wheels of their version, and their order before that of tags (PEP 825, "Variant ordering").
    """
    if not _applies(requirement, target):
        explanation = f"{requirement.name} is not installed on {target.label}: its marker is {requirement.marker}"
        return Choice(requirement, target, applies=False, explanation=explanation)
    if requirement.url:
        linked = file_from_url(requirement.url, "")
        files = () if linked is None else (linked,)
    candidates, rejected = _parse_all(requirement, files, variants=variants is not None)
    matching = [c for c in candidates if requirement.specifier.contains(c.version, prereleases=True)]
    rejected += _reject(candidates, matching, Reason.VERSION, f"does not match {requirement.specifier}")
    fitting, misfits = _fitting(matching, target, variants)
    rejected += misfits
    allowed = _allowed(requirement, fitting, rejected, pre=pre)
    best = max(reversed(allowed), key=lambda candidate: _preference(candidate, target), default=None)
    newest = max((c.version for c in _allowed(requirement, matching, [], pre=pre)), default=None)
    if best is None:
        explanation = _explain(requirement, target, candidates, matching, newest)
        if any(rejection.reason is Reason.VARIANT for rejection in rejected):
            explanation = f"{requirement.name} {newest} has only variants for {target.label}, none for this machine"
        return Choice(requirement, target, newest_release=newest, rejected=tuple(rejected), explanation=explanation)
    same = [c for c in allowed if c.version == best.version]
    rejected += _reject(allowed, same, Reason.OLDER, f"is older than {best.version}")
    preferred = f"is less preferred on {target.label} than {best.file.file_name}"
    rejected += _reject(same, [best], Reason.LESS_PREFERRED, preferred)
    choice = Choice(
        requirement,
        target,
        best.file,
        version=best.version,
        newest_release=newest,
        rejected=tuple(rejected),
        notes=_notes(requirement, target, best, newest),
    )
    if best.tags is not None:
        return choice
    explanation = f"{requirement.name} {best.version} has no wheel for {target.label}, only a source archive"
    return replace(choice, chosen=None, sdist=best.file, explanation=explanation)


def release_wheels(requirement: Requirement, files: Sequence[IndexFile], *, pre: bool = False) -> tuple[IndexFile, ...]:
    """Every wheel, for any target, of the releases that the requirement matches; of the latest when it names none.

    ``torch>=2.9,<2.12`` gives the wheels of every release in that range, ``torch`` those of the latest. Pre-releases
    and yanked files are treated as in :func:`choose`; variant wheels (PEP 825) are among the wheels. Ordered by
    version, then file name.
    """
    candidates = [c for c in _parse_all(requirement, files, variants=True)[0] if c.tags is not None]
    matching = [c for c in candidates if requirement.specifier.contains(c.version, prereleases=True)]
    allowed = _allowed(requirement, matching, [], pre=pre)
    if not requirement.specifier and allowed:
        newest = max(c.version for c in allowed)
        allowed = [c for c in allowed if c.version == newest]
    unique = {c.file.file_name: c for c in allowed}
    return tuple(c.file for c in sorted(unique.values(), key=lambda c: (c.version, c.file.file_name)))


def releases(project: str, files: Iterable[IndexFile]) -> frozenset[Version]:
    """The versions that the wheels and source archives of ``project`` among ``files`` have; variants count."""
    return frozenset(c.version for c in _parse_all(Requirement(project), files, variants=True)[0])


def _applies(requirement: Requirement, target: Target) -> bool:
    if requirement.marker is None:
        return True
    try:
        return requirement.marker.evaluate(target.markers())
    except (UndefinedComparison, UndefinedEnvironmentName) as error:
        raise UsageError(
            f"the marker of {requirement.name} cannot be evaluated: {error}",
            hint="see the specification of dependency specifiers, PEP 508",
        ) from error


def _parse_all(
    requirement: Requirement, files: Iterable[IndexFile], *, variants: bool = False
) -> tuple[list[_Candidate], list[Rejection]]:
    """The files as candidates, and the others; with ``variants`` variant wheels are candidates, too."""
    candidates, rejected = [], []
    for file in files:
        if not is_file_of(file.file_name, requirement.name):
            sentence = f"{file.file_name} is not a wheel or source archive of {requirement.name}"
            rejected.append(Rejection(file, Reason.NO_CANDIDATE, sentence))
            continue
        try:
            candidates.append(_parse(file, requirement.name, variants=variants))
        except (InvalidWheelFilename, InvalidVersion) as error:
            rejected.append(Rejection(file, Reason.NO_CANDIDATE, f"{file.file_name} is ignored: {error}"))
    return candidates, rejected


def _parse(file: IndexFile, project: str, *, variants: bool) -> _Candidate:
    if not file.is_wheel:
        return _Candidate(file, Version(sdist_version(file.file_name, project) or ""), None, ())
    name, label = file.file_name, ""
    if variants:
        stem, label = split_label(name.removesuffix(WHEEL_SUFFIX))
        name = stem + WHEEL_SUFFIX
    version, build, tags = _parse_wheel_name(name)
    return _Candidate(file, version, tags, build, label)


@functools.lru_cache(maxsize=8192)
def _parse_wheel_name(file_name: str) -> tuple[Version, tuple[int, str] | tuple[()], frozenset[Tag]]:
    expanded = count_tags("-".join(file_name.removesuffix(WHEEL_SUFFIX).split("-")[-3:]))
    if expanded > _MOST_TAGS:
        raise InvalidWheelFilename(f"its name stands for {expanded} tags; at most {_MOST_TAGS} are read")
    _, version, build, tags = parse_wheel_filename(file_name)
    return version, build, tags


def _misfit(candidate: _Candidate, target: Target) -> tuple[Reason, str] | None:
    """Why the file cannot be installed on ``target``; None when it can."""
    name, ranks = candidate.file.file_name, target.supported_tags()
    if candidate.tags is not None and not any(tag in ranks for tag in candidate.tags):
        return Reason.TAGS, f"{name} is not built for {target.described}"
    wanted = candidate.file.requires_python
    if not _python_fits(wanted, target.python_full_version):
        return Reason.REQUIRES_PYTHON, f"{name} requires Python {wanted}, not {target.python_full_version}"
    return None


def _fitting(
    candidates: Iterable[_Candidate], target: Target, variants: Variants | None
) -> tuple[list[_Candidate], list[Rejection]]:
    """The candidates that can be installed on ``target``, variants with their ranks, and why the others cannot."""
    fitting, rejected = [], []
    for candidate in candidates:
        misfit = _misfit(candidate, target)
        rank: int | str = sys.maxsize
        if misfit is None and candidate.label and variants:
            rank = variants(candidate.version, candidate.label)
        if isinstance(rank, str):
            misfit = Reason.VARIANT, f"{candidate.file.file_name} {rank}"
        elif misfit is None:
            fitting.append(candidate._replace(rank=rank))
        if misfit is not None:
            rejected.append(Rejection(candidate.file, *misfit))
    return fitting, rejected


@functools.lru_cache(maxsize=4096)
def _python_fits(requires_python: str, version: str) -> bool:
    wanted = specifiers_or_none(requires_python)  # pip and uv pass over what they cannot read
    return wanted is None or wanted.contains(version, prereleases=True)


def _allowed(
    requirement: Requirement, candidates: Sequence[_Candidate], rejected: list[Rejection], *, pre: bool
) -> list[_Candidate]:
    """The candidates less pre-releases (PEP 440) and yanked files (PEP 592), which are added to ``rejected``."""
    versions = set(requirement.specifier.filter((c.version for c in candidates), prereleases=True if pre else None))
    stable = [c for c in candidates if c.version in versions]
    rejected += _reject(candidates, stable, Reason.PRE_RELEASE, "is a pre-release, which was not requested")
    if _is_pinned(requirement) and all(c.file.yanked is not None for c in stable):
        return stable
    kept = [c for c in stable if c.file.yanked is None]
    rejected += _reject(stable, kept, Reason.YANKED, "is yanked")
    return kept


def _is_pinned(requirement: Requirement) -> bool:
    """PEP 592: a yanked file may be taken when ``==`` or ``===`` names one version (or a URL does)."""
    return bool(requirement.url) or any(
        specifier.operator == "===" or (specifier.operator == "==" and not specifier.version.endswith(".*"))
        for specifier in requirement.specifier
    )


def _preference(candidate: _Candidate, target: Target) -> tuple[Version, int, int, tuple[int, str] | tuple[()]]:
    """Greater is better: the version, the variant (any before none), the best tag (any before none), the build tag."""
    ranks = target.supported_tags()
    tag = len(ranks) if candidate.tags is None else min(ranks[tag] for tag in candidate.tags if tag in ranks)
    return candidate.version, -candidate.rank, -tag, candidate.build


def _reject(candidates: Sequence[_Candidate], kept: Sequence[_Candidate], reason: Reason, why: str) -> list[Rejection]:
    survivors = {id(c.file) for c in kept}
    return [Rejection(c.file, reason, f"{c.file.file_name} {why}") for c in candidates if id(c.file) not in survivors]


def _notes(requirement: Requirement, target: Target, best: _Candidate, newest: Version | None) -> tuple[str, ...]:
    notes = []
    if best.file.yanked is not None:
        reason = f": {best.file.yanked}" if best.file.yanked else ", without a reason"
        notes.append(
            f"{best.file.file_name} is yanked{reason}; it is selected because the requirement pins its version"
        )
    if newest is not None and newest > best.version:
        notes.append(f"{requirement.name} {newest} is newer, but has no file for {target.label}")
    return tuple(notes)


def _explain(
    requirement: Requirement,
    target: Target,
    candidates: Sequence[_Candidate],
    matching: Sequence[_Candidate],
    newest: Version | None,
) -> str:
    """One sentence that says why there is nothing to take."""
    name = requirement.name
    if not candidates:
        return f"the URL does not lead to a file of {name}" if requirement.url else f"{name} has no files"
    if not matching:
        return (
            f"no version of {name} matches {requirement.specifier}; the latest is {max(c.version for c in candidates)}"
        )
    if newest is None:
        return f"every file of {name} that matches is yanked"
    misfits = [(c, _misfit(c, target)) for c in matching if c.version == newest]
    if any(misfit is None for _, misfit in misfits):
        return f"every file of {name} {newest} for {target.label} is yanked"
    demands = [misfit[1] for _, misfit in misfits if misfit and misfit[0] is Reason.REQUIRES_PYTHON]
    if demands:
        return demands[0]
    tags = {tag for c, _ in misfits for tag in c.tags or ()}
    platforms = {tag.platform for tag in target.supported_tags()}
    here = sorted(
        {tag.abi if tag.abi.startswith("cp") else tag.interpreter for tag in tags if tag.platform in platforms}
    )
    named = here or sorted({tag.platform for tag in tags})
    listed = and_so_on(named, _MOST_NAMED)
    offered = f"its wheels for {target.machine} are for {listed}" if here else f"its wheels are for {listed}"
    return f"{name} {newest} has no file for {target.label}; {offered}"
