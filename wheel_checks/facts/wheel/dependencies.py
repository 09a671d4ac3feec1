"""Reads the wheels that a wheel requires on its target, each once however many wheels require it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Generic, Self, TypeVar

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.archive.kept import kept_facts
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.elf.kept import MemberElfs
from wheel_checks.facts.elf.native_members import is_library, read_native_members
from wheel_checks.facts.elf.reading import THRIFTY
from wheel_checks.facts.links.closure import Status
from wheel_checks.facts.links.linking import AbsentPackage, LaidOutWheel, LinkFacts, lay_out, link, modules_to_read
from wheel_checks.facts.wheel.contents_reading import ELFS, WHOLE_ELFS
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.module_sources import joined, kept_module_sources, packages_of
from wheel_checks.facts.wheel.neighbours import TORCH, Neighbour, Outline, Outlines
from wheel_checks.facts.wheel.resolution import (
    Pins,
    active_with_extras,
    is_pinned,
    metadata_reader,
    resolve_pins,
    with_extras,
)
from wheel_checks.formats.index.digests import WrongHash
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.python_source import ModuleSources
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.targets.selection import Choice, choose
from wheel_checks.targets.target import LINUX, Target

Listing = Callable[[str], Sequence[IndexFile]]
"""The files of a project, none when no index knows it; raises SourceError."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """An installer's choice: exact pins, and the names of packages without a wheel for the target."""

    pins: tuple[Requirement, ...]
    unusable: tuple[str, ...] = ()


Resolver = Callable[[Sequence[Requirement], Target], Resolved]
"""Resolves requirements for a target, by uv; raises SourceError and UsageError.

A direct URL is the choice of the wheel's author: the resolver decides whether it is followed.
"""

_AT_ONCE = 8  # dependencies read in parallel, of all wheels together; also the client's bound on connections
_PINS, _RESOLVED, _STACK = "exact pins of METADATA", "uv", "the stack"
_ROUNDS = 6  # of following libraries that wheels open: libcuml opens libraft, which opens librmm
_NOT_FOLLOWED = Unavailable("requirements were not followed: no library needs another wheel")

T = TypeVar("T")


class _Once(Generic[T]):
    """Makes the value of each key once; other callers wait for it meanwhile. An error is cached as well."""

    def __init__(self) -> None:
        self._values: dict[str, Future[T]] = {}
        self._lock = threading.Lock()

    def get(self, key: str, make: Callable[[], T]) -> T:
        with self._lock:
            value = self._values.get(key)
            is_first = value is None
            if value is None:
                value = self._values[key] = Future()
        if is_first:
            try:
                value.set_result(make())
            except BaseException as error:  # noqa: BLE001  # any error must reach the waiting threads
                value.set_exception(error)
        return value.result()


