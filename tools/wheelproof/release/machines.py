"""What the machines that a release claims to serve get of its variants."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from packaging.requirements import Requirement

from wheel_checks.facts.release import ReleaseFacts
from wheel_checks.facts.variants.described_machine import describe_machines
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.wheel.variant_metadata import VariantMetadata
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import parse_targets
from wheel_checks.targets.variant_choice import MachineChoice, choose_for_machines
from wheelproof.release.plan import Candidate
from wheelproof.wheels.model import JudgedWheel


def machine_choices(
    release: ReleaseFacts, candidates: Iterable[Candidate], wheels: Mapping[str, JudgedWheel]
) -> tuple[tuple[MachineChoice, str], ...]:
    """What each machine of the expectation gets on each Python of the matrix, and the label that it must get."""
    expected = release.expectation
    if not expected.machines:
        return ()
    metadata = release_metadata(wheels.values())
    files = [
        candidate.listings[0] if candidate.listings else IndexFile(candidate.file_name, candidate.url or "file:///")
        for candidate in candidates
    ]
    requirement = Requirement(f"{expected.project}=={release.version}")
    pythons = tuple(dict.fromkeys(str(python) for platform in expected.platforms for python in platform.pythons))
    described = [(describe_machines(wanted.gpus, wanted.drivers, wanted.cpu), wanted) for wanted in expected.machines]
    return tuple(
        (made, wanted.variant)
        for machines, wanted in described
        for target in parse_targets(tuple(dict.fromkeys(each.machine for each in machines)), pythons)
        for made in choose_for_machines(requirement, files, target, machines, lambda _: metadata)
    )


def release_metadata(wheels: Iterable[JudgedWheel]) -> VariantMetadata | Unavailable:
    """The metadata of the release's variants: what an index or folder says, else what the wheels say of themselves.

    Wheels say it only before there is an index: an index without its document gives installers no variant.
    """
    own: list[VariantMetadata] = []
    for wheel in wheels:
        facts = wheel.facts.variant if wheel.facts else None
        if facts is None:
            continue
        if not isinstance(facts.index, Unavailable):
            return facts.index.metadata
        own += [] if isinstance(facts.metadata, Unavailable) else [facts.metadata]
    return _merged(own) if own else Unavailable("no wheel of the release is a variant")


def _merged(documents: Sequence[VariantMetadata]) -> VariantMetadata:
    """One document of all: of the orders of namespaces the longest, of which the others are beginnings (PEP 825)."""
    longest = max(documents, key=lambda document: len(document.priorities.namespaces))
    return replace(
        longest,
        variants={label: variant for document in documents for label, variant in document.variants.items()},
        providers={name: provider for document in documents for name, provider in document.providers.items()},
    )
