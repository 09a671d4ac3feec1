"""The settings by which an installer keeps the installed torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.pins.families import families_of
from wheel_checks.facts.wheel.resolution import exact_pin
from wheel_checks.parsing import version_or_none


class Kind(StrEnum):
    """The purpose of a setting."""

    CONSTRAINT = "constraint"
    BUILD_CONSTRAINT = "build constraint"
    EXCLUDE = "exclude"
    OVERRIDE = "override"
    NO_ISOLATION = "no build isolation"  # no packages: of all builds
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class GuardSetting:
    """One setting that an installer reads. ``origin`` is its place: "UV_CONSTRAINT", "pyproject.toml [tool.uv]".

    ``requirements`` are those of constraints and overrides, ``packages`` the normalised names of the others. ``path``
    is a folder or file that it names; ``fault`` says why that could not be read, or is "".
    """

    kind: Kind
    origin: str
    requirements: tuple[Requirement, ...] = ()
    packages: tuple[str, ...] = ()
    path: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """The guard of one installer ("uv", "pip") in one folder: its settings, and the ``installed`` packages of torch.

    ``dropped`` is why uv ignores its table in a pyproject.toml, or "". ``extensions`` are packages known to be compiled
    against torch. ``requested`` are the packages that the user wants to keep.
    """

    installer: str
    version: str
    installed: Mapping[str, str]
    settings: tuple[GuardSetting, ...]
    dropped: str = ""
    extensions: tuple[str, ...] = ()
    requested: frozenset[str] = frozenset()

    def must_keep(self, name: str) -> bool:
        """Whether losing a package loses guarded packages: a framework, or a package that the user requested."""
        return name in self.requested or bool(families_of((name,)))

    def of(self, *kinds: Kind) -> Iterator[GuardSetting]:
        """The settings of these kinds."""
        return (setting for setting in self.settings if setting.kind in kinds)

    def pins(self, name: str, kind: Kind = Kind.CONSTRAINT) -> Iterator[tuple[GuardSetting, Requirement]]:
        """The requirements on ``name`` in settings of a kind, with their setting."""
        for setting in self.of(kind):
            for requirement in setting.requirements:
                if canonicalize_name(requirement.name) == name:
                    yield setting, requirement

    def keeps_away(self, name: str) -> Iterator[GuardSetting]:
        """The settings that remove every requirement on ``name``: excludes, and overrides that are never active."""
        for setting in self.of(Kind.EXCLUDE):
            if name in setting.packages:
                yield setting
        for setting, requirement in self.pins(name, Kind.OVERRIDE):
            if "never" in str(requirement.marker or ""):
                yield setting

    def is_pinned(self, name: str, kind: Kind = Kind.CONSTRAINT) -> bool:
        """Whether a requirement in a setting of that kind allows the installed version of ``name`` alone."""
        return any(is_exactly(requirement, self.installed.get(name, "")) for _, requirement in self.pins(name, kind))


def is_exactly(requirement: Requirement, version: str) -> bool:
    """Whether a requirement allows one version, and that is ``version``, local part included."""
    pinned = version_or_none(exact_pin(requirement))
    return pinned is not None and pinned == version_or_none(version)
