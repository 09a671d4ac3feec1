"""The resolution of a target, and its wheels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.errors import NotFoundError, WheelproofError
from wheel_checks.facts.provenance.indexes import ProjectOffers
from wheel_checks.facts.stack.facts import StackPackage, Unhashed
from wheel_checks.facts.stack.locked import LockedEntry, LockFacts
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.wheel.variant_label import is_variant
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.uv.resolver import Resolution
from wheel_checks.targets.selection import Choice, choose
from wheel_checks.targets.target import Target
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.judging import AT_ONCE
from wheelproof.wheels.model import PlannedWheel
from wheelproof.wheels.resolving import Settled

if TYPE_CHECKING:  # few packages have variants
    from wheel_checks.facts.wheel.variant import VariantIndex
    from wheel_checks.sources.variant_files import VariantFiles
    from wheel_checks.targets.variant_choice import MachineChoice
    from wheel_checks.targets.variant_machine import Machine


@dataclass(frozen=True, slots=True)
class Pick:
    """A locked package, the wheel of it that an installer takes (None: it has none), and the choice after it."""

    package: LockedPackage
    wheel: PlannedWheel | None
    choice: Choice


@dataclass(frozen=True, slots=True)
class ResolvedStack:
    """The stack of a target, or of one ``machine`` if packages have variants.

    ``left_out`` are packages that were not checked. ``unhashed`` are lines without a hash in requirements files with
    hashes, None without such files. ``lock`` and ``entries`` come from a lock, None if resolved. ``choices`` are the
    machine's among variants, by the metadata ``read`` with ``variants``.
    """

    target: Target
    settled: Settled
    picks: tuple[Pick, ...]
    indexes: KnownIndexes
    left_out: Mapping[str, WheelproofError] = field(default_factory=dict)
    unhashed: tuple[Unhashed, ...] | None = None
    lock: LockFacts | None = None
    entries: Mapping[str, LockedEntry] = field(default_factory=dict)
    machine: Machine | None = None
    choices: tuple[MachineChoice, ...] = ()
    read: tuple[VariantIndex, ...] = ()
    variants: VariantFiles | None = None


def pick_wheels(resolution: Resolution, target: Target, indexes: KnownIndexes) -> list[Pick]:
    """The wheel of each package: a lock lists all that fit, and uv also follows links that are refused here. Index
    pages are read up to eight at once.

    Raises SourceError when an index does not answer.
    """

    def pick(package: LockedPackage) -> Pick:
        requirement = Requirement(f"{package.name}=={package.version}" if package.version else package.name)
        if package.direct:
            linked = next(iter(package.files))
            requirement = Requirement(f"{package.name} @ {linked.url}")
        listed = () if package.direct else _listed(package.name, indexes)
        refused = frozenset() if package.direct else indexes.refused(package.name)
        files = [file for file in package.files if file.file_name not in refused]
        choice = choose(requirement, files, target, pre=True)
        return Pick(package, planned(choice.chosen, target, listed) if choice.chosen else None, choice)

    with ThreadPoolExecutor(AT_ONCE, "pick") as pool:
        return list(pool.map(pick, resolution.packages))


def _listed(name: str, indexes: KnownIndexes) -> tuple[IndexFile, ...]:
    """All files of the project; none when only a requirements file names the index that has it."""
    try:
        return indexes.files(name)
    except NotFoundError:
        return ()


def planned(chosen: IndexFile, target: Target, listed: tuple[IndexFile, ...]) -> PlannedWheel:
    """The wheel that was chosen, to be read from its ``listed`` places."""
    same_name = [file for file in listed if file.file_name == chosen.file_name]
    listing = next((file for file in same_name if file.url == chosen.url), next(iter(same_name), None))
    url = listing.url if listing else chosen.url
    location = path_of(url) if is_file_url(url) else url
    name = listing.file_name if listing else unquote(urlsplit(chosen.url).path.rpartition("/")[2])
    return PlannedWheel(name, location, listing, target, listed)


def for_machines(stack: ResolvedStack, machines: Sequence[Machine], variants: VariantFiles) -> list[ResolvedStack]:
    """The stack with the wheels of each machine of its target; as it is if no package has variants."""
    machines = [machine for machine in machines if machine.machine == stack.target.machine]
    concerned = [pick for pick in stack.picks if pick.wheel and any(is_variant(f.file_name) for f in pick.wheel.listed)]
    if not machines or not concerned:
        return [stack]
    from wheel_checks.targets.variant_choice import choose_for_machines
    from wheelproof.wheels.machine_choice import ReleaseVariants

    chosen: dict[str, tuple[MachineChoice, ...]] = {}
    readers: list[ReleaseVariants] = []
    for pick in concerned:
        listed = pick.wheel.listed if pick.wheel else ()
        requirement = Requirement(f"{pick.package.name}=={pick.package.version}")
        readers.append(ReleaseVariants(listed, variants))
        made = choose_for_machines(requirement, listed, stack.target, machines, readers[-1], pre=True)
        chosen[pick.package.name] = made
    read = tuple(index for reader in readers for index in reader.read)
    stack = replace(stack, variants=variants, read=read)
    found = []
    for number, machine in enumerate(machines):
        own = {name: made[number] for name, made in chosen.items()}
        picks = tuple(_of_variant(p, own[p.package.name]) if p.package.name in own else p for p in stack.picks)
        found.append(replace(stack, picks=picks, machine=machine, choices=tuple(own.values())))
    return found


def _of_variant(pick: Pick, made: MachineChoice) -> Pick:
    """The pick with the wheel that a machine gets of the package's variants; as it is when it gets none."""
    if pick.wheel is None or made.choice.chosen is None:
        return pick
    wheel = planned(made.choice.chosen, made.choice.target, pick.wheel.listed)
    return replace(pick, wheel=wheel, choice=made.choice)


def offers_of(package: StackPackage, wheel: PlannedWheel, indexes: KnownIndexes, *, pre: bool) -> ProjectOffers | None:
    """The offers of indexes for a package under all demands on it; None if it was not chosen from a listing."""
    if wheel.listing is None or not package.version:
        return None
    requirements = [demand.requirement for demand in package.demands] or [Requirement(package.name)]
    return indexes.offers(requirements, package.target, wheel.listing, Version(package.version), pre=pre)
