"""What differs between two wheels. Pure: two :class:`WheelFacts` in, a :class:`Difference` out.

Members are compared by their role (see ``member_roles``), and native code never by its bytes: two builds of the same
source differ in every library. Requirements are those that are active on each side's own target.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.accelerator.signals import active_requirements
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.difference.libraries import (
    Change,
    GpuCodeDifference,
    LinkDifference,
    compare_gpu_code,
    compare_links,
)
from wheel_checks.facts.wheel.depth import NO_STARTUP
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.member_roles import Kind, members_by_role
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.wheel_name import WheelName
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.targets.of_wheel import markers_of_tags, target_of_tags

T = TypeVar("T")

ByRole = Mapping[Kind, Mapping[str, Member]]


@dataclass(frozen=True, slots=True)
class Compared(Generic[T]):
    """What differs of one kind of thing, and how many of it are the same on both sides."""

    differences: tuple[T, ...]
    same: int


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two wheels. Sizes in bytes; ``machine`` is that of the target, or else the platform tag's."""

    file_name: str
    location: str
    name: WheelName | Unavailable
    machine: str
    size: int
    unpacked_size: int | Unavailable
    accelerator: AcceleratorFacts | Unavailable

    @property
    def project(self) -> str:
        """The normalised name of the project, as far as the file name shows it."""
        return canonicalize_name(self.file_name.partition("-")[0])

    @property
    def version(self) -> str:
        """The version in the file name."""
        return "" if isinstance(self.name, Unavailable) else self.name.version

    @property
    def build(self) -> str:
        """The build tag, "" if none."""
        return "" if isinstance(self.name, Unavailable) else self.name.build

    @property
    def variant(self) -> str:
        """The variant label, "" for a wheel that is not a variant."""
        return "" if isinstance(self.name, Unavailable) else self.name.variant

    @property
    def python(self) -> str:
        """The interpreter tags with their ABI, where that is another: ``cp312``, ``cp38-abi3``, ``cp313-cp313t``."""
        tags = set() if isinstance(self.name, Unavailable) else self.name.tags
        names = {
            tag.interpreter if tag.abi in (tag.interpreter, "none") else f"{tag.interpreter}-{tag.abi}" for tag in tags
        }
        return ".".join(sorted(names))


@dataclass(frozen=True, slots=True)
class RequirementDifference:
    """A requirement that differs between the sides: its extras and versions, "" where it is not active.

    ``by_marker`` is True when the two METADATA say the same, and only markers make the difference.
    """

    name: str
    a: str
    b: str
    by_marker: bool


@dataclass(frozen=True, slots=True)
class MemberDifference:
    """The roles of one kind of file that only one side has, or whose content differs; ``same`` counts the others.

    The content of native files is not compared: ``changed`` is empty for these.
    """

    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    same: int = 0

    @property
    def share(self) -> float:
        """The share of all these files that only one side has, 0 to 1."""
        lone = len(self.only_a) + len(self.only_b)
        return lone / max(1, lone + len(self.changed) + self.same)


