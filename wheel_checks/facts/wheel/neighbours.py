"""The wheels that are installed next to one, read only as far as it needs them: names, and symbols."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.archive.kept import AsJson, kept_facts
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.elf.exports import read_member_exports
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.elf.symbols import MemberSymbols, read_symbols
from wheel_checks.facts.links.failing import counted_as_imported
from wheel_checks.facts.links.known_libraries import is_imported_by
from wheel_checks.facts.links.linking import LaidOutWheel, LinkFacts, installed_path
from wheel_checks.facts.links.outline import outline_of
from wheel_checks.facts.links.torch_exports import TorchExports, releases_that_export, torch_exports
from wheel_checks.facts.links.unresolved import (
    SymbolFacts,
    UnresolvedFile,
    find_unresolved,
    needs_of_torch,
    without_numbers,
)
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.elf.linkage import Exports, hashes_of, symbol_hash
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import Cost, NamedBytes
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.local import LocalFile
from wheel_checks.targets.target import Target

TORCH = "torch"
_OF_TORCH = "torch/lib/lib"
MOST_LIBRARIES = 80  # of other wheels, each of which costs requests


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A wheel that is installed next to the judged one: its location, and its index's statements."""

    file_name: str
    location: str | Path
    sha256: str = ""
    size: int | None = None

    @classmethod
    def of(cls, file: IndexFile) -> Neighbour:
        """The file of an index."""
        return cls(file.file_name, file.url, file.hashes.get("sha256", ""), file.size)

    @property
    def project(self) -> str:
        """The normalized name of its project."""
        return canonicalize_name(self.file_name.partition("-")[0])

    @property
    def version(self) -> str:
        """The version in its file name."""
        return self.file_name.split("-")[1] if self.file_name.count("-") > 1 else ""

    @property
    def may_have_libraries(self) -> bool:
        """False for a wheel for any platform, which need not be read."""
        return not self.file_name.endswith("-none-any.whl")


@dataclass(frozen=True, slots=True)
class Outline:
    """The libraries of a wheel by installed path, by its directory alone."""

    neighbour: Neighbour
    archive: Archive
    members: Mapping[str, Member]
    laid_out: LaidOutWheel


class Outlines:
    """Reads the directories of wheels, and the definitions of libraries in them; each once in a run."""

    def __init__(self, client: HttpClient, pool: Executor) -> None:
        self._client = client
        self._pool = pool

    def read(self, neighbour: Neighbour, target: Target) -> Outline:
        """The libraries of one wheel. Raises SourceError."""
        source = self._open(neighbour)
        try:
            archive = read_archive(source, kept_facts(source, self._client.cache))
            readable = {id(member) for member in unpackable(archive.members)}
            members = {
                installed_path(member.name): member
                for member in archive.members
                if is_library(member.name) and id(member) in readable
            }
            laid_out = outline_of(neighbour.file_name, members, target, source.cost.bytes_read, source.cost.requests)
            return Outline(neighbour, archive, members, laid_out)
        except FormatError as error:
            what = f"{neighbour.file_name}, which is installed next to the wheel, is not a readable wheel: {error}"
            raise SourceError(what) from None
        finally:
            source.close()

    def with_symbols(self, links: LinkFacts, own: Neighbour, outlines: Sequence[Outline], target: Target) -> LinkFacts:
        """The closure with the symbols of ``own``, the judged wheel, looked up in it. Raises SourceError."""
        own_files = {path: elf for path, elf in links.files.items() if links.owners[path] == links.wheels[0]}
        symbols, cost = self._symbols(own)
        files: dict[str, ElfFacts] = {}
        without = []
        for item in symbols:
            path = installed_path(item.member)
            if path in own_files:
                elf = replace(own_files[path], imports=item.imports, exports=item.exports)
                files[path] = elf if item.versions is None else replace(elf, versions=item.versions)
            if _lacks_init(item):
                without.append(item.member)
        definitions = OtherDefinitions(outlines, self.exports, target.machine)
        imported = counted_as_imported(links.loaded(), links.roles)
        unresolved, unread, judged = find_unresolved(files, links.closure.needs, imported, definitions)
        of_torch, far = needs_of_torch(files)
        unread = (*unread, *_without_any_for(unresolved, links, files))
        facts = SymbolFacts(unresolved, unread, judged, of_torch=of_torch, far=far)
        if definitions.torch_wheel is not None:
            missing = {name for item in unresolved if item.imported for name in item.of_torch}
            fitting = releases_that_export(tuple(missing), target.machine) if missing else ()
            facts = replace(facts, torch=definitions.torch_wheel.version, torch_wheel=definitions.torch_wheel.file_name)
            facts = replace(facts, fitting=fitting)
        links = replace(links, without_init=frozenset(without))
        read, requests = links.bytes_read + cost.bytes_read, links.requests + cost.requests
        return replace(links, symbols=facts, bytes_read=read, requests=requests)

    def _symbols(self, own: Neighbour) -> tuple[tuple[MemberSymbols, ...], Cost]:
        """The imports and exports of each library of the judged wheel."""
        source = self._open(own)
        try:
            archive = read_archive(source, kept := kept_facts(source, self._client.cache))
            found = kept.remember("symbols", AsJson(tuple[MemberSymbols, ...]), lambda: read_symbols(source, archive))
        except FormatError as error:
            raise SourceError(f"the symbols of {own.file_name} cannot be read: {error}") from None
        finally:
            source.close()
        return found, source.cost

    def exports(self, wanted: Sequence[tuple[Outline, Member]]) -> list[Exports | Unavailable]:
        """The exports of each of these members, read at once. Raises SourceError."""
        return list(self._pool.map(lambda pair: self._exports(*pair), wanted))

    def _exports(self, outline: Outline, member: Member) -> Exports | Unavailable:
        source = self._open(outline.neighbour)
        try:
            kept = kept_facts(source, self._client.cache)
            read = partial(read_member_exports, source, outline.archive, member)
            found = kept.remember(f"exports of {member.name}", AsJson(_Found), lambda: _Found(read()))
        finally:
            source.close()
        return found.exports

    def _open(self, neighbour: Neighbour) -> NamedBytes:
        if isinstance(neighbour.location, Path):
            return LocalFile(neighbour.location)
        return self._client.open(neighbour.location, expected_hash=neighbour.sha256, size=neighbour.size)


