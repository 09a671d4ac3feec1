"""What keeps an installer from replacing the installed torch: the settings that it reads, and what they say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.pins.families import families_of
from wheel_checks.facts.wheel.resolution import exact_pin
from wheel_checks.parsing import version_or_none


class Kind(StrEnum):
    """What a setting is for."""

    CONSTRAINT = "constraint"
    BUILD_CONSTRAINT = "build constraint"
    EXCLUDE = "exclude"
    OVERRIDE = "override"
    NO_ISOLATION = "no build isolation"  # no packages: of all builds
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class GuardSetting:
    """One setting that an installer reads. ``origin`` is where it is: "UV_CONSTRAINT", "pyproject.toml [tool.uv]".

    ``requirements`` are those of constraints and overrides, ``packages`` the normalised names of the others.
    ``path`` is a folder or file that it names; ``fault`` says why that could not be read, "" when it could.
    """

    kind: Kind
    origin: str
    requirements: tuple[Requirement, ...] = ()
    packages: tuple[str, ...] = ()
    path: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """The guard of one installer ("uv", "pip") in one folder: its settings, and what of torch is ``installed``.

    ``dropped`` is why uv ignores its table in a pyproject.toml, "" when it does not. ``extensions`` are packages that
    are known to be compiled against torch. ``asked`` are the packages that the user wants to keep.
    """

    installer: str
    version: str
    installed: Mapping[str, str]
    settings: tuple[GuardSetting, ...]
    dropped: str = ""
    extensions: tuple[str, ...] = ()
    asked: frozenset[str] = frozenset()

    def must_keep(self, name: str) -> bool:
        """Whether losing a package loses what is guarded: a framework, or what the user requested."""
        return name in self.asked or bool(families_of((name,)))

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
        """The settings that take every requirement on ``name`` away: excludes, and overrides that never hold."""
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
