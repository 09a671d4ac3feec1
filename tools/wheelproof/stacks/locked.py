"""Read a lock's packages for one target from the configured indexes, by name and hash, without resolving.

The addresses in a lock come from a tree: a file is read only from a configured index with that name and hash, or from a
trusted address. Other files are declared: only their names are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from wheel_checks.errors import NotFoundError, UsageError, WheelproofError
from wheel_checks.facts.archive.kept import readers_version
from wheel_checks.facts.stack.locked import LockedEntry, LockFacts, WrongLockedHash
from wheel_checks.facts.wheel.source_archive import READABLE, SourceArchive, read_source_archive
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock.model import CONDA, LockedPackage
from wheel_checks.formats.secrets import redact
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.simple_index import Listing, SimpleIndex
from wheel_checks.sources.trust import Address, is_inside, tree_of
from wheel_checks.sources.uv.keeping import Keeping
from wheel_checks.sources.uv.resolver import Resolution
from wheel_checks.targets.locked import Selected, select
from wheel_checks.targets.selection import Choice, choose
from wheel_checks.targets.target import Target
from wheelproof import __version__
from wheelproof.stacks.locks import LockRequest
from wheelproof.stacks.packages import Pick, ResolvedStack
from wheelproof.wheels.dependencies import keeping_of
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.judging import AT_ONCE
from wheelproof.wheels.model import PlannedWheel
from wheelproof.wheels.resolving import Settled

REUSED = 86_400.0
"""Seconds for which index entries of locked files are reused: files of an index do not change."""

_WHOLE = 16 << 20  # bytes of a source archive that is read whole, to know that it is pure Python


@dataclass(frozen=True, slots=True)
class _Kept:
    """The relevant entries of index pages. ``missing`` are projects whose locked files are on no index."""

    listings: Mapping[str, Listing] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class _Located:
    """One locked package, its file, and its notes."""

    pick: Pick
    entry: LockedEntry
    archive: SourceArchive | None = None
    failed: str = ""


def read_locked(
    request: LockRequest, config: IndexConfig, client: HttpClient, target: Target, *, offline: bool
) -> list[ResolvedStack]:
    """The packages of the lock for the target, as the only stack. Raises FormatError for an invalid marker."""
    selected = select(request.lock, target, request.choice)
    conda = sum(package.source == CONDA for package in selected.packages)
    name, lock = request.path.name, request.lock
    facts = LockFacts(name, lock.format, selected.outside, selected.open, selected.notes, conda, lock.requires_python)
    pinned = dict(_pinned(selected, config))
    places = SimpleIndex(client, replace(config, find_links=(), refused=()), pinned)
    files = [package for package in selected.packages if not package.source]
    tree = tree_of(request.path.absolute().parent)
    locating = _Locating(request, target, config, client, tree, KnownIndexes(places))
    keeping = keeping_of(client, offline=offline)
    if keeping is not None and files:
        kept = _remembered(keeping, locating, files, pinned)
        locating = replace(locating, indexes=KnownIndexes(places, kept.listings), missing=frozenset(kept.missing))
    located = {item.pick.package.name: item for item in locating.all(files, archives=True)}
    items = [located.get(package.name) or locating.without_file(package) for package in selected.packages]
    settled = Settled(
        Resolution(tuple(selected.packages)),
        {name: item.archive for name, item in located.items() if item.archive},
        {name: item.failed for name, item in located.items() if item.failed},
    )
    picks, entries = tuple(item.pick for item in items), {item.pick.package.name: item.entry for item in items}
    return [ResolvedStack(target, settled, picks, locating.indexes, lock=facts, entries=entries)]


def _remembered(
    keeping: Keeping, locating: _Locating, files: Sequence[LockedPackage], pinned: Mapping[str, str]
) -> _Kept:
    """The relevant index entries, from the cache or read now."""
    request, target, config = locating.request, locating.target, locating.config
    words = [f"a lock, by wheelproof {__version__} {readers_version()}", request.digest, str(target)]
    words += [request.path.name, str(request.choice), *config.indexes, config.strategy, str(sorted(pinned.items()))]
    return keeping.remember(
        _Kept,
        words,
        [url for url in config.indexes if is_file_url(url)],
        lambda: _what_counts(files, locating.all(files), locating.indexes, target),
        is_sound=lambda kept: not kept.whole,
        without_pages=lambda _: (),
        reused=REUSED,
    )


def _pinned(selected: Selected, config: IndexConfig) -> Iterator[tuple[str, str]]:
    """The packages that come from an index of the lock which the user trusts."""
    for package in selected.packages:
        if package.registry and not _is_configured(package.registry, config):
            url = config.trust.allowed(package.registry)
            if url is not None:
                yield package.name, url


def _is_configured(registry: str, config: IndexConfig) -> bool:
    plain = redact(registry).rstrip("/")
    return any(redact(index).rstrip("/") == plain for index in config.indexes)


def _what_counts(
    files: Sequence[LockedPackage], found: Sequence[_Located], known: KnownIndexes, target: Target
) -> _Kept:
    taken = {}
    for item in found:
        wheel = item.pick.wheel
        listing = wheel.listing if wheel else item.pick.choice.sdist
        if listing is not None and listing.index and item.entry.wrong is None:
            taken[item.pick.package.name] = listing
    if any(item.entry.wrong for item in found):
        return _Kept(whole=True)
    listings = known.only(taken, target)
    if listings is None:
        return _Kept(known.listings, whole=True)
    answered = known.listings.keys() | {item.pick.package.name for item in found if not item.failed}
    missing = sorted({p.name for p in files} & answered - listings.keys())
    return _Kept(listings, tuple(missing))


@dataclass(frozen=True, slots=True)
class _Locating:
    """Finds where the file of each package can be read. ``missing`` are projects of which no index has it."""

    request: LockRequest
    target: Target
    config: IndexConfig
    client: HttpClient
    tree: Path
    indexes: KnownIndexes
    missing: frozenset[str] = frozenset()

    def all(self, packages: Sequence[LockedPackage], *, archives: bool = False) -> list[_Located]:
        """Every package, up to eight at once; with ``archives`` their source archives are read."""

        def one(package: LockedPackage) -> _Located:
            found = self._one(package)
            return self._with_archive(found) if archives else found

        with ThreadPoolExecutor(AT_ONCE, "locked") as pool:
            return list(pool.map(one, packages))

    def without_file(self, package: LockedPackage) -> _Located:
        """A package that is not a file of an index: of conda, of a repository, a folder."""
        choice = Choice(Requirement(package.name) if package.source != CONDA else Requirement("conda"), self.target)
        address = redact(package.origin or "")[:300]
        return _Located(Pick(package, None, choice), self._entry(package, address=address, build=package.build or ""))

    def _entry(self, package: LockedPackage, **fields: object) -> LockedEntry:
        entry = LockedEntry(self.request.path.name, package.line)
        return replace(entry, **fields)  # type: ignore[arg-type]  # each is a field of the entry

    def _one(self, package: LockedPackage) -> _Located:
        exact = package.version and not package.direct
        requirement = Requirement(f"{package.name}=={package.version}" if exact else package.name)
        choice = choose(requirement, package.files, self.target, pre=True)
        taken = choice.chosen or choice.sdist
        if taken is None:
            return _Located(Pick(package, None, choice), self._entry(package, misfit=self._misfit(package, choice)))
        address = redact(taken.url)[:300]
        try:
            listing, listed, wrong = self._listed(package, taken)
        except WheelproofError as error:
            entry = self._entry(package, unread=str(error), address=address)
            return _Located(Pick(package, None, choice), entry, failed=str(error) if choice.sdist else "")
        if wrong is not None:
            return _Located(Pick(package, None, choice), self._entry(package, wrong=wrong, address=address))
        location = listing.url if listing else self._own_place(taken)
        if not location:
            entry = self._entry(package, unread=self._why_unread(package, taken), address=address)
            return _Located(Pick(package, None, choice), entry)
        file = replace(listing or taken, url=location, hashes={**(listing or taken).hashes, **taken.hashes})
        entry = self._entry(package, address=address)
        if choice.sdist is not None:
            return _Located(Pick(package, None, replace(choice, sdist=file)), entry)
        place = path_of(location) if is_file_url(location) else location
        wheel = PlannedWheel(file.file_name, place, file, self.target, listed or (file,))
        return _Located(Pick(package, wheel, replace(choice, chosen=file)), entry)

    def _misfit(self, package: LockedPackage, choice: Choice) -> str:
        machine = self.target.machine
        if not package.files:
            return f"{package.label} has no file in the lock: no wheel, no source archive"
        if package.direct:
            named = package.files[0].file_name
            return f"{package.label} is the address of {named}, which does not install on {self.target.label}"
        return choice.explanation or f"{package.label} has no file for {machine}"

    def _listed(
        self, package: LockedPackage, taken: IndexFile
    ) -> tuple[IndexFile | None, tuple[IndexFile, ...], WrongLockedHash | None]:
        """The entry of an index with the name and the hash of a file, with all of that project; or a contradiction."""
        if is_file_url(taken.url) or package.name in self.missing:
            return None, (), None
        try:
            listed = self.indexes.files(package.name)
        except (NotFoundError, UsageError):  # also if no index is configured
            return None, (), None
        same_name = [file for file in listed if file.file_name == taken.file_name]
        same = [file for file in same_name if _agree(file, taken)]
        if same:
            return same[0], listed, None
        own = not package.direct and _is_configured(package.registry or "", self.config)
        own = own or not (package.direct or package.registry or _is_foreign(taken, listed))
        if taken.hashes:
            differing = [file for file in same_name if own and _agree(file, taken) is False]
            return None, (), _contradiction(taken, differing[0]) if differing else None
        found = next((file for file in same_name if own or file.url == taken.url), None)
        return found, listed if found else (), None

    def _own_place(self, taken: IndexFile) -> str:
        """The address of the lock if it may be read: inside the tree, or on a trusted host; "" if it may not."""
        if is_file_url(taken.url):
            return taken.url if is_inside(path_of(taken.url), self.tree) else ""
        return (self.config.trust.allowed(taken.url) or "") if taken.url else ""

    def _why_unread(self, package: LockedPackage, taken: IndexFile) -> str:
        if is_file_url(taken.url):
            return "its path is outside the tree of the lock"
        host = self._host(taken.url or package.registry or "")
        where = f"only the lock names {host}" if host else f"no configured index has {taken.file_name} with its hash"
        return f"{where}, and it was not contacted (--trust-index {host})" if host else where

    def _host(self, url: str) -> str:
        return Address(url, self.request.path.name).host if url else ""

    def _with_archive(self, found: _Located) -> _Located:
        """The package with its source archive read, if it can be."""
        file = found.pick.choice.sdist
        package = found.pick.package
        if file is None or found.entry.unread or found.entry.wrong or not file.file_name.endswith(READABLE):
            return found
        try:
            source = self.client.open(file.url, expected_hash=file.hashes.get("sha256", ""), size=file.size)
            try:
                whole = (file.size or source.read_tail(1)[0]) <= _WHOLE
                archive = read_source_archive(source, package.name, package.version, file.file_name, whole=whole)
            finally:
                source.close()
        except WheelproofError as error:
            return replace(found, failed=str(error))
        return replace(found, archive=replace(archive, url=redact(file.url), size=file.size))


def _agree(one: IndexFile, other: IndexFile) -> bool | None:
    """Whether the hashes that both state are the same; None if they state no common one."""
    common = one.hashes.keys() & other.hashes.keys()
    return all(one.hashes[key] == other.hashes[key] for key in common) if common else None


def _is_foreign(taken: IndexFile, listed: Sequence[IndexFile]) -> bool:
    """Whether the lock has an address of the file, on a host that the index keeps no files on."""
    return bool(taken.url) and urlsplit(taken.url).hostname not in {urlsplit(file.url).hostname for file in listed}


def _contradiction(taken: IndexFile, stated: IndexFile) -> WrongLockedHash:
    key = max(taken.hashes.keys() & stated.hashes.keys())
    hashes = f"{key}:{taken.hashes[key]}", f"{key}:{stated.hashes[key]}"
    return WrongLockedHash(taken.file_name, *hashes, stated.index)
