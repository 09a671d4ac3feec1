"""Is a variant wheel what the drafts say, and does its index say the same? See ``wheel_checks/data/variants.toml``."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.variant import VariantFacts, VariantIndex
from wheel_checks.formats.wheel.variant_faults import name_pattern, shown
from wheel_checks.formats.wheel.variant_label import VARIANT_MEMBER
from wheel_checks.formats.wheel.variant_metadata import (
    Variant,
    VariantMetadata,
    VariantProperty,
    VariantProvider,
    revisions,
)
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.variants.findings import REINDEX

variant_rule = rules_of("variant")
document_rule = rules_of("variants-file")

LONGEST_FILE_NAME = 255
"""Bytes of a file name that the file systems of Linux take (NAME_MAX). The drafts set no limit since March 2026."""

_SHOWN = 10  # properties or file names in one evidence
_WARNINGS = frozenset({"order"})  # faults that no tool stumbles over
_REMAKE = Fix("Rebuild the wheel with a tool that writes variant metadata, such as `variantlib make-variant`.")


def variant_facts(wheel: WheelFacts) -> VariantFacts:
    """What is known of the variant. Skips the check for a wheel that is not one."""
    return need(wheel.variant or Unavailable("the wheel is not a variant"))


def listed_properties(properties: Iterable[VariantProperty]) -> str:
    """Properties for people, at most ten: "nvidia :: sm_arch :: 90_real, ..."; "none" for none."""
    return summarised([str(each) for each in properties], _SHOWN) or "none"


@variant_rule(
    "WHL801",
    "the variant label is valid",
    why="Installers skip a wheel whose file name they cannot parse: it is on the index, but is never installed.",
    example="`demo-1.0-py3-none-any-CUDA_13.whl`: labels are lower case",
    fix="Rename the variant: 0-9, a-z, `.` and `_`, short enough for a file name of 255 bytes.",
)
def label_well_formed(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The label matches the draft's pattern, and the file name fits into a file system."""
    label = variant_facts(wheel).label
    pattern = name_pattern("label")
    if label and not pattern.fullmatch(label):
        yield Finding(f"the variant label is {shown(label)}; it must match {pattern.pattern}", fix=_REMAKE)
    size = len(wheel.file_name.encode())
    if size > LONGEST_FILE_NAME:
        message = (
            f"the file name has {size} bytes, {len(label)} of them in the label; the limit of file systems is "
            f"{LONGEST_FILE_NAME}"
        )
        yield Finding(message, fix=Fix("Choose a shorter label: the properties are in variant.json."))


