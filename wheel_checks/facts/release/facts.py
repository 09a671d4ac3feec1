"""A release as a matrix of Pythons by platforms: the expected and the present files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from statistics import median
from typing import NamedTuple

from packaging.version import Version

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.release.expectation import ExpectedPlatform, ReleaseExpectation
from wheel_checks.formats.index.file_names import is_file_of, sdist_version
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.wheel_name import WheelName, wheel_name_or_none
from wheel_checks.model import Unavailable
from wheel_checks.targets.variant_choice import MachineChoice

_FEWEST = 3  # files whose median shows the usual value
_NOT_READ = Unavailable("no wheel was read")
_NOT_RESOLVED = Unavailable("the requirements of the release were not resolved")


class Cell(NamedTuple):
    """One Python on one platform, by their names in the expectation: ("aarch64", "3.13t")."""

    platform: str
    python: str


class Statement(NamedTuple):
    """A source's statement on a file: ``who`` ("the file on disk", an index, ...), and the value."""

    who: str
    value: str | int


@dataclass(frozen=True, slots=True)
class Installation:
    """The result of resolving the requirements of a cell: empty fields if they can be installed.

    ``extra`` is the extra that they were resolved with, or "". ``conflict`` says why no versions fulfil them,
    ``missing`` are packages without any file for it, ``unproven`` says why the result is unknown.
    """

    cell: Cell
    conflict: str = ""
    missing: tuple[str, ...] = ()
    unproven: str = ""
    extra: str = ""

    @property
    def failed(self) -> bool:
        """True if they cannot be installed, or it is unknown."""
        return bool(self.conflict or self.missing or self.unproven)


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file at the place of the release, and its facts.

    ``sizes`` (bytes) and ``digests`` (sha256, hex) are the statements of each place. ``listed`` is True when an index
    lists the file, ``yanked`` the reason when one marks it yanked, else None. Facts from the name are found by
    :func:`lay_out`: ``own`` is True when it has the project and the version of the release, ``platforms`` are the
    expected platforms in its tags, ``cells`` the filled cells.
    """

    file_name: str
    sizes: tuple[Statement, ...] = ()
    digests: tuple[Statement, ...] = ()
    listed: bool = False
    yanked: str | None = None
    accelerator: AcceleratorFacts | Unavailable = _NOT_READ
    metadata: CoreMetadata | Unavailable = _NOT_READ
    name: WheelName | None = None
    version: Version | None = None
    own: bool = False
    platforms: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()

    @property
    def is_wheel(self) -> bool:
        """True when the name ends as a wheel's does."""
        return self.file_name.endswith(".whl")

    @property
    def size(self) -> int | None:
        """In bytes, as the first place states it, or None."""
        return int(self.sizes[0].value) if self.sizes else None


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """All files of one release, compared with the expectation for its ``version``. ``today`` decides about exemptions.

    ``filled`` has every expected cell, platform by platform, with the files that fill it: the one with the highest
    build tag, which installers prefer, first. ``median_sizes`` (bytes) are those of platforms with at least three
    files: fewer do not show the usual size. ``machine_choices`` are the variants chosen for the machines that it claims
    to support, each with the expected label, "" for any made for a GPU. ``installations`` has each cell whose file has
    requirements.
    """

    expectation: ReleaseExpectation
    version: Version
    files: tuple[ReleaseFile, ...]
    filled: Mapping[Cell, tuple[ReleaseFile, ...]]
    median_sizes: Mapping[str, float]
    today: date
    machine_choices: tuple[tuple[MachineChoice, str], ...] = ()
    installations: tuple[Installation, ...] | Unavailable = _NOT_RESOLVED

    @property
    def own_files(self) -> tuple[ReleaseFile, ...]:
        """The files of the project and version."""
        return tuple(file for file in self.files if file.own)

    def files_on(self, platform: str) -> tuple[ReleaseFile, ...]:
        """The files that fill a cell of the platform."""
        return tuple(file for file in self.own_files if any(cell.platform == platform for cell in file.cells))


class FileInRelease(NamedTuple):
    """One file and its release: the subject of rules about single files."""

    file: ReleaseFile
    release: ReleaseFacts


def lay_out(
    expectation: ReleaseExpectation, version: Version, files: Sequence[ReleaseFile], today: date
) -> ReleaseFacts:
    """The files over the matrix. Raises UsageError when the expectation says nothing about the version."""
    expected = expectation.at(version)
    placed = tuple(_place(file, expected, version) for file in files)
    filled: dict[Cell, list[ReleaseFile]] = {
        Cell(platform.name, str(python)): [] for platform in expected.platforms for python in platform.pythons
    }
    sizes: dict[str, list[int]] = defaultdict(list)
    for file in placed:
        for cell in file.cells:
            filled[cell].append(file)
        for platform in {cell.platform for cell in file.cells}:
            sizes[platform] += [] if file.size is None else [file.size]
    ranked = {cell: tuple(sorted(found, key=_build, reverse=True)) for cell, found in filled.items()}
    medians = {platform: median(found) for platform, found in sizes.items() if len(found) >= _FEWEST}
    return ReleaseFacts(expected, version, placed, ranked, medians, today)


def release_version(file_names: Iterable[str], project: str) -> Version | None:
    """The version that most files of the project have, the latest of them when several have as many; None of none."""
    counts = Counter(version for name in file_names if (version := version_of(name, project)))
    return max(counts, key=lambda version: (counts[version], version), default=None)


def version_of(file_name: str, project: str) -> Version | None:
    """The version in the name of a wheel or source archive of ``project``; None for other files and odd versions."""
    if not is_file_of(file_name, project):
        return None
    text = file_name.split("-")[1:2] if file_name.endswith(".whl") else [sdist_version(file_name, project) or ""]
    try:
        return Version(text[0]) if text else None
    except ValueError:  # InvalidVersion, or a number of more digits than Python reads
        return None


def matches(platform: ExpectedPlatform, tag: str) -> bool:
    """Whether a platform tag is one of those expected for ``platform``."""
    return any(fnmatchcase(tag, pattern) for pattern in platform.tags)


def _place(file: ReleaseFile, expectation: ReleaseExpectation, version: Version) -> ReleaseFile:
    found = version_of(file.file_name, expectation.project)
    placed = replace(file, version=found, own=found == version)
    name = wheel_name_or_none(file.file_name)
    if name is None:
        return placed
    platforms, cells = [], []
    for platform in expectation.platforms:
        tags = [tag for tag in name.tags if name.variant == platform.variant and matches(platform, tag.platform)]
        platforms += [platform.name] if tags else []
        cells += [
            Cell(platform.name, str(python))
            for python in platform.pythons
            if placed.own and any(python.accepts(tag) for tag in tags)
        ]
    return replace(placed, name=name, platforms=tuple(platforms), cells=tuple(cells))


def _build(file: ReleaseFile) -> tuple[int, str] | tuple[()]:
    return file.name.build_number if file.name else ()
