"""Reads the wheels that a wheel requires on its target, each once however many wheels require it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
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
from wheel_checks.facts.links.linking import AbsentPackage, LaidOutWheel, LinkFacts, lay_out, link
from wheel_checks.facts.wheel.contents import ELFS, WHOLE_ELFS
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.resolution import Pins, is_pinned, metadata_reader, resolve_pins
from wheel_checks.formats.digests import WrongHash
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.targets.selection import Choice, choose
from wheel_checks.targets.target import Target

Listing = Callable[[str], Sequence[IndexFile]]
"""The files of a project, none when no index knows it; raises SourceError."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an installer would take: exact pins, and the names of packages of which no wheel fits the target."""

    pins: tuple[Requirement, ...]
    unusable: tuple[str, ...] = ()


Resolver = Callable[[Sequence[Requirement], Target], Resolved]
"""Resolves requirements for a target, by uv; raises SourceError and UsageError.

A direct URL is the choice of who made the wheel: the resolver decides whether it is followed.
"""

_AT_ONCE = 8  # dependencies read in parallel, of all wheels together; also the client's bound on connections
_PINS, _RESOLVED = "exact pins of METADATA", "uv"
_NOT_ASKED = Unavailable("requirements were not followed: no library needs another wheel")

T = TypeVar("T")


class _Once(Generic[T]):
    """Makes the value of each key once; whoever asks meanwhile waits for it. An error is kept as well."""

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
            except BaseException as error:  # noqa: BLE001  # whatever it is, those who wait must learn of it
                value.set_exception(error)
        return value.result()


class Dependencies:
    """The link closure of wheels of one run. Threads share what is read; close it, or use it in a ``with`` block.

    ``listing`` gives the files of a project; ``resolver`` is asked only when the exact pins of METADATA leave a library
    unfound. Neither is called for a wheel that needs nobody. ``whole`` streams what head and tail do not tell.
    """

    def __init__(self, client: HttpClient, listing: Listing, resolver: Resolver, *, whole: bool = False) -> None:
        self._client = client
        self._whole = whole
        self._listing = listing
        self._resolver = resolver
        self._pool = ThreadPoolExecutor(_AT_ONCE, "dependency")
        self._listings: _Once[Sequence[IndexFile]] = _Once()
        self._metadata: _Once[CoreMetadata] = _Once()
        self._wheels: _Once[LaidOutWheel] = _Once()
        self._wrong: dict[str, WrongHash] = {}  # METADATA with another hash than stated, by the file that it is of

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def link(self, wheel: WheelFacts) -> LinkFacts | Unavailable:
        """The closure of ``wheel`` on its target; why there is none when it has no target or was not read so deep.

        Raises SourceError or FormatError when an index page, a METADATA or a wheel cannot be read.
        """
        if wheel.target is None:
            return Unavailable("the wheel names no Linux machine to link on", "--platform, --python")
        if isinstance(wheel.elfs, Unavailable):
            return wheel.elfs
        if isinstance(wheel.metadata, Unavailable):
            return wheel.metadata
        own = lay_out(wheel.file_name, wheel.elfs)
        alone = link(own, (), wheel.target, absent=_NOT_ASKED, how="no requirement was needed")
        if not _statuses(alone) & {Status.MISSING, Status.OPTIONAL}:
            return alone
        pins = self._pins(wheel.metadata.requirements, wheel.target)
        linked = self._link(own, [package.choice for package in pins.packages], wheel.target, pins, _PINS)
        if Status.MISSING not in _statuses(linked) or not pins.skipped:
            return linked
        choices = self._resolved(wheel.metadata.requirements, wheel.target)
        return self._link(own, choices, wheel.target, pins, _RESOLVED)

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
        return replace(linked, wrong_metadata=tuple(wrong))

    def _files(self, project: str) -> Sequence[IndexFile]:
        return self._listings.get(canonicalize_name(project), lambda: self._listing(project))

    def _read(self, file: IndexFile) -> LaidOutWheel:
        return self._wheels.get(file.url, lambda: self._lay_out(file))

    def _lay_out(self, file: IndexFile) -> LaidOutWheel:
        source = self._client.open(file.url, expected_hash=file.hashes.get("sha256", ""), size=file.size)
        try:
            kept = kept_facts(source, self._client.cache)
            archive = read_archive(source, kept)
            # Its programs are processes of their own: nothing that is loaded beside the judged wheel.
            elfs = kept.remember(
                f"thrifty {WHOLE_ELFS if self._whole else ELFS}",
                MemberElfs(archive.members),
                lambda: read_native_members(source, archive, effort=THRIFTY, whole=self._whole, programs=False),
                deeper=(WHOLE_ELFS,) if self._whole else (WHOLE_ELFS, ELFS, f"thrifty {WHOLE_ELFS}"),
            )
            libraries = [elf for elf in elfs if is_library(elf.member.name)]
            return lay_out(file.file_name, libraries, source.cost.bytes_read, source.cost.requests)
        except FormatError as error:
            raise SourceError(f"{file.file_name}, which the wheel requires, is no readable wheel: {error}") from None
        finally:
            source.close()


def _statuses(facts: LinkFacts) -> set[Status]:
    return {need.status for need in facts.closure.needs}


def _left_out(choice: Choice) -> Choice:
    """Without the file that would be chosen if nobody else had a say: no version of it fits all who require it."""
    return replace(choice, chosen=None, explanation=choice.explanation or "no version of it fits all who require it")


def _may_have_libraries(file: IndexFile) -> bool:
    """A wheel for any platform has none, and need not be read."""
    return not file.file_name.endswith("-none-any.whl")
