"""Find the wheels of targets: files, folders, URLs, and requirements chosen from an index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag

from wheel_checks.errors import FormatError, NotFoundError, UsageError
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.variant_label import is_variant
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.phrases import plural
from wheel_checks.targets.of_wheel import target_of_tags, with_platform_of_tags, with_python_of_tags
from wheel_checks.targets.selection import Choice, choose, release_wheels
from wheel_checks.targets.target import LINUX, Target, parse_targets, this_machine
from wheelproof.wheels.model import PlannedWheel

if TYPE_CHECKING:  # few releases have variants
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.facts.wheel.variant import VariantIndex
    from wheel_checks.sources.variant_files import VariantFiles
    from wheel_checks.targets.variant_choice import MachineChoice
    from wheel_checks.targets.variant_machine import Machine
    from wheelproof.wheels.machine_choice import ReleaseVariants

_URL_SCHEMES = ("http://", "https://", "file://")

Listing = Callable[[str], Sequence[IndexFile]]
"""The files that the configured indexes list for a project; raises SourceError."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The targets to judge for. ``platforms`` and ``pythons`` are as typed; empty means this host, this Python.

    ``machines`` are described: their platforms count if none was typed, and they choose among variants. A file is
    compared with ``platforms`` and ``pythons`` unless these are ``assumed``: implied by GPUs, or a project's defaults.
    """

    platforms: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    all_files: bool = False
    pre: bool = False
    machines: tuple[Machine, ...] = ()
    assumed_platforms: bool = False
    assumed_pythons: bool = False

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every combination of platform and Python. Raises UsageError for a name that is unknown."""
        described = tuple(dict.fromkeys(machine.machine for machine in self.machines))
        return parse_targets(self.platforms or described, self.pythons, systems=True)

    def targets_of_file(self, file_name: str) -> tuple[Target | None, ...]:
        """The named targets of a file; its own Python or platforms where none was named, None if neither was.

        Raises UsageError for a name that is unknown.
        """
        platforms = () if self.assumed_platforms else self.platforms
        pythons = () if self.assumed_pythons else self.pythons
        tags = _tags_of(file_name)
        if not (platforms or pythons) or tags is None:
            return (None,)
        targets: Iterable[Target | None] = parse_targets(platforms, pythons, systems=True)
        if not pythons:
            targets = (target and with_python_of_tags(target, tags) for target in targets)
        elif not platforms:
            targets = (target and with_platform_of_tags(target, tags) for target in targets)
        return tuple(dict.fromkeys(targets))

    @property
    def note(self) -> str:
        """The assumptions about this host, "" without any, or if they do not matter."""
        return "" if (self.platforms or self.machines) and self.pythons else this_machine().note


@dataclass(frozen=True, slots=True)
class Plan:
    """The wheels to read, each once per target, and the choices that an installer would make for requirements.

    ``machine_choices`` are for described machines, if a release has variants, and ``variant_indexes`` their metadata.
    """

    wheels: tuple[PlannedWheel, ...] = ()
    choices: tuple[Choice, ...] = field(default=())
    machine_choices: tuple[MachineChoice, ...] = ()
    variant_indexes: tuple[VariantIndex, ...] = ()


def plan(text: str, wanted: Wanted, listing: Listing, variants: VariantFiles | None = None) -> Plan:
    """The wheels of one TARGET of the command line. ``variants`` reads variant metadata.

    Raises UsageError when it means nothing, and SourceError when a file or the index cannot be read.
    """
    if text.lower().startswith(_URL_SCHEMES):
        return Plan(tuple(_of_link(text, wanted)))
    path, exists = Path(text), os.path.exists(text)
    if exists and path.is_dir():
        return Plan(tuple(_of_folder(path, wanted)))
    looks_like_a_path = text.endswith(".whl") or "/" in text.partition(";")[0]
    if exists or (looks_like_a_path and "@" not in text):
        return Plan(tuple(_of_file(path, wanted)))
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(
            f"{text!r} is not a file, folder, URL or requirement: {str(error).splitlines()[0]}",
            expected="for example dist/*.whl, torch==2.11.0 or 'torch>=2.9,<2.12'",
        ) from None
    return _of_requirement(requirement, wanted, listing, variants)


def _of_file(path: Path, wanted: Wanted) -> Iterable[PlannedWheel]:
    if not path.exists():
        raise NotFoundError(f"there is no file {path}", hint="a requirement on an index has no slash or .whl")
    return [PlannedWheel(path.name, path, target=target) for target in wanted.targets_of_file(path.name)]


def _of_folder(folder: Path, wanted: Wanted) -> Iterable[PlannedWheel]:
    """Each wheel for the named targets that it is built for, and all wheels for a target that has none."""
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise NotFoundError(f"the folder {folder} contains no wheel", expected="files ending in .whl")
    targets = {path: wanted.targets_of_file(path.name) for path in wheels}
    fitting = {path: [one for one in found if _is_built_for(path.name, one)] for path, found in targets.items()}
    served = {target for found in fitting.values() for target in found}
    for path in wheels:
        lacking = [target for target in targets[path] if target not in served]
        for target in (*fitting[path], *lacking) or (None,):
            yield PlannedWheel(path.name, path, target=target)


