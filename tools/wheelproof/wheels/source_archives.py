"""Source archives as a resolver can use them without building: each is read, and replaced by an empty wheel.

uv runs with ``--no-build``, so that it can run no code of an archive, and then passes over every release that has no
wheel. A release whose requirements are known does get one: a file with that METADATA and nothing else, in a folder
that only this run uses.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.errors import FormatError, NotFoundError, UsageError, WheelproofError
from wheel_checks.facts.wheel.resolution import exact_pin, metadata_reader
from wheel_checks.facts.wheel.source_archive import READABLE, SourceArchive, read_source_archive
from wheel_checks.formats.index.file_names import WHEEL_SUFFIX, sdist_version
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.sdist.static_metadata import StaticMetadata
from wheel_checks.formats.secrets import redact
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.model import Unavailable
from wheel_checks.parsing import version_or_none
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.targets.selection import Choice, choose
from wheel_checks.targets.target import Target
from wheelproof.wheels.indexes import KnownIndexes

_MACHINE_TAGS = 2  # of the three parts of a tag those without the machine: Python and ABI


@dataclass(slots=True)
class ArchiveFolder:
    """The source archives that a resolver may use, each written to ``folder`` as an empty wheel.

    ``failed`` has the reason why a release's archive cannot be used.
    """

    folder: Path
    client: HttpClient
    indexes: KnownIndexes
    target: Target
    pre: bool = False
    archives: dict[tuple[str, Version], tuple[SourceArchive, IndexFile]] = field(default_factory=dict)
    failed: dict[tuple[str, Version], str] = field(default_factory=dict)
    _known: dict[str, _Releases] = field(default_factory=dict)

    def candidate(
        self, requirements: Sequence[Requirement], above: Version | None = None, *, older: bool = False
    ) -> Choice | None:
        """The latest release that the requirements on one package together allow, if it is newer than ``above`` and has
        a source archive that was not read yet, and no wheel for the target. None for any other.

        ``older`` skips releases whose archives were read, since their requirements did not fit.

        Raises SourceError when an index does not answer.
        """
        name = canonicalize_name(requirements[0].name)
        releases = self._releases(name)
        unread = [v for v in releases.archives if (name, v) not in self.failed and (name, v) not in self.archives]
        if not any(above is None or version > above for version in unread):  # as for nearly every package
            return None
        # Releases with an unusable archive have none, and read releases have a wheel.
        usable = set(unread) if older else {v for v in releases.archives if (name, v) not in self.failed}
        files = [*releases.wheels, *(file for v, file in releases.archives.items() if v in usable)]
        choice = self._taken_by_uv(requirements, files)
        is_new = choice.sdist is not None and choice.version is not None and (above is None or choice.version > above)
        return choice if is_new and (name, choice.version) not in self.archives else None

    def newest(self, requirements: Sequence[Requirement], above: Version) -> Choice | None:
        """The latest release above ``above`` that the requirements on one package together allow and that has a file
        for the target; None if none exists. Pre-releases count only next to another one, or if they are allowed.

        Raises SourceError when an index does not answer.
        """
        releases = self._releases(canonicalize_name(requirements[0].name))
        with_pre = self.pre or above.is_prerelease
        newer = {v for v in releases.versions if v > above and (with_pre or not v.is_prerelease)}
        if not newer:
            return None
        found = [file for version in newer for file in releases.versions[version]]
        choice = self._taken_by_uv(requirements, found)
        return choice if choice.version is not None else None

    def taken_by_pip(self, requirements: Sequence[Requirement]) -> Choice:
        """The choice of pip for all requirements on one package: yanked releases count as final ones.

        Raises SourceError when an index does not answer.
        """
        releases = self._releases(canonicalize_name(requirements[0].name))
        files = [file for group in releases.versions.values() for file in group]
        return choose(_together(requirements), files, self.target, pre=self.pre)

    def _taken_by_uv(self, requirements: Sequence[Requirement], files: Sequence[IndexFile]) -> Choice:
        """As pip, but if every final release is yanked uv takes pre-releases."""
        together = _together(requirements)
        kept = [file for file in files if file.yanked is None]
        return choose(together, files if exact_pin(together) else kept, self.target, pre=self.pre)

    def _releases(self, name: str) -> _Releases:
        if name not in self._known:
            try:
                self._known[name] = _Releases.of(name, self.indexes.files(name))
            except (NotFoundError, UsageError):  # also if no index is configured
                self._known[name] = _Releases.of(name, ())
        return self._known[name]

    def metadata(self, file: IndexFile) -> CoreMetadata:
        """The METADATA of a wheel, as an index serves it, which names the file in a lock with less than the index says.

        Raises SourceError and FormatError.
        """
        listed = self.indexes.files(file.file_name.partition("-")[0])
        known = next((other for other in listed if other.file_name == file.file_name), file)
        return metadata_reader(self.client)(known)

    def holds(self, file: IndexFile) -> bool:
        """Whether a file of a resolution is an empty wheel that was written here."""
        return is_file_url(file.url) and path_of(file.url).parent == self.folder

    def add(self, choice: Choice) -> SourceArchive | None:
        """Read the archive that was chosen and make it usable; None when it cannot be, and ``failed`` says why."""
        if choice.sdist is None or choice.version is None:
            raise ValueError("no source archive was chosen")
        name, file = canonicalize_name(choice.requirement.name), choice.sdist
        key = (name, choice.version)
        try:
            archive = self._read(name, str(choice.version), file)
            if isinstance(archive.metadata, Unavailable):
                raise FormatError(archive.metadata.reason)
        except WheelproofError as error:
            self.failed[key] = str(error)
            return None
        _write_stub(self.folder, archive.metadata)
        self.archives[key] = (archive, file)
        return archive

    def _read(self, name: str, version: str, file: IndexFile) -> SourceArchive:
        source = self.client.open(file.url, expected_hash=file.hashes.get("sha256", ""), size=file.size)
        try:
            archive = read_source_archive(source, name, version, file.file_name)
        finally:
            source.close()
        archive = replace(archive, url=redact(file.url), size=file.size, own_computed=archive.computed)
        elsewhere = self._wheel_elsewhere(name, Version(version))
        if elsewhere is None:
            return archive
        metadata = _static(name, version, elsewhere.file_name, self.metadata(elsewhere))
        return replace(archive, metadata=metadata, metadata_of=elsewhere.file_name)

    def _wheel_elsewhere(self, name: str, version: Version) -> IndexFile | None:
        """The wheel of the release whose METADATA uv uses for the archive: the best match."""
        files = [file for file in self._releases(name).versions[version] if file.is_wheel]
        tags = {str(tag).rpartition("-")[0] for tag in self.target.supported_tags()}
        return max(files, key=lambda file: any(f"{a}-{b}" in tags for a, b in _interpreters(file)), default=None)


def _together(requirements: Sequence[Requirement]) -> Requirement:
    """One requirement with the specifiers of all, which are on one package."""
    together = Requirement(canonicalize_name(requirements[0].name))
    for requirement in requirements:
        together.specifier &= requirement.specifier
    return together


@dataclass(frozen=True, slots=True)
class _Releases:
    """The files of a project by their versions, and among them its wheels and the source archives that uv takes."""

    versions: Mapping[Version, Sequence[IndexFile]]
    wheels: Sequence[IndexFile]
    archives: Mapping[Version, IndexFile]

    @classmethod
    def of(cls, name: str, files: Sequence[IndexFile]) -> _Releases:
        """A large project lists ten thousand files of a hundred versions: each version is parsed once."""
        wheels = [file for file in files if file.file_name.endswith(WHEEL_SUFFIX)]
        by_text: dict[str, list[IndexFile]] = {}
        for file in wheels:
            by_text.setdefault(file.file_name.split("-", 2)[1], []).append(file)
        stated = [(sdist_version(f.file_name, name), f) for f in files if f.file_name.endswith(READABLE)]
        found = [(version, file) for text, file in stated if text and (version := version_or_none(text))]
        versions: dict[Version, list[IndexFile]] = {}
        for text, group in by_text.items():
            if (parsed := version_or_none(text)) is not None:
                versions.setdefault(parsed, []).extend(group)
        for version, file in found:
            versions.setdefault(version, []).append(file)
        return cls(versions, wheels, dict(found))


def _interpreters(file: IndexFile) -> Iterable[tuple[str, str]]:
    """The pairs of Python and ABI tags of a wheel's name."""
    parts = file.file_name.split("-")[-3:]
    return [(a, b) for a in parts[0].split(".") for b in parts[_MACHINE_TAGS - 1].split(".")]


def _static(name: str, version: str, origin: str, metadata: CoreMetadata) -> StaticMetadata:
    requirements = (*map(str, metadata.requirements), *(text for text, _ in metadata.bad_requirements))
    python, extras = metadata.requires_python, metadata.provides_extra
    return StaticMetadata(name, version, origin, requirements, python, extras)


def _write_stub(folder: Path, metadata: StaticMetadata) -> None:
    """A wheel with this METADATA and no module; uv finds it by its name."""
    stem = f"{canonicalize_name(metadata.name).replace('-', '_')}-{metadata.version}"
    members = {
        "METADATA": metadata.text,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: wheelproof\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{stem}.dist-info/{name},,\n" for name in (*members, "RECORD"))
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for name, text in {**members, "RECORD": record}.items():
            wheel.writestr(f"{stem}.dist-info/{name}", text)
