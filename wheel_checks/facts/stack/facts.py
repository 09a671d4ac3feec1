"""The facts about a stack that rules judge: the packages of one resolution, and their requirements on each other."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.accelerator.meaning import is_known_by_name
from wheel_checks.facts.accelerator.signals import GPU
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.stack.locked import LockedEntry, LockFacts
from wheel_checks.facts.wheel.facts import Sibling
from wheel_checks.facts.wheel.resolution import active_with_extras, exact_pin
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.index.digests import WrongHash
from wheel_checks.model import Location, Unavailable
from wheel_checks.targets.selection import Choice
from wheel_checks.targets.target import Target

WHEEL, SDIST, NO_FILE, CONDA = "wheel", "sdist", "none", "conda"
DECLARED = "declared"  # named by files of a tree, and not looked at


@dataclass(frozen=True, slots=True)
class Demand:
    """One requirement on a package. ``by`` is its owner: "vllm 0.19.0", "" for the user."""

    by: str
    requirement: Requirement

    @property
    def text(self) -> str:
        """The requirement without its marker: ``torch==2.10.0``."""
        return str(self.requirement).partition(";")[0].strip()

    def __str__(self) -> str:
        return f"{self.by} requires {self.text}" if self.by else f"you ask for {self.text}"


EXTRA = re.compile(r"extra == ['\"]([^'\"]{1,100})['\"]")  # as packaging writes markers


@dataclass(frozen=True, slots=True)
class LinkedPackage:
    """A package in the graph of requirements: its name and its requirements."""

    name: str
    version: str
    requirements: tuple[Requirement, ...] = ()
    extras: frozenset[str] | None = None  # that it declares; None if its METADATA was not read

    @property
    def label(self) -> str:
        """Such as "vllm 0.19.0"."""
        return f"{self.name} {self.version}".strip()

    @property
    def cuda_extras(self) -> tuple[str, ...]:
        """The extras that provide CUDA libraries: "cuda" of onnxruntime-gpu, "and-cuda" of tensorflow."""
        bringing = (r for r in self.requirements if is_known_by_name(canonicalize_name(r.name)))
        return tuple(dict.fromkeys(extra for r in bringing for extra in EXTRA.findall(str(r.marker or ""))))


@dataclass(frozen=True, slots=True)
class StackPackage:
    """One package of a stack."""

    name: str  # of the project
    version: str  # that is resolved or locked
    target: Target  # platform and Python
    distribution: str  # kind to install: "wheel", "sdist" (built on the host), "conda" or "none"
    accelerator: AcceleratorFacts | Unavailable  # of the wheel
    file_name: str = ""  # of the wheel or archive
    demands: tuple[Demand, ...] = ()  # all requirements on it
    chain: tuple[Demand, ...] = ()  # from the user's requirement to it, one demand a step
    choice: Choice | None = None  # the index's offers, if no wheel was found
    explanation: str = ""  # why there is no wheel, or the build of conda
    siblings: tuple[Sibling, ...] = ()  # wheels of the same release for other machines
    gpu_reason: str = ""  # why a GPU is required ("--gpu GB200"); "" if it is not
    archive: SourceArchive | None = None  # source archive; None if it is built from something else
    unread_archive: str = ""  # why an archive that an installer would try first could not be read
    place: Location | None = None  # line of a user's file that requires the package; None if no file does
    locked: LockedEntry | None = None  # entry of the lock; None if it was resolved
    cpu_reason: str = ""  # why a CPU build is required ("the index .../whl/cpu"), or ""
    cuda_extras: tuple[str, ...] = ()  # extras of its METADATA with libraries of CUDA
    extras: frozenset[str] | None = None  # all extras of its METADATA, normalized; None if it was not read

    @property
    def label(self) -> str:
        """Such as "torch 2.10.0"."""
        return f"{self.name} {self.version}".strip()

    @property
    def known_accelerator(self) -> AcceleratorFacts | None:
        """The accelerator, None when it could not be read."""
        return None if isinstance(self.accelerator, Unavailable) else self.accelerator


@dataclass(frozen=True, slots=True)
class Conflict:
    """Requirements that no set of versions satisfies: sentences that say why, and the demands, for people.

    ``computed`` are source archives among them that compute their requirements in a build: then the conflict is not
    certain.
    """

    sentences: tuple[str, ...]
    demands: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    computed: tuple[SourceArchive, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A newer release of a package that was requested, which the resolver does not take instead of ``taken``."""

    name: str
    version: str
    taken: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} is newer than {self.taken}, but was rejected: {self.reason}"


