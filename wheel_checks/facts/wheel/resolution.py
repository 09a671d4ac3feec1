"""Follows requirements from METADATA to METADATA for a target: which are active, and where exact pins lead."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, NotFoundError
from wheel_checks.facts.accelerator.signals import marker_fault
from wheel_checks.facts.archive.kept import kept_facts
from wheel_checks.facts.wheel.contents_reading import read_metadata
from wheel_checks.formats.digests import WrongHash, WrongMetadataError, compare_hashes
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.wheel.core_metadata import MAX_SIZE as LARGEST_METADATA
from wheel_checks.formats.wheel.core_metadata import CoreMetadata, parse_core_metadata
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.sources.client import HttpClient
from wheel_checks.targets.selection import Choice, choose
from wheel_checks.targets.target import Target

MOST_PACKAGES = 1000  # followed before giving up: the largest real closures have 300
_AT_ONCE = 8  # packages whose index page and METADATA are read in parallel

Listing = Callable[[str], Sequence[IndexFile]]
"""The files that the indexes list for a project; raises SourceError."""

MetadataReader = Callable[[IndexFile], CoreMetadata]
"""The METADATA of a wheel; raises SourceError or FormatError."""


@dataclass(frozen=True, slots=True)
class PinnedPackage:
    """A package that an exact pin fixes, what an installer takes for it on the target, and who requires it.

    ``choice.chosen`` is None when the target has no wheel of it, and ``choice.explanation`` says why. ``required_by``
    contains names, "" for the requirements that were given.
    """

    name: str
    version: str
    choice: Choice
    required_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pins:
    """What exact pins lead to.

    ``unpinned`` are the requirements that need a resolver, each as a sentence: the closure is complete when there is
    none. ``skipped`` are those that the caller did not want to follow.
    """

    packages: tuple[PinnedPackage, ...] = ()
    unpinned: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def active_with_extras(
    requirements: Iterable[Requirement], environment: Mapping[str, str], extras: Collection[str] = ()
) -> list[Requirement]:
    """The requirements whose marker holds in ``environment``, without extras or with any one of ``extras``.

    One whose marker cannot be evaluated is omitted (rule WHL107 reports it).
    """
    asked = ["", *extras]
    return [
        r
        for r in requirements
        if r.marker is None
        or (not marker_fault(r, environment) and any(r.marker.evaluate({**environment, "extra": e}) for e in asked))
    ]


def with_extras(
    requirements: Iterable[Requirement], environment: Mapping[str, str], extras: Collection[str]
) -> list[Requirement]:
    """The requirements, those of ``extras`` among them without their marker, so that they hold where it did."""
    given = list(requirements)
    plain = {id(r) for r in active_with_extras(given, environment)}
    more = [r for r in active_with_extras(given, environment, extras) if id(r) not in plain]
    return [*(r for r in given if r not in more), *(Requirement(str(r).partition(";")[0]) for r in more if not r.url)]


def exact_pin(requirement: Requirement) -> str:
    """The one version that ``==`` or ``===`` allows, "" when the requirement allows several or names a URL."""
    pins = [s.version for s in requirement.specifier if s.operator in ("==", "===") and not s.version.endswith(".*")]
    return pins[0] if pins and not requirement.url else ""


def _refuse(wrong: WrongHash) -> None:
    raise WrongMetadataError(wrong)


def metadata_reader(client: HttpClient, on_wrong: Callable[[WrongHash], object] = _refuse) -> MetadataReader:
    """Reads METADATA the cheapest way: the file that the index serves (PEP 658), else the wheel's own by ranges.

    One with another hash than the index states is not used: ``on_wrong`` is called, from any
    thread, and unless it raises, as it does by default, the wheel's own is read.
    """

    def served(file: IndexFile, stated: Mapping[str, str]) -> CoreMetadata | None:
        try:
            data = client.get_page(f"{file.url}.metadata", largest=LARGEST_METADATA, stated=stated).body
        except NotFoundError:  # offered, and yet not there
            return None
        hash_ = compare_hashes(data, stated)
        if hash_ is None or not hash_.is_wrong:
            return parse_core_metadata(data)
        on_wrong(WrongHash(file.file_name, *hash_))
        return None

    def read(file: IndexFile) -> CoreMetadata:
        found = None if file.core_metadata is None else served(file, file.core_metadata)
        if found is not None:
            return found
        source = client.open(file.url, expected_hash=file.hashes.get("sha256", ""), size=file.size)
        try:
            return read_metadata(source, parse_wheel_name(file.file_name), kept_facts(source, client.cache))
        except FormatError as error:
            raise FormatError(f"{file.file_name} has no METADATA that can be read: {error.what}") from None
        finally:
            source.close()

    return read


def _follow_all(_: Requirement) -> bool:
    return False


def is_pinned(requirement: Requirement) -> bool:
    """True for an exact pin, and for one release with its rebuilds: ``==13.1.0.3.*``, as CUDA's own packages have it.

    A wildcard behind fewer than three numbers (``==13.*``) is a range, of which a resolver chooses.
    """
    releases = [s.version for s in requirement.specifier if s.operator == "==" and s.version.endswith(".*")]
    return bool(exact_pin(requirement)) or any(text.count(".") > 2 for text in releases)


@dataclass(slots=True)
class _Walk:
    """The state of following pins: what is fixed and how, with which extras, and every requirement met, with whose."""

    pins: dict[str, Requirement] = field(default_factory=dict)
    extras: dict[str, set[str]] = field(default_factory=dict)
    met: list[tuple[str, Requirement]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def take(self, by: str, requirement: Requirement) -> str:
        """Note one requirement; returns the name of the package that is to be inspected (again), "" if none."""
        name = canonicalize_name(requirement.name)
        self.met.append((by, requirement))
        new_extras = not requirement.extras <= self.extras.setdefault(name, set())
        self.extras[name].update(requirement.extras)
        if name in self.pins:
            return name if new_extras else ""
        if not is_pinned(requirement):
            return ""
        self.pins[name] = Requirement(f"{name}{requirement.specifier}")
        return name


def resolve_pins(
    requirements: Iterable[Requirement],
    target: Target,
    listing: Listing,
    metadata: MetadataReader,
    *,
    skip: Callable[[Requirement], bool] = _follow_all,
) -> Pins:
    """Follow exact pins (``==``) on ``target``, extras included, as far as they lead.

    ``skip`` says which requirements do not matter to the caller; they are neither followed nor missed. A requirement
    without a pin is fulfilled when another one pins its package to a version that it allows.

    Raises SourceError or FormatError when an index page or a METADATA cannot be read.
    """
    walk, environment = _Walk(), target.markers()
    choices: dict[str, Choice] = {}
    known: dict[str, CoreMetadata] = {}

    def look(name: str) -> tuple[Choice, CoreMetadata | None]:
        if name in choices:
            return choices[name], known.get(name)
        choice = choose(walk.pins[name], listing(name), target)
        return choice, metadata(choice.chosen) if choice.chosen else None

    front = list(dict.fromkeys(_noted(walk, "", active_with_extras(requirements, environment), skip)))
    with ThreadPoolExecutor(_AT_ONCE, "pins") as pool:
        while front and len(choices) <= MOST_PACKAGES:
            found = dict(zip(front, pool.map(look, front), strict=True))
            front = []
            for name, (choice, read) in found.items():
                choices[name] = choice
                if read is not None:
                    known[name] = read
                    active = active_with_extras(read.requirements, environment, walk.extras[name])
                    front += _noted(walk, name, active, skip)
            front = list(dict.fromkeys(front))
    unpinned = list(_unfulfilled(walk, choices))
    if front:
        unpinned.append(f"the pins lead to more than {MOST_PACKAGES} packages")
    packages = tuple(_package(walk, name, choices[name]) for name in sorted(choices))
    return Pins(packages, tuple(dict.fromkeys(unpinned)), tuple(dict.fromkeys(walk.skipped)))


def _package(walk: _Walk, name: str, choice: Choice) -> PinnedPackage:
    version = exact_pin(choice.requirement) if choice.version is None else str(choice.version)
    required_by = dict.fromkeys(by for by, requirement in walk.met if canonicalize_name(requirement.name) == name)
    return PinnedPackage(name, version, choice, tuple(required_by))


def _noted(
    walk: _Walk, by: str, requirements: Iterable[Requirement], skip: Callable[[Requirement], bool]
) -> Iterator[str]:
    for requirement in requirements:
        if skip(requirement):
            walk.skipped.append(_who_requires(by, requirement))
        elif name := walk.take(by, requirement):
            yield name


def _unfulfilled(walk: _Walk, choices: Mapping[str, Choice]) -> Iterator[str]:
    """The requirements that the pins do not answer, or answer with a version that they do not allow."""
    for by, requirement in walk.met:
        choice = choices.get(canonicalize_name(requirement.name))
        if choice is None:
            yield f"{_who_requires(by, requirement)}, which is not an exact pin"
        elif choice.version is not None and not requirement.specifier.contains(choice.version, prereleases=True):
            yield f"{_who_requires(by, requirement)}, while another package pins {choice.requirement}"


def _who_requires(by: str, requirement: Requirement) -> str:
    text = str(requirement).partition(";")[0].strip()
    return f"{by} requires {text}" if by else f"{text} is requested"