class Dependencies:
    """The link closure of wheels of one run. Threads share its results; close it, or use it in a ``with`` block.

    ``listing`` gives the files of a project; ``resolver`` is called only when the exact pins of METADATA leave a
    library unfound. Neither is called for a wheel without dependencies. ``whole`` streams members if head and tail do
    not suffice. ``installed_with`` is installed with each wheel.
    """

    def __init__(
        self,
        client: HttpClient,
        listing: Listing,
        resolver: Resolver,
        *,
        whole: bool = False,
        installed_with: Sequence[Requirement] = (),
    ) -> None:
        self._client = client
        self._also = tuple(installed_with)
        self._whole = whole
        self._listing = listing
        self._resolver = resolver
        self._pool = ThreadPoolExecutor(_AT_ONCE, "dependency")
        self._listings: _Once[Sequence[IndexFile]] = _Once()
        self._metadata: _Once[CoreMetadata] = _Once()
        self._wheels: _Once[LaidOutWheel] = _Once()
        self._outlined: _Once[Outline] = _Once()
        self._outlines = Outlines(client, self._pool)
        self._wrong: dict[str, WrongHash] = {}  # METADATA with another hash than stated, by the file that it is of

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def link(
        self,
        wheel: WheelFacts,
        extras: Collection[str] = (),
        place: Neighbour | None = None,
        installed_with: Sequence[Neighbour] | None = None,
    ) -> LinkFacts | Unavailable:
        """The closure of ``wheel`` with ``extras`` on its target; or why there isn't one: no target, or depth too low.

        ``installed_with`` are the wheels installed with it, if known, as in a stack; else requirements are followed.
        ``place`` is that of the wheel itself, so that its symbols are looked up.

        Raises SourceError or FormatError when an index page, a METADATA or a wheel cannot be read.
        """
        if wheel.target is None:
            return Unavailable(
                "the wheel is not for a single Linux machine, so linking is not checked", "--platform, --python"
            )
        if wheel.target.system != LINUX:
            what = f"libraries of {wheel.target.system} are not followed"
            raise SourceError(what, hint="--depth quick checks the rest; only Linux libraries are followed")
        unread = [fact for fact in (wheel.elfs, wheel.metadata) if isinstance(fact, Unavailable)]
        if unread or isinstance(wheel.elfs, Unavailable) or isinstance(wheel.metadata, Unavailable):
            return unread[0]
        own = lay_out(wheel.file_name, wheel.elfs, sources=wheel.sources)
        if installed_with is not None:
            return self._link_with(own, wheel.target, place, installed_with)
        requirements = with_extras(wheel.metadata.requirements, wheel.target.markers(), extras)
        if self._also:
            choices = self._resolved((*requirements, *self._also), wheel.target)
            taken = [Neighbour.of(choice.chosen) for choice in choices if choice.chosen is not None]
            return self._link_with(own, wheel.target, place, taken)
        alone = link(own, (), wheel.target, absent=_NOT_FOLLOWED, how="no requirement was needed")
        if not _statuses(alone) & {Status.MISSING, Status.OPTIONAL}:
            return alone if own.files else replace(alone, not_judged=self._of_extras(wheel, extras))
        pins = self._pins(requirements, wheel.target)
        choices = [package.choice for package in pins.packages]
        linked = self._link(own, choices, wheel.target, pins, _PINS)
        if Status.MISSING in _statuses(linked) and pins.skipped:
            choices = self._resolved(requirements, wheel.target)
            linked = self._link(own, choices, wheel.target, pins, _RESOLVED)
        return self._with_symbols(linked, place, choices, wheel.target)

    def _of_extras(self, wheel: WheelFacts, extras: Collection[str]) -> tuple[str, ...]:
        """The requirements that these extras add, as they are in METADATA."""
        if isinstance(wheel.metadata, Unavailable) or wheel.target is None:
            return ()
        markers, requirements = wheel.target.markers(), wheel.metadata.requirements
        plain = active_with_extras(requirements, markers)
        active = active_with_extras(requirements, markers, extras)
        return tuple(str(one).partition(";")[0].strip() for one in active if one not in plain)

    def _with_symbols(
        self, linked: LinkFacts, place: Neighbour | None, choices: Sequence[Choice], target: Target
    ) -> LinkFacts:
        """The closure, with the symbols of the wheel if torch is in it, since extensions of torch break most."""
        taken = [Neighbour.of(choice.chosen) for choice in choices if choice.chosen is not None]
        if place is None or all(one.project != TORCH for one in taken):
            return linked
        outlines = [self._outline(one, target) for one in taken if one.may_have_libraries]
        return self._outlines.with_symbols(linked, place, outlines, target)

    def _link_with(
        self, own: LaidOutWheel, target: Target, place: Neighbour | None, installed_with: Sequence[Neighbour]
    ) -> LinkFacts:
        """The closure with the wheels that are present, of whose libraries only the names are read at first."""
        others = [one for one in installed_with if one.project != own.project and one.may_have_libraries]
        outlines = list(self._pool.map(lambda one: self._outline(one, target), others))
        laid_out = [outline.laid_out for outline in outlines]
        linked = link(own, laid_out, target, how=_STACK, outlined=True)
        return linked if place is None else self._outlines.with_symbols(linked, place, outlines, target)

    def _outline(self, neighbour: Neighbour, target: Target) -> Outline:
        return self._outlined.get(f"{neighbour.location} {target}", lambda: self._outlines.read(neighbour, target))

    def _pins(self, requirements: Sequence[Requirement], target: Target) -> Pins:
        read = metadata_reader(self._client, lambda wrong: self._wrong.setdefault(wrong.file_name, wrong))
        return resolve_pins(
            requirements,
            target,
            self._files,
            lambda file: self._metadata.get(file.url, lambda: read(file)),
            skip=lambda requirement: not is_pinned(requirement),
        )

    def _resolved(self, requirements: Sequence[Requirement], target: Target) -> list[Choice]:
        resolved = self._resolver(requirements, target)
        wanted = [*resolved.pins, *map(Requirement, resolved.unusable)]
        listings = self._pool.map(lambda requirement: self._files(requirement.name), wanted)
        choices = [choose(requirement, files, target) for requirement, files in zip(wanted, listings, strict=True)]
        return [c if c.requirement.name not in resolved.unusable else _left_out(c) for c in choices]

    def _link(self, own: LaidOutWheel, choices: Sequence[Choice], target: Target, pins: Pins, how: str) -> LinkFacts:
        project = canonicalize_name(own.file_name.partition("-")[0])
        others = [choice for choice in choices if canonicalize_name(choice.requirement.name) != project]
        files = [choice.chosen for choice in others if choice.chosen is not None and _may_have_libraries(choice.chosen)]
        required_by = {package.name: package.required_by for package in pins.packages}
        absent = [
            AbsentPackage(
                choice.requirement.name,
                str(choice.version or choice.requirement.specifier),
                choice.explanation,
                required_by.get(canonicalize_name(choice.requirement.name), ()),
                choice.sdist_only,
            )
            for choice in others
            if choice.chosen is None and choice.applies
        ]
        wheels = list(self._pool.map(self._read, files))
        not_followed = pins.skipped if how == _PINS else ()
        pinned = [package.choice.chosen.file_name for package in pins.packages if package.choice.chosen]
        wrong = [self._wrong[name] for name in pinned if name in self._wrong]
        linked = link(own, wheels, target, absent=absent, how=how, not_followed=not_followed)
        if Status.MISSING in _statuses(linked):
            by_name = {file.file_name: file for file in files}
            wheels = self._with_sources(own, wheels, by_name, linked)
            linked = link(own, wheels, target, absent=absent, how=how, not_followed=not_followed)
        return replace(linked, wrong_metadata=tuple(wrong))

    def _with_sources(
        self, own: LaidOutWheel, wheels: list[LaidOutWheel], files: Mapping[str, IndexFile], linked: LinkFacts
    ) -> list[LaidOutWheel]:
        """The wheels with the modules through which the wheel, when it is imported, opens libraries of them."""
        missing = {need.soname for need in linked.closure.needs if need.status is Status.MISSING}
        for _ in range(_ROUNDS):
            wanted = modules_to_read(own, wheels, missing)
            if not wanted:
                break
            read = self._pool.map(lambda one: self._read_sources(files[one[0].file_name], one[1]), wanted)
            fresh = {
                one.file_name: replace(one, sources=joined(one.sources, sources))
                for (one, _), sources in zip(wanted, read, strict=True)
            }
            wheels = [fresh.get(one.file_name, one) for one in wheels]
        return wheels

    def _read_sources(self, file: IndexFile, roots: tuple[str, ...]) -> ModuleSources:
        source = self._client.open(file.url, expected_hash=file.hashes.get("sha256", ""), size=file.size)
        try:
            kept = kept_facts(source, self._client.cache)
            return kept_module_sources(source, read_archive(source, kept), kept, roots)
        except FormatError as error:
            raise SourceError(f"{file.file_name}, which the wheel requires, is not a readable wheel: {error}") from None
        finally:
            source.close()

    def _files(self, project: str) -> Sequence[IndexFile]:
        return self._listings.get(canonicalize_name(project), lambda: self._listing(project))

    def _read(self, file: IndexFile) -> LaidOutWheel:
        return self._wheels.get(file.url, lambda: self._lay_out(file))

    def _lay_out(self, file: IndexFile) -> LaidOutWheel:
        source = self._client.open(file.url, expected_hash=file.hashes.get("sha256", ""), size=file.size)
        try:
            kept = kept_facts(source, self._client.cache)
            archive = read_archive(source, kept)
            # Its programs are their own processes: nothing that is loaded next to the judged wheel.
            elfs = kept.remember(
                f"thrifty {WHOLE_ELFS if self._whole else ELFS}",
                MemberElfs(archive.members),
                lambda: read_native_members(source, archive, effort=THRIFTY, whole=self._whole, programs=False),
            )
            libraries = [elf for elf in elfs if is_library(elf.member.name)]
            cost = source.cost
            packages = packages_of(member.name for member in archive.members)
            return lay_out(file.file_name, libraries, cost.bytes_read, cost.requests, packages=packages)
        except FormatError as error:
            raise SourceError(f"{file.file_name}, which the wheel requires, is not a readable wheel: {error}") from None
        finally:
            source.close()


def _statuses(facts: LinkFacts) -> set[Status]:
    return {need.status for need in facts.closure.needs}


def _left_out(choice: Choice) -> Choice:
    """Without the chosen file: no version of it is compatible with all packages that require it."""
    return replace(
        choice, chosen=None, explanation=choice.explanation or "no version of it satisfies all its requirements"
    )


def _may_have_libraries(file: IndexFile) -> bool:
    """A wheel for any platform has none, and need not be read."""
    return not file.file_name.endswith("-none-any.whl")
