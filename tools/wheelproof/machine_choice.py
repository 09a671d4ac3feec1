"""Chooses among the variants of a release for described machines, and tells of each choice as a subject."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.catalogue import select_rules
from wheel_checks.facts.variant_reading import variants_on_index
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.variant_metadata import VariantMetadata
from wheel_checks.formats.wheel_name import parse_wheel_name
from wheel_checks.model import Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.credentials import redact_text
from wheel_checks.sources.variant_files import VariantFiles
from wheel_checks.targets.selection import Choice
from wheel_checks.targets.target import Target
from wheel_checks.targets.variant_choice import MachineChoice, choose_for_machine, variant_wheels
from wheel_checks.targets.variant_machine import Machine
from wheelproof.judging import Judgement

_MOST = 50  # labels in the facts of a subject


def choose_for_machines(
    requirement: Requirement,
    files: Sequence[IndexFile],
    target: Target,
    machines: Iterable[Machine],
    reader: VariantFiles,
    *,
    pre: bool = False,
) -> tuple[MachineChoice, ...]:
    """What each machine gets of the files that the indexes list. Metadata that cannot be read is Unavailable in it."""

    def read(version: Version) -> VariantMetadata | Unavailable:
        wheel = next(iter(variant_wheels(files, version)), None)
        if wheel is None:
            return Unavailable(f"{requirement.name} {version} has no variants")
        return variants_on_index(parse_wheel_name(wheel.file_name), files, wheel.index, reader).metadata

    own = [machine for machine in machines if machine.machine == target.machine]
    return tuple(choose_for_machine(requirement, files, target, machine, read, pre=pre) for machine in own)


def machine_subject(made: MachineChoice, judgement: Judgement) -> Subject:
    """The choice for one machine, judged by the rules about it and about what an index offers."""
    rules = select_rules("machine", judgement.select, judgement.ignore)
    about_files = select_rules("requirement", judgement.select, judgement.ignore)
    results = (
        *run_rules(about_files, made.choice, judgement.expectations),
        *run_rules(rules, made, judgement.expectations),
    )
    name = f"{redact_text(str(made.choice.requirement))} on {made.machine.label}"
    return Subject(name, "machine", headline(made), _facts(made), results)


def headline(made: MachineChoice) -> str:
    """For people: "gets cu130 (demo-...-cu130.whl); pip and uv without variants take demo-...-any.whl"."""
    label = f"{made.label} ({_taken(made.choice)})" if made.label else _taken(made.choice)
    return f"gets {label}; installers without variants take {_taken(made.plain)}"


def _taken(choice: Choice) -> str:
    file = choice.chosen or choice.sdist
    return file.file_name if file else "nothing"


def _facts(made: MachineChoice) -> dict[str, Any]:
    machine, choice = made.machine, made.choice
    facts: dict[str, Any] = {
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
    return facts
