"""Resolve a request for one target, and keep the result with its index entries.

The pages of a stack list 150,000 files, and a stack has two hundred. So only the relevant files are kept with the
resolution, mainly those of its releases, for as long as the pages are cached.
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
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.simple_index import Listing, SimpleIndex
from wheel_checks.sources.uv.resolver import Resolution, question_of, resolve
from wheel_checks.targets.target import Target
from wheelproof import __version__
from wheelproof.stacks.hashed import read_hashed, requires_hashes
from wheelproof.stacks.packages import Pick, ResolvedStack, for_machines, pick_wheels
from wheelproof.wheels.dependencies import keeping_of
from wheelproof.wheels.handing import Handed, hand_over
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import ArchiveSearch, Settled

if TYPE_CHECKING:
    from wheel_checks.sources.variant_files import VariantFiles
    from wheelproof.stacks.request import StackRequest


@dataclass(frozen=True, slots=True)
class _Found:
    """A kept resolution. ``listings`` are entries of projects with a chosen wheel; complete ones are ``whole``."""

    settled: Settled
    listings: Mapping[str, Listing] = field(default_factory=dict)
    whole: bool = False


def resolve_stacks(
    request: StackRequest, config: IndexConfig, client: HttpClient, variants: VariantFiles | None, target: Target
) -> list[ResolvedStack]:
    """The stack that an installer chooses on ``target``; with ``variants`` one for each machine.

    Source archives are included. Resolutions are reused for ten minutes. Raises the errors of
    :func:`wheel_checks.sources.uv.resolver.resolve` and :meth:`ArchiveSearch.settle`.
    """
    stack = _resolve_stack(request, target, config, client)
    return [stack] if variants is None else for_machines(stack, request.machines, variants)


def _resolve_stack(request: StackRequest, target: Target, config: IndexConfig, client: HttpClient) -> ResolvedStack:
    handed = hand_over(request.requested, target, config)
    resolving = _Resolving(request, target, handed, SimpleIndex(client, handed.config, handed.pinned), client)
    found = resolving.found()
    indexes = KnownIndexes(resolving.index, found.listings)
    own = tuple(LockedPackage(project.name, project.version, (), DIRECTORY) for project in handed.projects)
    if resolving.hashed:  # these files are taken: nothing is resolved
        hashed = read_hashed(request.requested, target, indexes, handed.left_out)
        picks = (*hashed.picks, *pick_wheels(Resolution(own), target, indexes))
        settled = Settled(Resolution(tuple(pick.package for pick in picks)))
        return ResolvedStack(target, settled, picks, indexes, {**handed.left_out, **hashed.left_out}, hashed.unhashed)
    resolution = replace(found.settled.resolution, packages=(*found.settled.resolution.packages, *own))
    picks = tuple(pick_wheels(resolution, target, indexes))
    return ResolvedStack(target, replace(found.settled, resolution=resolution), picks, indexes, handed.left_out)


class _Resolving:
    """Resolves the input of an installer, ``handed``, for one target."""

    def __init__(
        self, request: StackRequest, target: Target, handed: Handed, index: SimpleIndex, client: HttpClient
    ) -> None:
        self.request, self.target, self.handed, self.index, self.client = request, target, handed, index, client
        self.hashed = requires_hashes(request.requested)
        self.pre = request.pre or handed.pre
        self.left_out = (*handed.left_out, *(project.name for project in handed.projects))
        self.keeping = keeping_of(client, offline=request.offline)

    def found(self) -> _Found:
        """The resolution of the last ten minutes, else a new one."""
        handed = self.handed
        if self.keeping is None or not handed.requirements:
            return self._find()
        handed.config.require_trusted("what is resolved")
        words, places = question_of(
            handed.requirements,
            self.target,
            handed.config,
            constraints=handed.constraints,
            pinned=handed.pinned,
            left_out=self.left_out,
            pre=self.pre,
        )
        words = [
            f"the stack, by wheelproof {__version__} {readers_version()}, {self.target}",
            handed.config.strategy,
            *([f"{text} {' '.join(values)}" for text, values in handed.hashes.items()] if self.hashed else []),
            *words,
        ]
        sound, pages = _may_be_kept, lambda found: found.settled
        return self.keeping.remember(_Found, words, places, self._find, is_sound=sound, without_pages=pages)

    def _find(self) -> _Found:
        indexes = KnownIndexes(self.index)
        if self.hashed:
            hashed = read_hashed(self.request.requested, self.target, indexes, self.handed.left_out)
            return _kept(Settled(Resolution(())), hashed.picks, indexes)
        if not self.handed.requirements:
            return _Found(Settled(Resolution(())), whole=True)
        search = ArchiveSearch(
            self._run,
            map(Requirement, self.handed.requirements),
            self.target,
            indexes,
            self.client,
            constraints=map(Requirement, self.handed.constraints),
            pre=self.pre,
            passed_over=(*self.handed.pinned, *self.left_out),
        )
        settled = search.settle()
        return _kept(settled, pick_wheels(settled.resolution, self.target, indexes), indexes)

    def _run(self, more_links: tuple[str, ...], more_constraints: tuple[str, ...]) -> Resolution:
        handed = self.handed
        return resolve(
            handed.requirements,
            self.target,
            replace(handed.config, find_links=(*handed.config.find_links, *more_links)),
            constraints=(*handed.constraints, *more_constraints),
            pinned=handed.pinned,
            left_out=self.left_out,
            pre=self.pre,
            offline=self.request.offline,
            timeout=self.client.time_left(self.request.timeout),
            leave_out_unusable=not more_constraints,
            keeping=None if more_links else self.keeping,  # these folders are temporary
        )


def _may_be_kept(found: _Found) -> bool:
    """False if all entries are relevant, or if an address may contain a secret: a login or a signature."""
    files = (file for listing in found.listings.values() for place in listing.places for file in place.files)
    return not found.whole and not any("?" in file.url or "@" in file.url for file in files)


def _kept(settled: Settled, picks: Sequence[Pick], indexes: KnownIndexes) -> _Found:
    """The resolution with the relevant index entries for the picked files."""
    taken = {canonicalize_name(p.package.name): p.wheel.listing for p in picks if p.wheel and p.wheel.listing}
    target = picks[0].choice.target if picks else None
    listings = indexes.only({str(name): file for name, file in taken.items()}, target) if target else None
    return _Found(settled, indexes.listings, whole=True) if listings is None else _Found(settled, listings)
