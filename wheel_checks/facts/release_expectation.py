"""What a release must be: the file behind ``wheelproof release --expect FILE``. ``docs/release.md`` describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.version import Version

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.expectations import AcceleratorExpectation, parse_expectation, parse_size
from wheel_checks.facts.gpu.targets import Product, parse_gpu
from wheel_checks.facts.variants.described_machine import cuda_of_driver
from wheel_checks.facts.wheel.facts import Depth
from wheel_checks.formats.toml_table import LARGEST, TomlTable, read_toml
from wheel_checks.formats.wheel.variant_faults import name_pattern
from wheel_checks.targets.target import parse_python
from wheel_checks.targets.variant_machine import parse_cpu

NO_BUILD_TAG = ("",)
_DIGEST = re.compile(r"(?:sha256[:=])?([0-9a-fA-F]{64})")
_ANY_VERSION = SpecifierSet()


class Agreement(StrEnum):
    """Which wheels must carry the same METADATA: all of the release, those of one platform, or none."""

    ALL = "all"
    PLATFORM = "platform"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ExpectedPython:
    """A CPython, "3.13t" when free-threaded, and the versions of the project that are built for it."""

    version: tuple[int, int]
    free_threaded: bool = False
    versions: SpecifierSet = _ANY_VERSION

    def __str__(self) -> str:
        return f"{self.version[0]}.{self.version[1]}{'t' * self.free_threaded}"

    def accepts(self, tag: Tag) -> bool:
        """Whether a wheel with this tag installs on it, its platform aside."""
        return tag in _accepted(self.version, self.free_threaded, tag.platform)


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

    ``max_size`` is in bytes. ``build_tags`` are those that a file may have, "" for none. ``versions`` are the versions
    of the project that all this is expected of.
    """

    name: str
    tags: tuple[str, ...]
    pythons: tuple[ExpectedPython, ...]
    accelerator: AcceleratorExpectation | None = None
    gpus: tuple[Product, ...] = ()
    max_size: int | None = None
    build_tags: tuple[str, ...] = NO_BUILD_TAG
    versions: SpecifierSet = _ANY_VERSION
    variant: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedMachines:
    """Machines that the release claims to serve: each of ``gpus`` with each of ``drivers``, or a ``cpu`` without a GPU.

    ``drivers`` may be empty for the usual one, and ``cpu`` "" for that of the product. ``variant`` is the label that
    they must get, "" for any that is made for a GPU.
    """

    gpus: tuple[Product, ...]
    drivers: tuple[str, ...] = ()
    cpu: str = ""
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Parity:
    """Platforms, by name, that must offer the same. ``size_ratio`` bounds the ratio of their median sizes."""

    platforms: tuple[str, ...]
    pythons: bool = True
    accelerator: bool = True
    size_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Exemption:
    """Findings of these rules (prefixes) on files of this pattern are known, and pass up to and including ``until``."""

    rules: tuple[str, ...]
    files: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class ReleaseExpectation:
    """What a release must be. ``size_outlier`` bounds the ratio of a file to the median of its platform.

    ``other_files`` are patterns of names that may lie beside the release and are not looked at. ``hashes`` maps file
    names to sha256 in hex; when there are any, every file must be among them. ``depth`` is the least to judge at.
    """

    project: str
    platforms: tuple[ExpectedPlatform, ...]
    sdist: bool = False
    yanked: bool = False
    metadata: Agreement = Agreement.ALL
    size_outlier: float | None = None
    depth: Depth = Depth.QUICK
    other_files: tuple[str, ...] = ()
    parity: tuple[Parity, ...] = ()
    exemptions: tuple[Exemption, ...] = ()
    machines: tuple[ExpectedMachines, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)

    def at(self, version: Version) -> ReleaseExpectation:
        """What is expected of one version: the platforms and Pythons whose ``versions`` hold it.

        A pre-release, and a local version, is held against what its final release must be. Raises UsageError when
        nothing is expected of the version, or a platform twice.
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
                hint="see `versions` of its [[platform]] tables",
            )
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"the expectation has platform {name!r} twice for {self.project} {version}",
                    expected="`versions` that exclude each other",
                )
        parity = tuple(rule for rule in self.parity if set(rule.platforms) <= set(names))
        return replace(self, platforms=tuple(chosen), parity=parity)

    def platform(self, name: str) -> ExpectedPlatform:
        """The platform of this name, which must be there."""
        return next(platform for platform in self.platforms if platform.name == name)


def read_release_expectation(path: Path) -> ReleaseExpectation:
    """The expectation in a file. Raises UsageError when it cannot be read, or with every fault that it has."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"the expectation {path} cannot be read: {error.strerror}") from error
    try:
        return parse_release_expectation(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"the expectation {path} is not UTF-8 (line {line})") from None


def parse_release_expectation(text: str, source: str = "the expectation") -> ReleaseExpectation:
    """The expectation in a text. Raises UsageError that names every fault by its key and line."""
    try:
        document = read_toml(text, source)
        expectation = _read(document)
        document.finish(source)
    except FormatError as error:
        raise UsageError(error.what, expected=error.expected, hint="docs/release.md describes the keys") from None
    return expectation


