"""What an installer is given for one target: requirements that we write, and indexes that may be asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from wheel_checks.errors import SourceError, UsageError, WheelproofError
from wheel_checks.sources.file_urls import is_file_url
from wheel_checks.sources.installer_config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.trust import REPOSITORY, Address, Trust, UntrustedAddressError, with_url
from wheel_checks.targets.target import Target
from wheelproof.wheels.asked import Asked
from wheelproof.wheels.declared_model import Declared, Line, Project

_FLAG = "--index-url"


@dataclass(frozen=True, slots=True)
class Handed:
    """``asked`` are the requirements of the command line, ``of_files`` those of files, with ``hashes`` of some of them.

    ``pinned`` maps packages to the one index that they may come from; ``config`` names the indexes of all others.
    ``left_out`` maps packages that are not looked at to the reason, ``projects`` are those that would be built.
    ``options`` are those of the files, each as a line of a requirements file.
    """

    asked: tuple[str, ...]
    of_files: tuple[str, ...]
    constraints: tuple[str, ...]
    config: IndexConfig
    pinned: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, WheelproofError] = field(default_factory=dict)
    projects: tuple[Project, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def requirements(self) -> tuple[str, ...]:
        """All requirements, as PEP 508 texts."""
        return (*self.asked, *self.of_files)

    @property
    def pre(self) -> bool:
        """Whether pre-releases are allowed."""
        return "--pre" in self.options

    @property
    def pinned_requirements(self) -> tuple[str, ...]:
        """The requirements on packages that come from one index."""
        return tuple(text for text in self.of_files if canonicalize_name(Requirement(text).name) in self.pinned)

    def lines(self, *, pinned: bool) -> str:
        """What files ask for, as a requirements file: with what is ``pinned`` or without; "" for nothing."""
        left = () if pinned else self.pinned_requirements
        texts = [text for text in self.of_files if text not in left]
        rows = [" ".join([text, *(f"--hash={value}" for value in self.hashes.get(text, ()))]) for text in texts]
        return "".join(f"{row}\n" for row in [*self.options, *rows])


def hand_over(asked: Asked, target: Target, config: IndexConfig) -> Handed:
    """What is asked for on ``target``, as far as the trust in ``config`` goes.

    Raises UsageError for a file that an installer would refuse, UntrustedAddressError when every package could come
    from an index that only the tree names, and SourceError when it is unknown what is requested.
    """
    declared = asked.declared
    if declared.faults:
        raise UsageError(f"the requirements cannot be read: {declared.faults[0]}")
    if declared.open_ends:
        raise declared.open_ends[0]
    own = _with_indexes(config, declared)
    own.require_trusted(asked.label)
    handing = _Handing(target.markers(), own.trust)
    for line in declared.lines:
        handing.take(line)
    for name, where in declared.not_built.items():
        handing.left_out[name] = SourceError(f"{name} must be built from a source archive ({where}), which is not done")
    if ":all:" in declared.not_built:
        raise handing.left_out[":all:"]
    for project in declared.projects:
        handing.left_out.pop(project.name, None)
    return Handed(
        asked.requirements,
        tuple(handing.requirements),
        tuple(handing.constraints),
        own,
        handing.pinned,
        handing.hashes,
        handing.left_out,
        tuple(declared.projects),
        tuple(_options(declared, own.trust)),
    )


def _with_indexes(config: IndexConfig, declared: Declared) -> IndexConfig:
    """The configuration with the indexes of the files: theirs replaces the first, unless a flag names it."""
    refused: list[Address] = []

    def allowed(addresses: Sequence[Address]) -> list[str]:
        found = []
        for address in addresses:
            url = address.url if is_file_url(address.url) else config.trust.allowed(address.url)
            if url is None:
                refused.append(address)
            else:
                found.append(url)
        return found

    linked = [*config.find_links, *allowed(declared.find_links)]
    asked: list[str] = []
    if not declared.without_index:
        last = config.strategy == FIRST_INDEX  # then the index is after all others
        main = list(config.indexes[-1:] if last else config.indexes[:1])
        others = [*(config.indexes[:-1] if last else config.indexes[1:]), *allowed(declared.extra)]
        if declared.index and not (main and config.origin.get(main[0]) == _FLAG):
            main = allowed([declared.index])
        asked = [*others, *main] if last else [*main, *others]
    return replace(
        config,
        indexes=tuple(dict.fromkeys(asked)),
        find_links=tuple(dict.fromkeys(linked)),
        refused=(*config.refused, *refused),
    )


def _options(declared: Declared, trust: Trust) -> Iterator[str]:
    """The options of the files about indexes and pre-releases; every address is trusted by now."""
    index = [declared.index] if declared.index else []
    flags = {"--index-url": index, "--extra-index-url": declared.extra, "--find-links": declared.find_links}
    for flag, addresses in flags.items():
        for address in addresses:
            yield f"{flag} {address.url if is_file_url(address.url) else trust.allowed(address.url)}"
    yield from ["--no-index"] * declared.without_index
    yield from ["--pre"] * declared.pre


@dataclass(slots=True)
class _Handing:
    environment: Mapping[str, str]
    trust: Trust
    requirements: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    pinned: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: dict[str, WheelproofError] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        """Give a line to the installer, or leave its package out."""
        requirement = line.requirement
        address, pinned = self._address(line), ""
        if address is not None and self._holds(requirement.marker):
            url = address.url if is_file_url(address.url) else self.trust.allowed(address.url)
            if url is None or address.kind == REPOSITORY:
                self.left_out[line.name] = UntrustedAddressError(line.name, [address])
                return
            if address.kind == "index":
                pinned = url
            else:
                requirement = Requirement(with_url(requirement, url))
        elif requirement.url:
            return  # not for this target
        text = str(requirement)
        (self.constraints if line.constraint else self.requirements).append(text)
        if line.hashes:
            self.hashes[text] = line.hashes
        if pinned:
            self.pinned[line.name] = pinned

    def _address(self, line: Line) -> Address | None:
        """Where a package comes from when it is not from the indexes; None when it is."""
        url = line.requirement.url
        if url:
            kind = "file" if "://" in url.partition("+")[0] or is_file_url(url) else REPOSITORY
            return Address(url, line.where, kind)
        return next((source.address for source in line.sources if self._holds(source.marker)), None)

    def _holds(self, marker: Marker | None) -> bool:
        """Whether a marker holds on the target. One that cannot be evaluated does: nothing is taken by mistake."""
        try:
            return marker is None or marker.evaluate({**self.environment, "extra": ""})
        except (InvalidVersion, UndefinedComparison, UndefinedEnvironmentName):
            return True