@dataclass(frozen=True, slots=True)
class _Found:
    exports: Exports | Unavailable


class OtherDefinitions:
    """The :class:`Definitions` of the wheels next to one: torch's by the table, all others by their exports."""

    def __init__(
        self, outlines: Sequence[Outline], read: Callable[..., list[Exports | Unavailable]], machine: str
    ) -> None:
        self._read = read
        self._owners = {path: outline for outline in outlines for path in outline.members}
        self._known: dict[str, Collection[int] | None] = {}
        self._torch: Collection[int] | None = None
        self.torch_wheel = next((o.neighbour for o in outlines if o.neighbour.project == TORCH), None)
        if self.torch_wheel is not None:
            self._torch = self._of_torch(self.torch_wheel, machine)

    @property
    def torch(self) -> Collection[int] | None:
        """As in the protocol."""
        return self._torch

    @property
    def process(self) -> None:
        """As in the protocol: which interpreter will run is unknown."""
        return

    @property
    def most_libraries(self) -> int:
        """As in the protocol."""
        return MOST_LIBRARIES

    def of(self, paths: Sequence[str]) -> Mapping[str, Collection[int] | None]:
        """As in the protocol. Raises SourceError."""
        unknown = [path for path in paths if path not in self._known and path in self._owners]
        wanted = [(self._owners[path], self._owners[path].members[path]) for path in unknown]
        for path, found in zip(unknown, self._read(wanted) if wanted else (), strict=True):
            self._known[path] = hashes_of(found) if isinstance(found, Exports) else None
        return {path: self._known.get(path) for path in paths}

    def libraries(self) -> Sequence[str]:
        """As in the protocol: those that the import of torch loads, then the shortest paths."""
        others = [path for path in self._owners if posixpath.basename(path).startswith("lib")]
        return sorted(others, key=lambda p: (not is_imported_by(TORCH, posixpath.basename(p)), p.count("/"), p))

    def _of_torch(self, wheel: Neighbour, machine: str) -> Collection[int] | None:
        table = torch_exports(wheel.version, machine)
        paths = [p for p, o in self._owners.items() if o.neighbour is wheel and p.startswith(_OF_TORCH)]
        if table is not None:
            names = {posixpath.basename(path) for path in paths}
            if set(table.libraries) <= names:
                self._known |= {p: _all_of(table, posixpath.basename(p)) for p in paths if _is_in(table, p)}
                return frozenset().union(*table.libraries.values(), *table.undecided.values())
        found = self.of(paths).values()  # a torch of another index, or newer than the table
        return None if not paths or any(one is None for one in found) else frozenset().union(*filter(None, found))


def _without_any_for(
    unresolved: Sequence[UnresolvedFile], links: LinkFacts, files: Collection[str]
) -> Iterator[tuple[str, str]]:
    """One file of each group that has none for this torch, if source opens them and the import may reach it."""
    failing = {item.path: item for item in unresolved if item.of_torch and not item.imported}
    groups: dict[str, list[str]] = {}
    for path in files:
        groups.setdefault(without_numbers(path), []).append(path)
    opened = {path for path, one in links.roles.items() if one.shown_by and not one.is_for_another}
    for group in groups.values():
        if len(group) > 1 and failing.keys() & opened >= set(group):
            others = f"like {len(group) - 1} more for other versions"
            yield group[0], f"{others}, it does not fit this torch; the import may open one of them"


def _lacks_init(item: MemberSymbols) -> bool:
    """Whether the member is known to define no ``PyInit`` function for its name (PEP 489)."""
    name = posixpath.basename(item.member).partition(".")[0]
    if not isinstance(item.exports, Exports) or not name.isascii():
        return False
    return symbol_hash(f"PyInit_{name}") not in hashes_of(item.exports)


def _is_in(table: TorchExports, path: str) -> bool:
    return posixpath.basename(path) in table.libraries


def _all_of(table: TorchExports, name: str) -> frozenset[int]:
    return table.libraries[name] | table.undecided.get(name, frozenset())