def _is_built_for(file_name: str, target: Target | None) -> bool:
    tags = _tags_of(file_name)
    return target is None or tags is None or not tags.isdisjoint(target.supported_tags())


def _tags_of(file_name: str) -> frozenset[Tag] | None:
    """The tags of a wheel; None if its name does not parse, which is a finding of another rule."""
    try:
        return parse_wheel_name(file_name).tags
    except FormatError:
        return None


def _of_link(url: str, wanted: Wanted) -> Iterable[PlannedWheel]:
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    return [PlannedWheel(name, url, target=target) for target in wanted.targets_of_file(name)]


def _of_requirement(requirement: Requirement, wanted: Wanted, listing: Listing, variants: VariantFiles | None) -> Plan:
    files = () if requirement.url else tuple(listing(requirement.name))
    if wanted.all_files:
        return _of_release(requirement, wanted, files)
    plain: list[Choice] = []
    for_machines: list[MachineChoice] = []
    reader = _release_variants(files, variants) if wanted.machines and variants else None
    for target in wanted.targets:
        made = _for_machines(requirement, files, target, wanted, reader) if reader else ()
        for_machines += made
        if not made:
            plain.append(choose(requirement, files, target, pre=wanted.pre))
    planned: dict[tuple[str, str, str], PlannedWheel] = {}
    for choice in (*plain, *(made.choice for made in for_machines)):
        if choice.chosen is not None:
            # One file for several targets (py3-none-any) is judged for each machine: markers may differ.
            key = (choice.chosen.file_name, choice.target.system, choice.target.machine)
            wheel = _of_listed(choice.chosen, files, choice.target)
            planned.setdefault(key, replace(wheel, extras=frozenset(requirement.extras)))
    for key, gpus in _gpus_by_wheel(for_machines).items():
        planned[key] = replace(planned[key], gpus=gpus)
    indexes = tuple(reader.read) if reader else ()
    return Plan(tuple(planned.values()), tuple(plain), tuple(for_machines), indexes)


def _release_variants(files: Sequence[IndexFile], variants: VariantFiles) -> ReleaseVariants | None:
    """The reader of variant metadata; None if no file is a variant."""
    if not any(is_variant(file.file_name) for file in files):
        return None
    from wheelproof.wheels.machine_choice import ReleaseVariants

    return ReleaseVariants(files, variants)


def _for_machines(
    requirement: Requirement, files: Sequence[IndexFile], target: Target, wanted: Wanted, read: ReleaseVariants
) -> tuple[MachineChoice, ...]:
    """The choices of the described machines of a target; () without machines."""
    from wheel_checks.targets.variant_choice import choose_for_machines

    return choose_for_machines(requirement, files, target, wanted.machines, read, pre=wanted.pre)


def _gpus_by_wheel(choices: Iterable[MachineChoice]) -> dict[tuple[str, str, str], tuple[Product, ...]]:
    """The GPUs whose machines take each wheel: it need not run on the others."""
    from wheel_checks.facts.gpu.targets import parse_gpu

    found: dict[tuple[str, str, str], tuple[Product, ...]] = {}
    for made in choices:
        if made.choice.chosen is not None:
            key = (made.choice.chosen.file_name, made.choice.target.system, made.choice.target.machine)
            gpu, machine = made.machine.gpu, made.machine.machine
            own = (replace(parse_gpu(gpu), machine=machine),) if gpu else ()
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), *own)))
    return found


def _of_release(requirement: Requirement, wanted: Wanted, files: tuple[IndexFile, ...]) -> Plan:
    wheels = release_wheels(requirement, files, pre=wanted.pre)
    chosen = [file for file in wheels if _serves(file, wanted)]
    if not wheels:
        others = f" among the {plural(len(files), 'file')} of the project" if files else ""
        raise NotFoundError(
            f"the index lists no wheel of {requirement}{others}",
            hint="`wheelproof stack` shows what would be built from a source archive",
        )
    if not chosen:
        raise NotFoundError(
            f"the index lists {plural(len(wheels), 'wheel')} of {requirement}, but for other platforms or Pythons",
            hint="omit --platform and --python to see all",
        )
    return Plan(tuple(_of_listed(file, files, None) for file in chosen))


def _serves(file: IndexFile, wanted: Wanted) -> bool:
    """Whether a file is for one of the platforms and Pythons that were requested; all are when none was."""
    if not wanted.platforms and not wanted.pythons:
        return True
    tags = parse_wheel_name(file.file_name).tags
    if wanted.pythons:
        return any(not tags.isdisjoint(target.supported_tags()) for target in wanted.targets)
    of_file = target_of_tags(tags)
    machines = {target.machine for target in wanted.targets if target.system == LINUX}
    others = {tag.platform for t in wanted.targets if t.system != LINUX for tag in t.supported_tags()}
    if of_file:
        return of_file.machine in machines
    return any(tag.platform == "any" or tag.platform in others for tag in tags)


def _of_listed(file: IndexFile, listed: tuple[IndexFile, ...], target: Target | None) -> PlannedWheel:
    return PlannedWheel(file.file_name, file.url, file, target, listed)
