"""Resolves what was requested, for one target, and keeps the result with what indexes list of it.

The pages of a stack list 150,000 files, of which it takes two hundred. So next to the resolution only the files that
count are kept, mainly those of the releases that were taken, for as long as the pages themselves are used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.archive.kept import readers_version
from wheel_checks.formats.lock.model import DIRECTORY, LockedPackage
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installer_config import IndexConfig
from wheel_checks.sources.simple_index import Listing, SimpleIndex
from wheel_checks.sources.uv.resolver import Resolution, question_of, resolve
from wheel_checks.targets.target import Target
from wheelproof.stacks.hashed import read_hashed, requires_hashes
from wheelproof.stacks.packages import Pick, pick_wheels
from wheelproof.version import __version__
from wheelproof.wheels.dependencies import keeping_of
from wheelproof.wheels.handing import Handed, hand_over
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import ArchiveSearch, Settled

if TYPE_CHECKING:
    from wheel_checks.errors import WheelproofError
    from wheel_checks.facts.stack.facts import Unhashed
    from wheelproof.stacks.request import StackRequest


@dataclass(frozen=True, slots=True)
class StackResolution:
    """The resolution, the wheel of each package, and the indexes; ``left_out`` are packages that were not looked at.

    ``unhashed`` are lines without a hash of a requirements file with hashes, None where that is no such file.
    """

    settled: Settled
    picks: tuple[Pick, ...]
    indexes: KnownIndexes
    left_out: Mapping[str, WheelproofError]
    unhashed: tuple[Unhashed, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """What is kept. ``listings`` hold what counts of the projects of which a wheel is taken; where that is everything,
    they are ``whole``, and not kept.
    """

    settled: Settled
    listings: Mapping[str, Listing] = field(default_factory=dict)
    whole: bool = False


def resolve_stack(request: StackRequest, target: Target, config: IndexConfig, client: HttpClient) -> StackResolution:
    """What an installer takes on ``target``, source archives included, resolved within the last ten minutes.

    Raises what :func:`wheel_checks.sources.uv.resolver.resolve` and :meth:`ArchiveSearch.settle` raise.
    """
    handed = hand_over(request.asked, target, config)
    index = SimpleIndex(client, handed.config, handed.pinned)
    hashed = requires_hashes(request.asked)
    keeping = keeping_of(client, offline=request.offline)

    def find() -> _Found:
        if hashed:
            return _of_hashes(request, target, handed, index)
        return _find(request, target, handed, index, client)

    if keeping is None or not handed.requirements:
        found = find()
    else:
        handed.config.require_trusted("what is resolved")
        words, places = question_of(
            handed.requirements,
            target,
            handed.config,
            constraints=handed.constraints,
            pinned=handed.pinned,
            left_out=_left_out(handed),
            pre=request.pre or handed.pre,
        )
        words = [
            f"the stack, by wheelproof {__version__} {readers_version()}, {target}",
            handed.config.strategy,
            *([f"{text} {' '.join(values)}" for text, values in handed.hashes.items()] if hashed else []),
            *words,
        ]
        found = keeping.remember(
            _Found,
            words,
            places,
            find,
            is_sound=_may_be_kept,
            without_pages=lambda found: found.settled,
        )
    own = [LockedPackage(project.name, project.version, (), DIRECTORY) for project in handed.projects]
    if hashed:
        return _hashed(request, target, handed, KnownIndexes(index, found.listings), own)
    resolution = replace(found.settled.resolution, packages=(*found.settled.resolution.packages, *own))
    settled, indexes = replace(found.settled, resolution=resolution), KnownIndexes(index, found.listings)
    return StackResolution(settled, tuple(pick_wheels(resolution, target, indexes)), indexes, handed.left_out)


def _of_hashes(request: StackRequest, target: Target, handed: Handed, index: SimpleIndex) -> _Found:
    """What counts of the index pages for a requirements file with hashes."""
    indexes = KnownIndexes(index)
    return _kept(Settled(Resolution(())), read_hashed(request.asked, target, indexes, handed.left_out).picks, indexes)


def _hashed(
    request: StackRequest, target: Target, handed: Handed, indexes: KnownIndexes, own: Sequence[LockedPackage]
) -> StackResolution:
    """What a requirements file with hashes names, and the projects that are its ``own``: nothing is resolved."""
    found = read_hashed(request.asked, target, indexes, handed.left_out)
    picks = (*found.picks, *pick_wheels(Resolution(tuple(own)), target, indexes))
    settled = Settled(Resolution(tuple(pick.package for pick in picks)))
    return StackResolution(settled, picks, indexes, {**handed.left_out, **found.left_out}, found.unhashed)


def _may_be_kept(found: _Found) -> bool:
    """False where everything counts, and where an address of a file may hold a secret: a login, or a signature."""
    files = (file for listing in found.listings.values() for place in listing.places for file in place.files)
    return not found.whole and not any("?" in file.url or "@" in file.url for file in files)


def _left_out(handed: Handed) -> tuple[str, ...]:
    return (*handed.left_out, *(project.name for project in handed.projects))


def _find(request: StackRequest, target: Target, handed: Handed, index: SimpleIndex, client: HttpClient) -> _Found:
    indexes = KnownIndexes(index)

    def run(more_links: tuple[str, ...], more_constraints: tuple[str, ...]) -> Resolution:
        return resolve(
            handed.requirements,
            target,
            replace(handed.config, find_links=(*handed.config.find_links, *more_links)),
            constraints=(*handed.constraints, *more_constraints),
            pinned=handed.pinned,
            left_out=_left_out(handed),
            pre=request.pre or handed.pre,
            offline=request.offline,
            timeout=client.time_left(request.timeout),
            leave_out_unusable=not more_constraints,
            keeping=None if more_links else keeping_of(client, offline=request.offline),  # these folders are temporary
        )

    if not handed.requirements:
        return _Found(Settled(Resolution(())), whole=True)
    search = ArchiveSearch(
        run,
        map(Requirement, handed.requirements),
        target,
        indexes,
        client,
        constraints=map(Requirement, handed.constraints),
        pre=request.pre or handed.pre,
        passed_over=(*handed.pinned, *_left_out(handed)),
    )
    settled = search.settle()
    return _kept(settled, pick_wheels(settled.resolution, target, indexes), indexes)


def _kept(settled: Settled, picks: Sequence[Pick], indexes: KnownIndexes) -> _Found:
    """The resolution with what counts of the index pages once these files are picked."""
    taken = {canonicalize_name(p.package.name): p.wheel.listing for p in picks if p.wheel and p.wheel.listing}
    target = picks[0].choice.target if picks else None
    listings = indexes.only({str(name): file for name, file in taken.items()}, target) if target else None
    return _Found(settled, indexes.listings, whole=True) if listings is None else _Found(settled, listings)
