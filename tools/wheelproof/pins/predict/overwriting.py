"""The wheels of a plan that would write files of installed packages which stay, such as ``torch/__init__.py``.

Installers check no such conflict: the file that is written last remains. A file with the same content does no harm.
"""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

from wheel_checks.errors import FormatError, WheelproofError
from wheel_checks.facts.archive.kept import kept_facts
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.facts.security.places import place_of
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.regular_file import open_regular

Wheel = IndexFile | Unavailable | None
"""None for a package that is built from a source archive: its files are known only afterwards."""

_AT_ONCE = 8  # wheels whose directory is read in parallel
_OF_NO_IMPORT = {"benchmarks", "docs", "examples", "scripts", "test", "tests", "tools"}  # which many packages have
_BLOCK = 1 << 20


@dataclass(slots=True)
class Overwriting:
    """By the name of each package that loses files the wheel that writes them, with one of them; and open questions."""

    by: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)


def overwriting(
    order: ImportOrder,
    folder: int,
    held: Collection[Copy],
    installed: Mapping[str, str],
    wheel_of: Callable[[str], Wheel],
    client: HttpClient,
) -> Overwriting:
    """The packages among ``held`` over which wheels of the ``installed`` packages write, into that folder."""
    found = Overwriting()
    owners = [_Owner.of(copy, order, folder) for copy in held if copy.folder >= folder]
    if not owners or not installed:
        return found
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        contents = pool.map(lambda name: _written(wheel_of(name), client), installed)
        for (name, version), members in zip(installed.items(), contents, strict=True):
            label = f"{name} {version}"
            if isinstance(members, Unavailable):
                found.open.append(f"the files of {label} could not be read: {members.reason}")
                continue
            for owner in owners:
                owner.compare(label, members, found)
    return found


def _written(wheel: Wheel, client: HttpClient) -> dict[str, Member] | Unavailable:
    """The files that a wheel puts below site-packages."""
    if wheel is None or isinstance(wheel, Unavailable):
        return wheel or {}
    try:
        source = client.open(wheel.url, expected_hash=wheel.hashes.get("sha256", ""), size=wheel.size)
        try:
            members = read_archive(source, kept_facts(source, client.cache)).members
        finally:
            source.close()
    except (WheelproofError, FormatError) as error:
        return Unavailable(str(error))
    return dict(_in_site(members))


def _in_site(members: Iterable[Member]) -> Iterator[tuple[str, Member]]:
    for member in members:
        place = place_of(member.name)
        if place.area == "site" and not member.name.endswith("/"):
            yield posixpath.normpath(place.path), member


@dataclass(frozen=True, slots=True)
class _Owner:
    """A package that stays. ``files`` are those of its RECORD, None if they are unknown."""

    copy: Copy
    root: Path
    modules: frozenset[str]
    files: frozenset[str] | None
    is_behind: bool  # imports search the folder of the install first

    @classmethod
    def of(cls, copy: Copy, order: ImportOrder, folder: int) -> _Owner:
        root = Path(order.folders[copy.folder])
        found = next(iter(distributions(name=copy.name, path=[str(root)])), None) if root.is_absolute() else None
        files = frozenset(map(str, found.files)) if found is not None and found.files is not None else None
        modules = (copy.modules or frozenset([copy.name.replace("-", "_")])) - _OF_NO_IMPORT
        return cls(copy, root, modules, files, copy.folder > folder)

    def compare(self, label: str, written: Mapping[str, Member], found: Overwriting) -> None:
        """Add to what is ``found`` the file of this package that a wheel would write, or may write."""
        mine = sorted((path for path in written if path.partition("/")[0].partition(".")[0] in self.modules), key=len)
        for path in mine:
            if self._is_replaced(path, written[path]):
                found.by.setdefault(self.copy.name, f"{label} ({path})")
                return
        if mine and self.files is None:
            found.open.append(f"whether {mine[0]} of {label} is a file of {self.copy.label} is unknown")

    def _is_replaced(self, path: str, member: Member) -> bool:
        if self.is_behind or self.files is None:
            is_import = path in {name for one in self.modules for name in (f"{one}/__init__.py", f"{one}.py")}
            return is_import and (self.files is None or (path in self.files and not _is_same(self.root / path, member)))
        return path in self.files and not _is_same(self.root / path, member)


def _is_same(path: Path, member: Member) -> bool:
    try:
        if path.stat().st_size != member.size:
            return False
        checksum = 0
        with open_regular(path) as file:
            while block := file.read(_BLOCK):
                checksum = zlib.crc32(block, checksum)
    except OSError:
        return False
    return checksum == member.crc32