def _read(document: TomlTable) -> ReleaseExpectation:
    pythons = _pythons(document)
    build_tags = document.texts("build-tags", NO_BUILD_TAG)
    platforms = tuple(_platform(table, pythons, build_tags) for table in document.tables("platform"))
    if not platforms:
        document.fault("platform", "is missing", "one [[platform]] for each platform of the release")
    return ReleaseExpectation(
        project=document.text("project", required=True),
        platforms=platforms,
        sdist=document.flag("sdist", default=False),
        yanked=document.flag("yanked", default=False),
        metadata=document.parsed("same-metadata", _agreement, Agreement.ALL),
        size_outlier=document.ratio("size-outlier"),
        depth=document.parsed("depth", _depth, Depth.QUICK),
        other_files=document.texts("other-files"),
        parity=tuple(_parity(table, {p.name for p in platforms}) for table in document.tables("parity")),
        exemptions=tuple(_exemption(table) for table in document.tables("ignore")),
        machines=tuple(map(_machines, document.tables("machine"))),
        hashes=_hashes(document.table("hashes")),
    )


def _platform(table: TomlTable, pythons: tuple[ExpectedPython, ...], build_tags: tuple[str, ...]) -> ExpectedPlatform:
    own = _pythons(table)
    if not own and not pythons:
        table.fault("pythons", "is missing, here and at the top", 'a list such as ["3.12", "3.13t"]')
    return ExpectedPlatform(
        name=table.text("name", required=True),
        tags=table.texts("tags", required=True),
        pythons=own or pythons,
        accelerator=table.parsed("accelerator", _accelerator, None),
        gpus=_gpus(table),
        max_size=table.parsed("max-size", parse_size, None),
        build_tags=table.texts("build-tags", build_tags),
        versions=table.parsed("versions", _specifier, _ANY_VERSION),
        variant=table.parsed("variant", _label, ""),
    )


def _gpus(table: TomlTable) -> tuple[Product, ...]:
    found = (table.try_parse("gpus", name, parse_gpu, None) for name in table.texts("gpus"))
    return tuple(gpu for gpu in found if gpu is not None)


def _machines(table: TomlTable) -> ExpectedMachines:
    gpus, drivers = _gpus(table), table.texts("drivers")
    for driver in drivers:
        table.try_parse("drivers", driver, cuda_of_driver, "")
    cpu = table.parsed("cpu", lambda text: parse_cpu(text)[0], "")
    if not table.texts("gpus") and not cpu:
        table.fault("gpus", "is missing, and so is cpu", 'gpus = ["GB200"], or cpu = "x86-64-v3"')
    elif drivers and not table.texts("gpus"):
        table.fault("drivers", "is of no use without gpus", 'gpus = ["GB200"]')
    return ExpectedMachines(gpus, drivers, cpu, table.parsed("variant", _label, ""))


def _pythons(table: TomlTable) -> tuple[ExpectedPython, ...]:
    found = []
    for row in table.rows("pythons", "python"):
        version, _, free_threaded = row.parsed("python", parse_python, ((0, 0), 0, False))
        if "python" not in row:
            row.fault("python", "is missing", 'a row such as { python = "3.12", versions = ">=2.4" }')
        found.append(ExpectedPython(version, free_threaded, row.parsed("versions", _specifier, _ANY_VERSION)))
    return tuple(found)


def _parity(table: TomlTable, known: set[str]) -> Parity:
    names = table.texts("platforms", required=True)
    for name in names:
        if name not in known:
            table.fault("platforms", f"has {name!r}", f"names of [[platform]]: {', '.join(sorted(known))}")
    if len(set(names)) != len(names) or len(names) == 1:
        table.fault("platforms", "compares a platform with itself", "two or more different names")
    return Parity(
        names,
        table.flag("pythons", default=True),
        table.flag("accelerator", default=True),
        table.ratio("size-ratio"),
    )


def _exemption(table: TomlTable) -> Exemption:
    return Exemption(
        table.texts("rules", required=True),
        table.text("files", required=True),
        table.text("reason", required=True),
        table.day("until"),
    )


def _hashes(table: TomlTable) -> dict[str, str]:
    return {name: table.parsed(name, _digest, "") for name in table}


def _accelerator(text: str) -> AcceleratorExpectation:
    try:
        return parse_expectation(text)
    except UsageError as error:
        raise FormatError(error.what.removeprefix("--expect "), expected=error.expected) from None


def _label(text: str) -> str:
    if not name_pattern("label").fullmatch(text):
        raise FormatError(f"{text[:100]!r} is no variant label", expected=name_pattern("label").pattern)
    return text


def _digest(text: str) -> str:
    match = _DIGEST.fullmatch(text.strip())
    if match is None:
        raise FormatError(f"{text[:100]!r} is no sha256", expected="64 hexadecimal digits")
    return match[1].lower()


def _specifier(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        raise FormatError(f"{text[:100]!r} is no set of versions", expected="a form such as >=2.11,<3") from None


def _depth(text: str) -> Depth:
    if text not in list(Depth):
        raise FormatError(f"{text[:100]!r} is no depth", expected=", ".join(Depth))
    return Depth(text)


def _agreement(text: str) -> Agreement:
    if text not in list(Agreement):
        raise FormatError(f"{text[:100]!r} says not whose METADATA must agree", expected=", ".join(Agreement))
    return Agreement(text)
