"""Read the metadata of variants, and make a subject of a machine's choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from packaging.version import Version

from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.variants.described_machine import describe_machines
from wheel_checks.facts.variants.reading import variants_on_index
from wheel_checks.facts.wheel.variant import VariantIndex
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.secrets import redact_text
from wheel_checks.formats.wheel.variant_metadata import VariantMetadata
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.model import Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.variant_files import VariantFiles
from wheel_checks.targets.selection import Choice
from wheel_checks.targets.target import other_system, parse_targets, this_machine
from wheel_checks.targets.variant_choice import MachineChoice, variant_wheels
from wheel_checks.targets.variant_machine import Machine
from wheelproof.wheels.model import Judgement

_MOST = 50  # labels in the facts of a subject


class ReleaseVariants:
    """Reads the variant metadata of a project, whose files are ``files``, and keeps it in ``read``."""

    def __init__(self, files: Sequence[IndexFile], reader: VariantFiles) -> None:
        self._files = files
        self._reader = reader
        self.read: list[VariantIndex] = []

    def __call__(self, version: Version) -> VariantMetadata | Unavailable:
        """The metadata of one release; Unavailable when one of the places that have variants of it shows none."""
        wheels = {wheel.index: wheel for wheel in variant_wheels(self._files, version)}
        found = [
            variants_on_index(parse_wheel_name(wheel.file_name), self._files, place, self._reader)
            for place, wheel in wheels.items()
        ]
        self.read += found
        return _merged([index.metadata for index in found], f"{version} at {' and '.join(wheels)}")


def _merged(documents: Iterable[VariantMetadata | Unavailable], of: str) -> VariantMetadata | Unavailable:
    """The merged documents of several places, unless they contradict each other (PEP 825)."""
    merged: VariantMetadata | None = None
    for document in documents:
        if isinstance(document, Unavailable):
            return document
        merged = merged or document
        same = replace(document, variants={}, faults=()) == replace(merged, variants={}, faults=())
        if not same or any(merged.variants.get(label, own) != own for label, own in document.variants.items()):
            return Unavailable(f"the metadata of the variants of {of} contradict each other")
        merged = replace(merged, variants={**merged.variants, **document.variants})
    return merged or Unavailable(f"there are no variants of {of}")


def described_machines(
    gpus: Sequence[Product], drivers: Sequence[str], cpu: str | None, platforms: Iterable[str]
) -> tuple[Machine, ...]:
    """The machines with these GPUs, drivers and CPU on these platforms. Raises UsageError for an unknown value."""
    platforms = tuple(platforms)
    if other := [text for text in platforms if other_system(text, this_machine().target)]:
        raise UsageError(
            f"--gpu, --driver and --cpu describe Linux hosts, but --platform names {other[0]}",
            hint=f"check {other[0]} in a run without them",
        )
    typed = [target.machine for target in parse_targets(platforms)] if platforms else []
    return describe_machines(gpus, drivers, cpu, tuple(dict.fromkeys(typed)))


def machine_subject(made: MachineChoice, judgement: Judgement) -> Subject:
    """The choice for one machine, judged by the rules for choices and for indexes."""
    rules = judgement.selection.rules("machine")
    about_files = judgement.selection.rules("requirement")
    results = (
        *run_rules(about_files, made.choice, judgement.expectations),
        *run_rules(rules, made, judgement.expectations),
    )
    name = f"{redact_text(str(made.choice.requirement))} on {made.machine.label}"
    return Subject(name, "machine", headline(made), _facts(made), results)


def headline(made: MachineChoice) -> str:
    """For people: "gets cu130 (demo-...-cu130.whl); pip and uv without variants take demo-...-any.whl"."""
    label = f"{made.label} ({_taken(made.choice)})" if made.label else _taken(made.choice)
    return f"gets {label}; installers without variant support take {_taken(made.plain)}"


def _taken(choice: Choice) -> str:
    file = choice.chosen or choice.sdist
    return file.file_name if file else "nothing"


def _facts(made: MachineChoice) -> dict[str, Any]:
    machine, choice = made.machine, made.choice
    return {
        "requirement": redact_text(str(choice.requirement)),
        "target": choice.target.label,
        "machine": machine.machine,
        "cpu": machine.cpu,
        "gpu": machine.gpu,
        "driver": machine.driver,
        "driver_cuda": machine.cuda,
        "version": str(choice.version or ""),
        "variant": made.label,
        "properties": list(map(str, made.variant.properties)) if made.variant else [],
        "file": _taken(choice),
        "without_variants": _taken(made.plain),
        "preferred": list(made.order.preferred[:_MOST]),
        "passed_over": dict(list(made.passed_over.items())[:_MOST]),
        "unknown_namespaces": list(made.order.unknown),
    }
