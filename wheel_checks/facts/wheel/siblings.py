"""What the same release offers for other machines: shows a CPU wheel where a CUDA wheel was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from wheel_checks.errors import FormatError
from wheel_checks.facts.accelerator.signals import requirement_signal
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.wheel.facts import Sibling, WheelFacts
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.wheel.wheel_name import WheelName, parse_wheel_name
from wheel_checks.model import Unavailable
from wheel_checks.targets.of_wheel import target_of_tags
from wheel_checks.targets.target import Target


def find_siblings(
    wheel: WheelFacts, listed: Iterable[IndexFile], read: Mapping[str, WheelFacts]
) -> tuple[Sibling, ...]:
    """The wheels of the same release, Python and ABI for other machines that ``listed`` names.

    ``read`` holds the wheels that this run has read, by file name; what is known of them is exact. Of the others the
    accelerator is declared: the wheels of one release carry the same METADATA text, so this wheel's requirements are
    evaluated for the other machine.
    """
    name = wheel.name
    if isinstance(name, Unavailable) or wheel.target is None:
        return ()
    found = []
    release = f"{name.distribution}-{name.version}-"  # a page lists a thousand files, a release has thirty
    for file in (file for file in listed if file.file_name.startswith(release)):
        other = _parsed(file.file_name)
        target = target_of_tags(other.tags) if other else None
        if other is None or target is None or target.machine == wheel.target.machine or not _same_build(name, other):
            continue
        found.append(_sibling(wheel, file.file_name, target, read.get(file.file_name)))
    return tuple(found)


def _parsed(file_name: str) -> WheelName | None:
    try:
        return parse_wheel_name(file_name)
    except FormatError:
        return None


def _same_build(a: WheelName, b: WheelName) -> bool:
    """Same version and variant, and the same interpreters and ABIs; the platform alone may differ."""
    interpreters_a, interpreters_b = ({(t.interpreter, t.abi) for t in name.tags} for name in (a, b))
    same_release = (a.parsed_version, a.variant) == (b.parsed_version, b.variant)
    return same_release and interpreters_a == interpreters_b


def _sibling(wheel: WheelFacts, file_name: str, target: Target, read: WheelFacts | None) -> Sibling:
    if read is not None and isinstance(read.accelerator, AcceleratorFacts):
        known = read.accelerator
        return Sibling(file_name, target.machine, known.accelerator, known.version, "exact", "read in this run")
    requirements = () if isinstance(wheel.metadata, Unavailable) else wheel.metadata.requirements
    here = replace(target, machine=wheel.target.machine if wheel.target else target.machine)
    signal = requirement_signal(requirements, target.markers(), [here.markers()])
    accelerator = signal.accelerators[0] if signal.accelerators else ""
    return Sibling(file_name, target.machine, accelerator, signal.version, "declared", signal.detail)