@dataclass(frozen=True, slots=True)
class SizeDifference:
    """The sizes of a native file in bytes, inflated."""

    name: str
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between wheel ``a`` and wheel ``b``. What could not be compared is Unavailable, with the reason.

    ``fields`` are of METADATA, ``values`` of version.py, ``properties`` of variants (the values of each feature; none
    for other wheels). ``sizes``, ``links`` and ``gpu_code`` are of the native files that both have, by their
    role; ``links_unread`` are those of which one side could not be read. ``startup`` is what runs when Python starts.
    """

    a: Side
    b: Side
    fields: Compared[Change] | Unavailable
    values: Compared[Change]
    properties: Compared[Change] | Unavailable
    requirements: Compared[RequirementDifference] | Unavailable
    members: Mapping[Kind, MemberDifference] | Unavailable
    sizes: Compared[SizeDifference] | Unavailable
    links: Compared[LinkDifference] | Unavailable
    gpu_code: Compared[GpuCodeDifference] | Unavailable
    links_unread: tuple[str, ...] = ()
    gpu_code_unread: tuple[str, ...] = ()
    startup: Compared[Change] | Unavailable = NO_STARTUP


def compare_wheels(a: WheelFacts, b: WheelFacts) -> Difference:
    """What differs between two wheels, each as its own target sees it."""
    members = _by_roles(a, b)
    links, links_unread = _links(a, b, members)
    gpu_code, gpu_code_unread = _gpu_code(a, b, members)
    return Difference(
        side_of(a),
        side_of(b),
        _fields(a, b),
        _values(a, b),
        _variant_properties(a, b),
        _requirements(a, b),
        members if isinstance(members, Unavailable) else {kind: _members(kind, *members) for kind in Kind},
        members if isinstance(members, Unavailable) else _sizes(*members),
        links,
        gpu_code,
        links_unread,
        gpu_code_unread,
        _startup(a, b),
    )


def side_of(wheel: WheelFacts) -> Side:
    """The wheel as one side of a comparison."""
    unpacked: int | Unavailable
    if isinstance(wheel.archive, Archive):
        unpacked = sum(member.size for member in wheel.archive.members)
    else:
        unpacked = wheel.archive
    return Side(wheel.file_name, wheel.location, wheel.name, _machine(wheel), wheel.size, unpacked, wheel.accelerator)


def name_sides(a: Side, b: Side) -> tuple[str, str]:
    """Two short names for the sides: machines, Pythons, versions, variants or projects, or else A and B."""
    for one, other in (
        (a.machine, b.machine),
        (a.python, b.python),
        (f"{a.version} {a.build}".rstrip(), f"{b.version} {b.build}".rstrip()),
        (a.variant, b.variant),
        (a.project, b.project),
    ):
        if one and other and one != other:
            return one, other
    return "A", "B"


def _machine(wheel: WheelFacts) -> str:
    if wheel.target is not None:
        return wheel.target.machine
    tags = frozenset() if isinstance(wheel.name, Unavailable) else wheel.name.tags
    target = target_of_tags(tags)
    return target.machine if target else ".".join(sorted({tag.platform for tag in tags}))


def _by_roles(a: WheelFacts, b: WheelFacts) -> tuple[ByRole, ByRole] | Unavailable:
    if isinstance(a.archive, Unavailable):
        return a.archive
    if isinstance(b.archive, Unavailable):
        return b.archive
    if isinstance(a.elfs, Unavailable) or isinstance(b.elfs, Unavailable):
        return members_by_role(a.archive.members, None), members_by_role(b.archive.members, None)
    elfs_a, elfs_b = ({elf.member.name for elf in elfs} for elfs in (a.elfs, b.elfs))
    return members_by_role(a.archive.members, elfs_a), members_by_role(b.archive.members, elfs_b)


def _members(kind: Kind, a: ByRole, b: ByRole) -> MemberDifference:
    roles_a, roles_b = a[kind], b[kind]
    both = roles_a.keys() & roles_b.keys()
    compared = () if kind is Kind.NATIVE else both
    changed = tuple(sorted(role for role in compared if _content(roles_a[role]) != _content(roles_b[role])))
    only_a, only_b = roles_a.keys() - both, roles_b.keys() - both
    return MemberDifference(tuple(sorted(only_a)), tuple(sorted(only_b)), changed, len(both) - len(changed))


def _content(member: Member) -> tuple[int, int]:
    """Size and checksum, which the central directory shows without reading the member."""
    return member.size, member.crc32


def _sizes(a: ByRole, b: ByRole) -> Compared[SizeDifference]:
    native_a, native_b = a[Kind.NATIVE], b[Kind.NATIVE]
    both = sorted(native_a.keys() & native_b.keys())
    sizes = [SizeDifference(role, native_a[role].size, native_b[role].size) for role in both]
    return _compared([item for item in sizes if item.a != item.b], len(both))


def _compared(differences: Iterable[T], total: int) -> Compared[T]:
    found = tuple(differences)
    return Compared(found, total - len(found))


def _links(
    a: WheelFacts, b: WheelFacts, members: tuple[ByRole, ByRole] | Unavailable
) -> tuple[Compared[LinkDifference] | Unavailable, tuple[str, ...]]:
    if isinstance(a.elfs, Unavailable):
        return a.elfs, ()
    if isinstance(b.elfs, Unavailable):
        return b.elfs, ()
    if isinstance(members, Unavailable):
        return members, ()
    elfs_a, elfs_b = ({elf.member.name: elf for elf in elfs} for elfs in (a.elfs, b.elfs))
    native_a, native_b = (side[Kind.NATIVE] for side in members)
    found: list[LinkDifference] = []
    unread: list[str] = []
    for role in sorted(native_a.keys() & native_b.keys()):
        elf_a, elf_b = elfs_a.get(native_a[role].name), elfs_b.get(native_b[role].name)
        link = compare_links(role, elf_a, elf_b) if elf_a and elf_b else Unavailable("one of them is not an ELF file")
        if isinstance(link, Unavailable):
            unread.append(role)
        else:
            found.append(link)
    return _compared([link for link in found if link.differs], len(found)), tuple(unread)


def _gpu_code(
    a: WheelFacts, b: WheelFacts, members: tuple[ByRole, ByRole] | Unavailable
) -> tuple[Compared[GpuCodeDifference] | Unavailable, tuple[str, ...]]:
    if isinstance(a.gpu_code, Unavailable):
        return a.gpu_code, ()
    if isinstance(b.gpu_code, Unavailable):
        return b.gpu_code, ()
    if isinstance(members, Unavailable):
        return members, ()
    names_a, names_b = (
        {role: member.name for kind in (Kind.NATIVE, Kind.DATA) for role, member in side[kind].items()}
        for side in members
    )
    found, unread = compare_gpu_code(a.gpu_code, b.gpu_code, names_a, names_b)
    return _compared([code for code in found if code.a != code.b], len(found)), tuple(unread)


def _startup(a: WheelFacts, b: WheelFacts) -> Compared[Change] | Unavailable:
    """What runs when Python starts, line by line."""
    if isinstance(a.startup, Unavailable):
        return a.startup
    if isinstance(b.startup, Unavailable):
        return b.startup
    lines_a, lines_b = (dict.fromkeys(side.runs, "runs") for side in (a.startup, b.startup))
    return _differing(lines_a, lines_b)


def _fields(a: WheelFacts, b: WheelFacts) -> Compared[Change] | Unavailable:
    if isinstance(a.metadata, Unavailable):
        return a.metadata
    if isinstance(b.metadata, Unavailable):
        return b.metadata
    return _differing(_field_values(a.metadata), _field_values(b.metadata))


def _field_values(metadata: CoreMetadata) -> dict[str, str]:
    return {
        "Name": metadata.name,
        "Version": metadata.version,
        "Metadata-Version": metadata.metadata_version,
        "Requires-Python": metadata.requires_python,
        "License": metadata.license,
        "Provides-Extra": ", ".join(sorted(metadata.provides_extra)),
    }


def _values(a: WheelFacts, b: WheelFacts) -> Compared[Change]:
    one, other = (
        {f"{name} in {file.member}": str(value) for file in wheel.version_files for name, value in file.values.items()}
        for wheel in (a, b)
    )
    return _differing(one, other)


def _variant_properties(a: WheelFacts, b: WheelFacts) -> Compared[Change] | Unavailable:
    features: list[dict[str, str]] = []
    for wheel in (a, b):
        variant = wheel.variant.variant if wheel.variant else None
        if isinstance(variant, Unavailable):
            return variant
        values: dict[str, list[str]] = {}
        for each in variant.properties if variant else ():
            values.setdefault(each.key, []).append(each.value)
        features.append({key: ", ".join(listed) for key, listed in values.items()})
    return _differing(*features)


def _differing(a: Mapping[str, str], b: Mapping[str, str]) -> Compared[Change]:
    changes = [Change(name, a.get(name, ""), b.get(name, "")) for name in dict.fromkeys((*a, *b))]
    return _compared([change for change in changes if change.a != change.b], len(changes))


def _requirements(a: WheelFacts, b: WheelFacts) -> Compared[RequirementDifference] | Unavailable:
    if isinstance(a.metadata, Unavailable):
        return a.metadata
    if isinstance(b.metadata, Unavailable):
        return b.metadata
    active_a, active_b = _active(a, a.metadata), _active(b, b.metadata)
    known_a, known_b = _by_name(a.metadata.requirements), _by_name(b.metadata.requirements)
    names = sorted(active_a.keys() | active_b.keys())
    found = []
    for name in names:
        here, there = active_a.get(name, frozenset()), active_b.get(name, frozenset())
        if here != there:
            # What is active on one side alone is in the other METADATA too, under a marker that does not hold.
            by_marker = here <= known_b.get(name, frozenset()) and there <= known_a.get(name, frozenset())
            found.append(RequirementDifference(name, _joined(here), _joined(there), by_marker))
    return _compared(found, len(names))


def _active(wheel: WheelFacts, metadata: CoreMetadata) -> dict[str, frozenset[str]]:
    tags = frozenset() if isinstance(wheel.name, Unavailable) else wheel.name.tags
    environment = wheel.target.markers() if wheel.target else markers_of_tags(tags)
    return _by_name(active_requirements(metadata.requirements, environment))


def _by_name(requirements: Iterable[Requirement]) -> dict[str, frozenset[str]]:
    """What is asked of each project, by its normalised name, without the markers."""
    found: dict[str, set[str]] = {}
    for requirement in requirements:
        found.setdefault(canonicalize_name(requirement.name), set()).add(_asked(requirement))
    return {name: frozenset(asked) for name, asked in found.items()}


def _asked(requirement: Requirement) -> str:
    """Extras and versions: ``[cublas,cudart]==13.0.2``, ``any version``."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return extras + (f"@ {requirement.url}" if requirement.url else str(requirement.specifier)) or "any version"


def _joined(asked: Iterable[str]) -> str:
    return " and ".join(sorted(asked))
