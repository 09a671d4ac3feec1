"""The same release's wheels for other machines: shows a CPU wheel where a CUDA wheel was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from wheel_checks.facts.accelerator.shown import AcceleratorContent
from wheel_checks.facts.accelerator.signals import requirement_signal
from wheel_checks.facts.accelerator.verdict import DECLARED, EXACT, NONE, SAMPLED, AcceleratorFacts
from wheel_checks.facts.wheel.facts import Sibling, WheelFacts
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.wheel_name import wheel_name_or_none
from wheel_checks.model import Unavailable
from wheel_checks.targets.of_wheel import target_of_tags
from wheel_checks.targets.target import Target

_NEW_GLIBC = (2, 60)  # newer than any
NO_CONTENT: Mapping[str, AcceleratorContent | Unavailable] = {}


def find_siblings(
    wheel: WheelFacts,
    listed: Iterable[IndexFile],
    read: Mapping[str, WheelFacts],
    contents: Mapping[str, AcceleratorContent | Unavailable] = NO_CONTENT,
) -> tuple[Sibling, ...]:
    """The wheels of the same release for other machines that ``listed`` names and the same Python can install.

    ``read`` are the wheels that this run has read, by file name, ``contents`` the native code read of others. The
    accelerator of a wheel in neither is declared: the wheels of one release have the same METADATA text, so this
    wheel's requirements are evaluated for the other machine.
    """
    return tuple(
        _sibling(wheel, file.file_name, target, read.get(file.file_name), contents.get(file.file_name))
        for file, target in sibling_files(wheel, listed)
    )


def deciding_siblings(wheel: WheelFacts, listed: Iterable[IndexFile]) -> list[IndexFile]:
    """The sibling that an installer chooses, for each other machine."""
    best: dict[str, tuple[tuple[int, object], IndexFile]] = {}
    for file, target in sibling_files(wheel, listed):
        other = wheel_name_or_none(file.file_name)
        tags = _installable(wheel, target).supported_tags()
        rank = (-min(tags.get(tag, len(tags)) for tag in other.tags), other.build_number) if other else (0, ())
        if target.machine not in best or rank > best[target.machine][0]:
            best[target.machine] = rank, file
    return [file for _, file in best.values()]


def sibling_files(wheel: WheelFacts, listed: Iterable[IndexFile]) -> Iterator[tuple[IndexFile, Target]]:
    """The files of the siblings, each with the target that its tags name."""
    name = wheel.name
    if isinstance(name, Unavailable) or wheel.target is None:
        return
    release = f"{name.distribution}-{name.version}-"  # a page lists a thousand files, a release has thirty
    for file in (file for file in listed if file.file_name.startswith(release)):
        other = wheel_name_or_none(file.file_name)
        target = target_of_tags(other.tags) if other else None
        if other is None or target is None or target.machine == wheel.target.machine:
            continue
        same = (name.parsed_version, name.variant) == (other.parsed_version, other.variant)
        if same:
            supported = _installable(wheel, target).supported_tags()  # a thousand; the other wheel has few
            if any(tag in supported for tag in other.tags):
                yield file, target


def _installable(wheel: WheelFacts, target: Target) -> Target:
    """A machine like ``target`` with the wheel's Python and a new glibc, to test installability."""
    own = wheel.target or target
    return replace(own, machine=target.machine, glibc=max(own.glibc, _NEW_GLIBC))


def _sibling(
    wheel: WheelFacts,
    file_name: str,
    target: Target,
    read: WheelFacts | None,
    content: AcceleratorContent | Unavailable | None,
) -> Sibling:
    if read is not None and isinstance(read.accelerator, AcceleratorFacts) and read.accelerator.certainty != DECLARED:
        known = read.accelerator
        return Sibling(file_name, target.machine, known.accelerator, known.version, "exact", "read in this run")
    if isinstance(content, AcceleratorContent) and content.shown:
        found = content.accelerators[0]
        version = next(iter(content.versions(found)), "")
        return Sibling(file_name, target.machine, found, version, SAMPLED, str(content.shown[0]))
    if isinstance(content, AcceleratorContent) and content.complete and content.native:
        return Sibling(file_name, target.machine, NONE, "", EXACT, "its native members")
    requirements = () if isinstance(wheel.metadata, Unavailable) else wheel.metadata.requirements
    here = replace(target, machine=wheel.target.machine if wheel.target else target.machine)
    signal = requirement_signal(requirements, target.markers(), [here.markers()])
    if isinstance(content, AcceleratorContent) and content.complete and not signal.accelerators:
        return Sibling(file_name, target.machine, NONE, "", EXACT, "it has no native members")
    accelerator = signal.accelerators[0] if signal.accelerators else ""
    return Sibling(file_name, target.machine, accelerator, signal.version, "declared", signal.detail)