@variant_rule(
    "WHL802",
    "a variant wheel has readable variant metadata of a supported revision",
    why="Without `variant.json` the label has no meaning. An installer must treat a wheel with an unknown revision as "
    "unsupported.",
    example="a wheel renamed by hand, without variant.json",
    fix="Make the variant with a tool; rebuild it when the draft's revision changes.",
)
def metadata_readable(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """``variant.json`` is there, is JSON, and names a schema of the table; a wheel without label has none."""
    facts = variant_facts(wheel)
    location = Location(facts.member)
    if not facts.label:
        message = f"the wheel has {facts.member}, but no variant label in its name: installers do not read it"
        yield Finding(message, fix=_REMAKE, location=location, severity=Severity.WARNING)
    if isinstance(facts.metadata, Unavailable):
        yield Finding(facts.metadata.reason, fix=_REMAKE, location=location)
        return
    understood = ", ".join(dict.fromkeys(revision.name for revision in revisions()))
    for fault in facts.metadata.faults:
        if fault.kind == "schema":
            yield Finding(fault.message, (Evidence("understood", understood),), _REMAKE, location)


@variant_rule(
    "WHL803",
    "the variant label and the variant metadata agree",
    why="The label is only a name; its meaning is in `variant.json`. If the two disagree, another wheel was published "
    "under the label.",
    example="a wheel labelled cu130 whose variant.json describes cu126",
    fix="Make the variant again; do not rename the file.",
)
def label_agrees(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """``variant.json`` describes one variant, under the label of the file name."""
    facts = variant_facts(wheel)
    known = need(facts.metadata).variants
    if not facts.label:
        return
    evidence = (Evidence("file name", facts.label), Evidence(VARIANT_MEMBER, shown(", ".join(known)), facts.member))
    if len(known) != 1:
        message = f"{VARIANT_MEMBER} describes {len(known):,} variants; expected only the wheel's own"
        yield Finding(message, evidence, _REMAKE, Location(facts.member))
    elif facts.label not in known:
        message = (
            f"the label in the file name is {shown(facts.label)}, but {VARIANT_MEMBER} has {shown(next(iter(known)))}"
        )
        yield Finding(message, evidence, _REMAKE, Location(facts.member))


@variant_rule(
    "WHL804",
    "the variant metadata is valid",
    why="Tools reject metadata with malformed names, unknown keys or lists of the wrong type, and disagree about "
    "duplicate keys; the wheel is then skipped, or read in two ways.",
    example='`"sm_arch": ["90-real"]`: a value must not contain a dash',
    fix="Correct the properties where the variant is built, and build it again.",
)
def metadata_well_formed(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No fault of shape or names in ``variant.json``; lists of values that are not sorted are a warning."""
    facts = variant_facts(wheel)
    yield from _faults(need(facts.metadata), ("shape", "duplicate", "label", "name", "null", "order"), facts.member)


@variant_rule(
    "WHL805",
    "every namespace has a priority and a provider",
    why="An installer asks a namespace's provider what the system supports, and orders variants by the namespaces' "
    "priorities. Without them it cannot evaluate the wheel, and skips it.",
    example="properties of `nvidia`, but no `nvidia` in default-priorities",
    fix="List every namespace in `[variant.default-priorities]` and `[variant.providers]` of pyproject.toml.",
)
def namespaces_provided(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No fault of priorities and providers in ``variant.json``."""
    facts = variant_facts(wheel)
    yield from _faults(need(facts.metadata), ("priorities", "provider"), facts.member)


def _faults(metadata: VariantMetadata, kinds: Iterable[str], member: str) -> Iterable[Finding]:
    location = Location(member) if member else None
    for fault in metadata.faults:
        if fault.kind in kinds:
            severity = Severity.WARNING if fault.kind in _WARNINGS else None
            yield Finding(fault.message, fix=_REMAKE if member else REINDEX, location=location, severity=severity)


@variant_rule(
    "WHL806",
    "the index and the wheel state the same properties of the variant",
    why="Installers select by the index's `variants.json` and do not open wheels that they do not select. A label "
    "missing from it is never selected; one with other properties is selected on the wrong machines.",
    example="variants.json lists sm_arch 90_real and 100_real, but the wheel only 90_real",
    fix="Regenerate variants.json from the wheels whenever one is added.",
)
def index_agrees(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The index lists the label with the same properties, in the same order of namespaces, with the same providers."""
    facts = variant_facts(wheel)
    index = need(facts.index)
    if isinstance(index.metadata, Unavailable):
        if index.listed:  # WHL811 says why it cannot be read
            need(index.metadata)
        yield Finding(f"{index.metadata.reason}: installers skip the variant", fix=REINDEX)
        return
    theirs = index.metadata.variants.get(facts.label)
    if theirs is None:
        known = Evidence(index.file_name, shown(", ".join(index.metadata.variants)), index.place)
        yield Finding(f"{index.file_name} does not list {shown(facts.label)}", (known,), REINDEX)
    ours = facts.variant
    if isinstance(ours, Unavailable) or isinstance(facts.metadata, Unavailable):
        return
    if theirs is not None and theirs.properties != ours.properties:
        yield _different(facts, index, ours, theirs)
    yield from _inconsistent(facts.metadata, index)


def _different(facts: VariantFacts, index: VariantIndex, ours: Variant, theirs: Variant) -> Finding:
    only_ours = [each for each in ours.properties if each not in theirs.properties]
    only_theirs = [each for each in theirs.properties if each not in ours.properties]
    evidence = (
        Evidence("only in the wheel", listed_properties(only_ours), facts.member),
        Evidence("only on the index", listed_properties(only_theirs), index.file_name),
    )
    message = f"{index.file_name} and the wheel disagree about the properties of {shown(facts.label)}"
    return Finding(message, evidence, REINDEX, Location(facts.member))


def _inconsistent(ours: VariantMetadata, index: VariantIndex) -> Iterable[Finding]:
    """What cannot be merged (PEP 825, "Metadata consistency"): namespaces in another order, other providers."""
    theirs = need(index.metadata)
    shorter, longer = sorted((ours.priorities.namespaces, theirs.priorities.namespaces), key=len)
    if longer[: len(shorter)] != shorter:
        evidence = (
            Evidence("the wheel", ", ".join(ours.priorities.namespaces), VARIANT_MEMBER),
            Evidence("the index", ", ".join(theirs.priorities.namespaces), index.file_name),
        )
        message = f"{index.file_name} and the wheel order the namespaces differently"
        yield Finding(message, evidence, REINDEX)
    for namespace in ours.providers.keys() & theirs.providers.keys():
        a, b = ours.providers[namespace], theirs.providers[namespace]
        if a != b:
            evidence = (
                Evidence("the wheel", _provider_text(a), VARIANT_MEMBER),
                Evidence("the index", _provider_text(b), index.file_name),
            )
            yield Finding(
                f"{index.file_name} and the wheel state different providers of {namespace}", evidence, REINDEX
            )


def _provider_text(provider: VariantProvider) -> str:
    """A provider for people."""
    if provider.requires:
        optional = " (optional)" if provider.optional else ""
        return (
            shown(", ".join(provider.requires))
            + (f" as {shown(provider.plugin_api)}" * bool(provider.plugin_api))
            + optional
        )
    return (
        f"builtin {provider.builtin}" if provider.builtin else f"static: {shown(', '.join(provider.static_properties))}"
    )


# The document of an index


@document_rule(
    "WHL811",
    "the index's variants.json is readable and valid",
    why="Without it installers silently treat every variant wheel of the release as unsupported, and install the plain "
    "wheel or nothing.",
    example="a variants.json of 4 GB, or one in a newer revision of the draft",
    fix="Generate it from the wheels of the release, with a tool.",
)
def index_well_formed(index: VariantIndex, _: Expectations) -> Iterable[Finding]:
    """The document is there, is JSON of a known revision, and has no fault."""
    if isinstance(index.metadata, Unavailable):
        yield Finding(index.metadata.reason, (Evidence("index", index.place),), REINDEX)
        return
    yield from _faults(index.metadata, [fault.kind for fault in index.metadata.faults], "")


@document_rule(
    "WHL812",
    "the index's variants.json and its wheels list the same variants",
    why="A wheel missing from variants.json is never selected. A label without a wheel cannot be installed: the users "
    "of its machines get the next variant.",
    example="variants.json from before the wheel for CUDA 13 was uploaded",
    fix="Regenerate variants.json after every upload and every removal.",
)
def index_complete(index: VariantIndex, _: Expectations) -> Iterable[Finding]:
    """Every label of a wheel is listed; every label that is listed has a wheel (else a warning)."""
    known = need(index.metadata).variants
    wheels = {label: names for label, names in index.wheels.items() if label}
    for label, names in wheels.items():
        if label not in known:
            message = f"{index.file_name} does not list {shown(label)}: installers skip {summarised(names, _SHOWN)}"
            yield Finding(message, (Evidence("wheels", summarised(names, _SHOWN), index.place),), REINDEX)
    idle = [label for label in known if label not in wheels]
    if idle:
        message = f"{index.file_name} lists {shown(', '.join(idle))}, but has no wheel for it"
        yield Finding(message, fix=REINDEX, severity=Severity.WARNING)


@document_rule(
    "WHL813",
    "no two variants have the same properties",
    why="Of two labels with the same properties installers select the alphabetically first one, whatever was intended.",
    example="cu13 and cuda13, both for CUDA 13 and sm_100",
    fix="Withdraw one of them, or give them different properties.",
)
def distinct(index: VariantIndex, _: Expectations) -> Iterable[Finding]:
    """Every set of properties belongs to one label."""
    for labels in labels_by_properties(need(index.metadata).variants).values():
        if len(labels) > 1:
            message = f"{index.file_name} states the same properties for {shown(', '.join(labels))}"
            properties = need(index.metadata).variants[labels[0]].properties
            evidence = (Evidence("properties", listed_properties(properties), index.file_name),)
            yield Finding(message, evidence, Fix("Withdraw all but one of them, or give them different properties."))


def labels_by_properties(variants: Mapping[str, Variant]) -> dict[tuple[VariantProperty, ...], list[str]]:
    """The labels of each set of properties."""
    found: defaultdict[tuple[VariantProperty, ...], list[str]] = defaultdict(list)
    for label, variant in variants.items():
        found[variant.properties].append(label)
    return found
