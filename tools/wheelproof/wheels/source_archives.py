"""Source archives as a resolver can use them without building: each is read, and stands as a wheel that is empty.

uv runs with ``--no-build``, so that it can run no code of an archive, and then passes over every release that has no
wheel. A release whose requirements are known does get one: a file with that METADATA and nothing else, in a folder
that only this run uses.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.errors import FormatError, NotFoundError, WheelproofError
from wheel_checks.facts.wheel.resolution import metadata_reader
from wheel_checks.facts.wheel.source_archive import READABLE, SourceArchive, read_source_archive
from wheel_checks.formats.file_names import sdist_version
from wheel_checks.formats.index_page import IndexFile
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

_MACHINE_TAGS = 2  # of the three parts of a tag those that say nothing of the machine: Python and ABI


@dataclass(slots=True)
class ArchiveFolder:
    """The source archives that a resolver may use, each written to ``folder`` as an empty wheel.

    ``failed`` says of a release why its archive cannot be used.
    """

    folder: Path
    client: HttpClient
    indexes: KnownIndexes
    target: Target
    pre: bool = False
    archives: dict[tuple[str, Version], tuple[SourceArchive, IndexFile]] = field(default_factory=dict)
    failed: dict[tuple[str, Version], str] = field(default_factory=dict)

    def candidate(
        self, requirements: Sequence[Requirement], above: Version | None = None, *, older: bool = False
    ) -> Choice | None:
        """The newest release that the requirements on one package together allow, if it is newer than ``above`` and has
        a source archive that was not read yet, and no wheel for the target. None for any other.

        ``older`` passes over the releases whose archives were read: what they require did not fit.

        Raises SourceError when an index does not answer.
        """
        name = canonicalize_name(requirements[0].name)
        try:
            files = self.indexes.files(name)
        except NotFoundError:
            return None
        if not any(self._is_new(name, file, above) for file in files):  # as for nearly every package
            return None
        # A release of which the archive cannot be used has none, and what was read has a wheel: it is no news.
        usable = [file for file in files if file.is_wheel or self._is_new(name, file, None, read=not older)]
        choice = choose(_together(requirements), usable, self.target, pre=self.pre)
        is_new = choice.sdist is not None and choice.version is not None and (above is None or choice.version > above)
        return choice if is_new and (name, choice.version) not in self.archives else None

    def newest(self, requirements: Sequence[Requirement], above: Version) -> Choice | None:
        """The newest release above ``above`` that the requirements on one package together allow and that has a file
        for the target; None when there is none. Pre-releases count only beside another one, or where they are allowed.

        Raises SourceError when an index does not answer.
        """
        name = canonicalize_name(requirements[0].name)
        try:
            files = self.indexes.files(name)
        except NotFoundError:
            return None
        rows = [(text, file) for file in files if (text := _version_text(file, name))]
        newer = {text for text in {text for text, _ in rows} if self._is_newer(text, above)}
        if not newer:
            return None
        found = [file for text, file in rows if text in newer]
        choice = choose(_together(requirements), found, self.target, pre=self.pre)
        return choice if choice.version is not None else None

    def _is_newer(self, text: str, above: Version) -> bool:
        version = version_or_none(text)
        with_pre = self.pre or above.is_prerelease
        return version is not None and version > above and (with_pre or not version.is_prerelease)

    def holds(self, file: IndexFile) -> bool:
        """Whether a file of a resolution is an empty wheel that was written here."""
        return is_file_url(file.url) and path_of(file.url).parent == self.folder

    def _is_new(self, name: str, file: IndexFile, above: Version | None, *, read: bool = False) -> bool:
        """Whether a file is an archive of a release newer than ``above`` that is not known; ``read``: or is read."""
        stated = sdist_version(file.file_name, name) if file.file_name.endswith(READABLE) else None
        version = version_or_none(stated) if stated else None
        if version is None:
            return False
        key = (name, version)
        return key not in self.failed and (read or key not in self.archives) and (above is None or version > above)

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
        archive = replace(archive, url=redact(file.url), size=file.size)
        elsewhere = self._wheel_elsewhere(name, Version(version))
        if elsewhere is None:
            return archive
        metadata = _static(name, version, elsewhere.file_name, metadata_reader(self.client, self.target)(elsewhere))
        return replace(archive, metadata=metadata, metadata_of=elsewhere.file_name)

    def _wheel_elsewhere(self, name: str, version: Version) -> IndexFile | None:
        """The wheel of the release whose METADATA uv takes for that of the archive: the one that fits best."""
        files = [
            file
            for file in self.indexes.files(name)
            if file.is_wheel and version_or_none(_version_text(file, name)) == version
        ]
        tags = {str(tag).rpartition("-")[0] for tag in self.target.supported_tags()}
        return max(files, key=lambda file: any(f"{a}-{b}" in tags for a, b in _interpreters(file)), default=None)


def _together(requirements: Sequence[Requirement]) -> Requirement:
    """One requirement with the specifiers of all, which are on one package."""
    together = Requirement(canonicalize_name(requirements[0].name))
    for requirement in requirements:
        together.specifier &= requirement.specifier
    return together


def _version_text(file: IndexFile, name: str) -> str:
    """The version in the name of a file; "" for none."""
    return file.file_name.split("-", 2)[1] if file.is_wheel else sdist_version(file.file_name, name) or ""


def _interpreters(file: IndexFile) -> Iterable[tuple[str, str]]:
    """The pairs of Python and ABI tags of a wheel's name."""
    parts = file.file_name.split("-")[-3:]
    return [(a, b) for a in parts[0].split(".") for b in parts[_MACHINE_TAGS - 1].split(".")]


def _static(name: str, version: str, origin: str, metadata: CoreMetadata) -> StaticMetadata:
    requirements = (*map(str, metadata.requirements), *(text for text, _ in metadata.bad_requirements))
    python, extras = metadata.requires_python, metadata.provides_extra
    return StaticMetadata(name, version, origin, requirements, python, extras)


def _write_stub(folder: Path, metadata: StaticMetadata) -> None:
    """A wheel with this METADATA and no module; its name is what uv finds it by."""
    stem = f"{canonicalize_name(metadata.name).replace('-', '_')}-{metadata.version}"
    members = {
        "METADATA": metadata.text,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: wheelproof\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{stem}.dist-info/{name},,\n" for name in (*members, "RECORD"))
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for name, text in {**members, "RECORD": record}.items():
            wheel.writestr(f"{stem}.dist-info/{name}", text)
