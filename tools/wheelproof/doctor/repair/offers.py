"""Read the offers of configured indexes for this interpreter, and the metadata of a wheel, before a download."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.errors import FormatError, NotFoundError
from wheel_checks.facts.archive.members import read_members
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.host.software import Interpreter
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.record import MAX_SIZE as LARGEST_RECORD
from wheel_checks.formats.wheel.version_file import MAX_SIZE as LARGEST_VERSION_FILE
from wheel_checks.formats.wheel.version_file import parse_version_file
from wheel_checks.formats.wheel.wheel_name import wheel_name_or_none
from wheel_checks.model import Unavailable
from wheel_checks.parsing import numbers, requirement_or_none
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import DEFAULT_GLIBC, Target

_LARGEST_METADATA = 1 << 20  # bytes
_REQUIRES = re.compile(r"^Requires-Dist:[ \t]*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")


@dataclass(frozen=True)
class Offered:
    """A wheel that an installer would take for this interpreter, and the number of bytes read."""

    name: str
    version: Version
    file: IndexFile
    size: int | None
    _read: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def full_version(self) -> str:
        """With the local part."""
        return str(self.version)

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """Its Requires-Dist."""
        text = self._text("METADATA").partition("\n\n")[0]
        found = (requirement_or_none(line) for line in _REQUIRES.findall(text.replace("\r\n", "\n")))
        return tuple(one for one in found if one is not None)

    @property
    def record(self) -> bytes:
        """Its RECORD."""
        return next((data for name, data in self._read.items() if name.endswith(".dist-info/RECORD")), b"")

    @cached_property
    def build(self) -> Mapping[str, str]:
        """The texts that its version.py assigns (cuda, hip, xpu); {} if it has none."""
        content = self._read.get(f"{self.name}/version.py")
        try:
            values = parse_version_file("version.py", content).values if content is not None else {}
        except FormatError:
            return {}
        return {name: value for name, value in values.items() if isinstance(value, str)}

    def _text(self, name: str) -> str:
        found = (data for path, data in self._read.items() if path.endswith(f".dist-info/{name}"))
        return next(found, b"").decode("utf-8", "replace")


class Offers:
    """The wheels of the configured indexes for one interpreter; pages and wheels are read once."""

    def __init__(self, client: HttpClient, config: IndexConfig, interpreter: Interpreter) -> None:
        self.config = config
        self.target = target_of(interpreter)
        self._client, self._index = client, SimpleIndex(client, config)
        self._wheels: dict[str, dict[Version, IndexFile]] = {}
        self._known: dict[str, Offered] = {}

    def versions(self, name: str) -> Mapping[Version, IndexFile]:
        """The wheel that would be taken of each version, latest version first; {} if no index knows the project.

        Raises SourceError when an index does not answer.
        """
        normalized = canonicalize_name(name)
        if normalized not in self._wheels:
            self._wheels[normalized] = dict(sorted(self._list(normalized).items(), reverse=True))
        return self._wheels[normalized]

    def size(self, name: str, version: str) -> int | None:
        """The bytes to download for a version; None if the index does not say."""
        file = next((f for v, f in self.versions(name).items() if str(v) == str(Version(version))), None)
        return _size_of(file) if file else None

    def read(self, name: str, version: Version) -> Offered:
        """The wheel of a version with its metadata, RECORD and version.py. Raises SourceError and FormatError."""
        file = self.versions(name)[version]
        return self.read_file(name, version, file)

    def read_file(self, name: str, version: Version, file: IndexFile) -> Offered:
        """The same for a file by its address."""
        if file.url not in self._known:
            sha256 = file.hashes.get("sha256", "")
            source = self._client.open(file.url, expected_hash=f"sha256={sha256}" if sha256 else "", size=file.size)
            try:
                archive = read_archive(source)
                names = [member.name for member in archive.members]
                limits = {one: _LARGEST_METADATA for one in names if _METADATA.fullmatch(one)}
                limits |= {one: LARGEST_RECORD for one in names if one.endswith(".dist-info/RECORD")}
                limits |= {f"{name}/version.py": LARGEST_VERSION_FILE}
                found = read_members(source, archive, limits).contents
            finally:
                source.close()
            data = {one: content for one, content in found.items() if not isinstance(content, Unavailable)}
            self._known[file.url] = Offered(name, version, file, _size_of(file), data)
        return self._known[file.url]

    def _list(self, name: str) -> dict[Version, IndexFile]:
        try:
            files = self._index.files(name).files
        except NotFoundError:
            return {}
        by_version: dict[Version, list[IndexFile]] = {}
        for file in files:
            if file.yanked is None and (parsed := wheel_name_or_none(file.file_name)):
                by_version.setdefault(parsed.parsed_version, []).append(file)
        wanted = Requirement(name)
        taken = {version: choose(wanted, same, self.target, pre=True).chosen for version, same in by_version.items()}
        return {version: file for version, file in taken.items() if file is not None}


def target_of(interpreter: Interpreter) -> Target:
    """The platform and Python for which wheels are searched for."""
    major, minor, patch = (*numbers(interpreter.version), 0, 0, 0)[:3]
    glibc = numbers(interpreter.libc[1]) if interpreter.libc[0] == "glibc" else ()
    pair = (glibc[0], glibc[1]) if len(glibc) > 1 else DEFAULT_GLIBC
    return Target((major, minor), interpreter.machine, pair, interpreter.free_threaded, patch)


def _size_of(file: IndexFile) -> int | None:
    if file.size is None and is_file_url(file.url):
        try:
            return path_of(file.url).stat().st_size
        except OSError:
            return None
    return file.size
