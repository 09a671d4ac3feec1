"""The requirements for a release: the file of ``wheelproof release --expect FILE``, see ``docs/release.md``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.version import Version

from wheel_checks.decode import Check, DecodeError, Fault, Filled, Key, Made
from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.gpu.targets import Product, parse_gpu
from wheel_checks.facts.variants.described_machine import cuda_of_driver
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import AcceleratorExpectation, parse_expectation, parse_size
from wheel_checks.formats.documents import LARGEST, Ratio, read_toml
from wheel_checks.formats.wheel.variant_faults import name_pattern
from wheel_checks.sources.regular_file import read_start
from wheel_checks.targets.target import parse_python
from wheel_checks.targets.variant_machine import parse_cpu

NO_BUILD_TAG = ("",)
_OF_THE_RELEASE = ("as the release",)
_PLATFORMS = "one [[platform]] for each platform of the release"
_DIGEST = re.compile(r"(?:sha256[:=])?([0-9a-fA-F]{64})")
_ANY_VERSION = SpecifierSet()


def _accelerator(text: str) -> AcceleratorExpectation:
    try:
        return parse_expectation(text)
    except UsageError as error:
        raise FormatError(error.what.removeprefix("--expect "), expected=error.expected) from None


def _label(text: str) -> str:
    if not name_pattern("label").fullmatch(text):
        raise FormatError(f"{text[:100]!r} is not a variant label", expected=name_pattern("label").pattern)
    return text


def _digest(text: str) -> str:
    match = _DIGEST.fullmatch(text.strip())
    if match is None:
        raise FormatError(f"{text[:100]!r} is not a sha256", expected="64 hexadecimal digits")
    return match[1].lower()


def _specifier(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        raise FormatError(f"{text[:100]!r} is not a set of versions", expected="a form such as >=2.11,<3") from None


def _cpu(text: str) -> str:
    return parse_cpu(text)[0]


def _driver(text: str) -> str:
    cuda_of_driver(text)
    return text


Label = Annotated[str, Made(_label)]
Versions = Annotated[SpecifierSet, Made(_specifier)]
Gpus = tuple[Annotated[Product, Made(parse_gpu)], ...]
FilledTexts = Annotated[tuple[str, ...], Check(bool, "a list of strings that is not empty")]


class Agreement(StrEnum):
    """Which wheels must have the same METADATA: all of the release, those of one platform, or none."""

    ALL = "all"
    PLATFORM = "platform"
    NONE = "none"


class UploadRules(StrEnum):
    """The rules of the index that the release is uploaded to: those of a public one, or none."""

    PUBLIC = "public"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class _PythonRow:
    python: Annotated[tuple[tuple[int, int], int | None, bool], Made(parse_python)]
    versions: Versions = _ANY_VERSION


@dataclass(frozen=True, slots=True)
class ExpectedPython:
    """A CPython, "3.13t" when free-threaded, and the versions of the project that are built for it."""

    version: tuple[int, int]
    free_threaded: bool = False
    versions: SpecifierSet = _ANY_VERSION

    @classmethod
    def of(cls, row: str | _PythonRow) -> ExpectedPython:
        """The meaning of a string or a table of ``pythons``. Raises UsageError if it is not a Python version."""
        row = _PythonRow(parse_python(row)) if isinstance(row, str) else row
        version, _, free_threaded = row.python
        return cls(version, free_threaded, row.versions)

    def __str__(self) -> str:
        return f"{self.version[0]}.{self.version[1]}{'t' * self.free_threaded}"

    def accepts(self, tag: Tag) -> bool:
        """Whether a wheel with this tag installs on it, its platform aside."""
        return tag in _accepted(self.version, self.free_threaded, tag.platform)


Pythons = tuple[Annotated[ExpectedPython, Made(ExpectedPython.of, of=str | _PythonRow)], ...]


@lru_cache(maxsize=4096)
def _accepted(version: tuple[int, int], free_threaded: bool, platform: str) -> frozenset[Tag]:
    interpreter = f"cp{version[0]}{version[1]}"
    abis = [interpreter + "t" * free_threaded]
    return frozenset(
        (
            *cpython_tags(version, abis=abis, platforms=[platform]),
            *compatible_tags(version, interpreter, platforms=[platform]),
        )
    )


@dataclass(frozen=True, slots=True)
class ExpectedPlatform:
    """A column of the matrix. ``tags`` are patterns of platform tags (``manylinux_2_28_aarch64``, ``macosx_*_arm64``).

    ``variant`` is the label that its wheels have (PEP 825), "" for wheels that are no variants.

    ``max_size`` is in bytes. ``build_tags`` are those that a file may have, "" if none. ``versions`` are the versions
    of the project that this row applies to. Missing ``pythons`` and ``build_tags`` are those of the release.
    """

    name: Filled
    tags: FilledTexts
    pythons: Pythons = ()
    accelerator: Annotated[AcceleratorExpectation, Made(_accelerator)] | None = None
    gpus: Gpus = ()
    max_size: Annotated[int, Made(parse_size)] | None = None
    build_tags: tuple[str, ...] = _OF_THE_RELEASE
    versions: Versions = _ANY_VERSION
    variant: Label = ""


@dataclass(frozen=True, slots=True)
class ExpectedMachines:
    """Machines for the release: each of ``gpus`` with each of ``drivers``, or a ``cpu`` without a GPU.

    ``drivers`` may be empty for the usual one, and ``cpu`` "" for that of the product. ``variant`` is the label that
    they must get, "" for any made for a GPU.
    """

    gpus: Gpus = ()
    drivers: tuple[Annotated[str, Made(_driver)], ...] = ()
    cpu: Annotated[str, Made(_cpu)] = ""
    variant: Label = ""

    def __post_init__(self) -> None:
        if not self.gpus and not self.cpu:
            expected = 'gpus = ["GB200"], or cpu = "x86-64-v3"'
            raise DecodeError([Fault(("gpus",), "is missing, and so is cpu", expected)])
        if self.drivers and not self.gpus:
            raise DecodeError([Fault(("drivers",), "has no effect without gpus", 'gpus = ["GB200"]')])


@dataclass(frozen=True, slots=True)
class Parity:
    """Platforms, by name, that must offer the same. ``size_ratio`` bounds the ratio of their median sizes."""

    platforms: FilledTexts
    pythons: bool = True
    accelerator: bool = True
    size_ratio: Ratio | None = None

    def __post_init__(self) -> None:
        if len(set(self.platforms)) != len(self.platforms) or len(self.platforms) == 1:
            what = "compares a platform with itself"
            raise DecodeError([Fault(("platforms",), what, "two or more different names")])


@dataclass(frozen=True, slots=True)
class Exemption:
    """Findings of these rules (prefixes) on files of this pattern are known, and pass up to and including ``until``."""

    rules: FilledTexts
    files: Filled
    reason: Filled
    until: date


@dataclass(frozen=True, slots=True)
class ReleaseExpectation:
    """The requirements for a release. ``size_outlier`` bounds the ratio of a file to the median of its platform.

    ``other_files`` are patterns of names of other files in the same place, which are not judged. ``hashes`` maps file
    names to sha256 in hex; when there are any, every file must be among them. ``depth`` is the minimum depth.
    ``pythons`` and ``build_tags`` are defaults for platforms. ``upload_rules`` is the kind of index. ``resolve``: check
    that the wheels' requirements can be installed today. ``torch_abi`` are the releases of torch that every wheel must
    load with, as one for the stable ABI of torch does.
    """

    project: Filled
    platforms: Annotated[tuple[ExpectedPlatform, ...], Key("platform"), Check(bool, _PLATFORMS)]
    sdist: bool = False
    yanked: bool = False
    upload_rules: Annotated[UploadRules, Key("upload-rules")] = UploadRules.PUBLIC
    resolve: bool = True
    metadata: Annotated[Agreement, Key("same-metadata")] = Agreement.ALL
    size_outlier: Ratio | None = None
    depth: Depth = Depth.LINKS
    other_files: tuple[str, ...] = ()
    parity: tuple[Parity, ...] = ()
    exemptions: Annotated[tuple[Exemption, ...], Key("ignore")] = ()
    machines: Annotated[tuple[ExpectedMachines, ...], Key("machine")] = ()
    hashes: Mapping[str, Annotated[str, Made(_digest)]] = field(default_factory=dict)
    pythons: Pythons = ()
    build_tags: tuple[str, ...] = NO_BUILD_TAG
    torch_abi: Annotated[Versions | None, Key("torch-abi")] = None

    def at(self, version: Version) -> ReleaseExpectation:
        """The expectation for one version: the platforms and Pythons whose ``versions`` include it.

        A pre-release, and a local version, must meet that of its final release. Raises UsageError when nothing is
        expected of the version, or a platform twice.
        """
        final = Version(version.base_version)
        chosen = [
            replace(platform, pythons=tuple(p for p in platform.pythons if p.versions.contains(final)))
            for platform in self.platforms
            if platform.versions.contains(final)
        ]
        names = [platform.name for platform in chosen]
        if not names:
            raise UsageError(
                f"the expectation names no platform for {self.project} {version}",
                hint="check `versions` of its [[platform]] tables",
            )
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"the expectation has platform {name!r} twice for {self.project} {version}",
                    expected="`versions` that exclude each other",
                )
        parity = tuple(rule for rule in self.parity if set(rule.platforms) <= set(names))
        return replace(self, platforms=tuple(chosen), parity=parity)

    def only(self, accepted: Collection[str]) -> ReleaseExpectation:
        """The platforms with one of the ``accepted`` platform tags, without the others. Raises UsageError for none."""
        kept = [p for p in self.platforms if any(fnmatchcase(tag, pattern) for pattern in p.tags for tag in accepted)]
        if not kept:
            known = ", ".join(f"{platform.name} ({', '.join(platform.tags)})" for platform in self.platforms)
            raise UsageError("the expectation has no platform for --platform", expected=f"one of {known}")
        others = [f"*-*{tag}*.whl" for platform in self.platforms if platform not in kept for tag in platform.tags]
        return replace(self, platforms=tuple(kept), other_files=(*self.other_files, *others))

    def platform(self, name: str) -> ExpectedPlatform:
        """The platform of this name, which must be there."""
        return next(platform for platform in self.platforms if platform.name == name)


def read_release_expectation(path: Path) -> ReleaseExpectation:
    """The expectation in a file. Raises UsageError when it cannot be read, or with the faults that it has."""
    try:
        return parse_release_expectation(read_start(path, LARGEST + 1, given=True), f"the expectation {path}")
    except OSError as error:
        raise UsageError(f"the expectation {path} cannot be read: {error.strerror}") from error


def parse_release_expectation(data: bytes, source: str = "the expectation") -> ReleaseExpectation:
    """The expectation in a TOML document. Raises UsageError that names the faults by key and line."""
    try:
        return read_toml(data, source, ReleaseExpectation, _completed)
    except FormatError as error:
        raise UsageError(error.what, expected=error.expected, hint="docs/release.md describes the keys") from None


def _completed(release: ReleaseExpectation) -> ReleaseExpectation:
    """With the release's defaults for platforms. Raises DecodeError if one part refers to a missing one."""
    faults = []
    if not release.pythons:
        missing = ("is missing, here and at the top", 'a list such as ["3.12", "3.13t"]')
        bare = (number for number, platform in enumerate(release.platforms) if not platform.pythons)
        faults += [Fault(("platform", number, "pythons"), *missing) for number in bare]
    known = {platform.name for platform in release.platforms}
    for number, parity in enumerate(release.parity):
        expected = f"names of [[platform]]: {', '.join(sorted(known))}"
        strangers = (name for name in parity.platforms if name not in known)
        faults += [Fault(("parity", number, "platforms"), f"has {name!r}", expected) for name in strangers]
    if faults:
        raise DecodeError(faults)
    return replace(release, platforms=tuple(_platform(platform, release) for platform in release.platforms))


def _platform(platform: ExpectedPlatform, release: ReleaseExpectation) -> ExpectedPlatform:
    build_tags = release.build_tags if platform.build_tags is _OF_THE_RELEASE else platform.build_tags
    return replace(platform, pythons=platform.pythons or release.pythons, build_tags=build_tags)