@dataclass(frozen=True, slots=True)
class PreRelease:
    """A pre-release that uv takes by default, and pip's choice without ``--pre``, or "".

    pip treats a yanked release as a final one, and uv does not; ``yanked`` is the latest of those, or "".
    """

    name: str
    version: str
    of_pip: str
    yanked: str = ""

    def __str__(self) -> str:
        why = f" (the final release {self.yanked} is yanked)" if self.yanked else ""
        return f"{self.name}: uv selects the pre-release {self.version} by default, pip {self.of_pip or 'nothing'}{why}"


@dataclass(frozen=True, slots=True)
class Unhashed:
    """A line of a requirements file with hashes that pip refuses, and why: "has no hash"."""

    text: str
    reason: str
    place: Location


@dataclass(frozen=True, slots=True)
class StackFacts:
    """A set of requirements, resolved for a target.

    ``packages`` is empty when ``conflicts`` prevented that, or METADATA that was served with another hash than stated.
    ``unfinished`` says why a resolver might take newer releases than these, or is ""; ``refused`` are newer releases of
    requested packages, which it does not take, and ``pre_releases`` those for which pip takes others. Of a requirements
    file with hashes, which is judged unresolved, ``unhashed`` are lines that pip refuses, and ``unlisted`` the first
    demand on each package that the file lacks. ``lock`` is the lock file that names the packages, None when they were
    resolved.
    """

    requested: tuple[str, ...]
    target: Target
    packages: tuple[StackPackage, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    wrong_metadata: tuple[WrongHash, ...] = ()
    unfinished: str = ""
    refused: tuple[Refused, ...] = ()
    pre_releases: tuple[PreRelease, ...] = ()
    unhashed: tuple[Unhashed, ...] = ()
    unlisted: tuple[Demand, ...] = ()
    lock: LockFacts | None = None

    @property
    def built(self) -> tuple[StackPackage, ...]:
        """The packages that have no wheel for the target, and would be built there."""
        return tuple(package for package in self.packages if package.distribution == SDIST)

    def package(self, name: str) -> StackPackage | None:
        """The package with this normalised name, None when it is not part of the stack."""
        return next((package for package in self.packages if package.name == name), None)


def find_demands(
    requested: Sequence[Requirement], packages: Sequence[LinkedPackage], target: Target
) -> dict[str, tuple[Demand, ...]]:
    """Every requirement on every package on ``target``, by normalised name, extras followed.

    The order is that of the distance from ``requested``, exact pins first. A package without demands was requested by a
    file that cannot be read here (a requirements file that includes another).
    """
    by_name: dict[str, LinkedPackage] = {canonicalize_name(package.name): package for package in packages}
    demands: dict[str, list[Demand]] = {}
    extras: dict[str, set[str]] = {}
    front: deque[str] = deque()

    def note(by: str, requirements: Iterable[Requirement], requested_extras: Iterable[str] = ()) -> None:
        active = active_with_extras(requirements, target.markers(), tuple(requested_extras))
        for requirement in sorted(active, key=lambda r: not exact_pin(r)):
            name = canonicalize_name(requirement.name)
            new = name not in extras or not requirement.extras <= extras[name]
            extras.setdefault(name, set()).update(requirement.extras)
            demand = Demand(by, requirement)
            if demand not in demands.setdefault(name, []):
                demands[name].append(demand)
            if new and name in by_name:
                front.append(name)

    note("", requested)
    while front or (rest := next((name for name in by_name if name not in extras), "")):
        name = front.popleft() if front else rest
        extras.setdefault(name, set())
        note(by_name[name].label, by_name[name].requirements, extras[name])
    return {name: tuple(found) for name, found in demands.items()}


def chain_to(name: str, demands: Mapping[str, Sequence[Demand]], labels: Mapping[str, str]) -> tuple[Demand, ...]:
    """The demands that lead to ``name``, from the user's requirement; ``labels`` maps "vllm 0.19.0" to its name.

    At each step the demand nearest to the user is chosen, an exact pin first.
    """
    chain: list[Demand] = []
    seen: set[str] = set()
    while name and name not in seen and demands.get(name):
        seen.add(name)
        chain.append(next((d for d in demands[name] if not d.by), demands[name][0]))
        name = labels.get(chain[-1].by, "")
    return tuple(reversed(chain))


def unfulfilled(package: StackPackage) -> Iterator[Demand]:
    """The demands that the package's version does not fulfil."""
    for demand in package.demands:
        if package.version and not demand.requirement.specifier.contains(package.version, prereleases=True):
            yield demand


def gpu_builds(packages: Iterable[StackPackage]) -> list[StackPackage]:
    """The packages that are built for a GPU."""
    return [p for p in packages if p.known_accelerator and p.known_accelerator.accelerator in GPU]
