"""The wheel that an installer with variant support chooses for a described machine (PEP 825, "Variant ordering").

The order of a release's variants follows from the namespaces of its index-level metadata, from the order of features
and values that the machine supports, and from the labels. A variant with a better value of the first feature wins,
regardless of the others. The null variant comes last; wheels without a label come after it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from typing import NamedTuple

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.formats.index.file_names import WHEEL_SUFFIX
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.variant_label import is_variant, split_label
from wheel_checks.formats.wheel.variant_metadata import Variant, VariantMetadata
from wheel_checks.formats.wheel.wheel_name import wheel_name_or_none
from wheel_checks.model import Unavailable
from wheel_checks.targets.selection import Choice, Reason, choose
from wheel_checks.targets.target import Target
from wheel_checks.targets.variant_machine import Features, Machine

MOST_RELEASES = 20
"""Releases whose metadata is read for one choice; the first has a wheel for the machine as a rule."""


class Why(StrEnum):
    """Why a feature that a variant claims is not supported: its namespace is not queried, or has no such value."""

    UNORDERED = "unordered"
    UNKNOWN = "unknown"
    OPTIONAL = "optional"
    DISABLED = "disabled"
    UNSUPPORTED = "unsupported"


class Lack(NamedTuple):
    """A feature of a variant for which a machine supports none of the claimed ``values``, and why."""

    namespace: str
    feature: str
    values: tuple[str, ...]
    why: Why

    def __str__(self) -> str:
        more = ", ..." if len(self.values) > 5 else ""
        return f"{self.namespace} :: {self.feature} :: {' or '.join(self.values[:5])}{more}"


Support = Callable[[str], Features | Why]
"""A machine's features in a namespace, or why that is not queried."""

ReadMetadata = Callable[[Version], VariantMetadata | Unavailable]
"""Reads the index-level metadata of a release."""


@dataclass(frozen=True, slots=True)
class VariantOrder:
    """The labels that a machine supports, the most preferred first, and why it does not support the others.

    ``unknown`` are the namespaces that the variants use and that are unknown here, in their order. ``answers`` are the
    machine's features in each ordered namespace.
    """

    preferred: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    answers: Mapping[str, Features | Why] = field(default_factory=dict)

    def lacks(self, variant: Variant) -> tuple[Lack, ...]:
        """The unsupported features of a variant."""
        claimed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for each in variant.properties:
            claimed[each.namespace, each.feature].append(each.value)
        found = []
        for (namespace, feature), values in claimed.items():
            answer = self.answers.get(namespace, Why.UNORDERED)
            if isinstance(answer, Why):
                found.append(Lack(namespace, feature, tuple(values), answer))
            elif set(values).isdisjoint(answer.get(feature, ())):
                found.append(Lack(namespace, feature, tuple(values), Why.UNSUPPORTED))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class MachineChoice:
    """The choice for a machine. ``choice`` is that of an installer that supports variants, ``plain`` that of another.

    ``label`` is that of the chosen wheel, or "". ``release`` is the one whose variants were inspected: that of the
    choice, or else the latest; or None. ``order`` and ``metadata`` are its own, Unavailable when they could not be
    read. ``newer`` is the same seen from the latest release, when the choice is of an older one.
    """

    machine: Machine
    choice: Choice
    plain: Choice
    label: str
    metadata: VariantMetadata | Unavailable
    order: VariantOrder
    release: Version | None = None
    newer: MachineChoice | None = None

    @property
    def variant(self) -> Variant | None:
        """The chosen variant; None for a wheel without a label."""
        if not self.label or isinstance(self.metadata, Unavailable) or self.choice.version != self.release:
            return None
        return self.metadata.variants.get(self.label)

    @property
    def rejections(self) -> Mapping[str, frozenset[Reason]]:
        """Why wheels of the release that are built for the target were not chosen, by label."""
        found: defaultdict[str, set[Reason]] = defaultdict(set)
        for rejection in self.choice.rejected:
            if rejection.reason in _OF_THE_TARGET and is_variant(rejection.file.file_name):
                label, version = _label_and_version(rejection.file.file_name)
                if version == self.release:
                    found[label].add(rejection.reason)
        return {label: frozenset(reasons) for label, reasons in found.items()}

    @property
    def passed_over(self) -> Mapping[str, str]:
        """The variants of the release that the machine cannot take, and why, in the order of the metadata."""
        if isinstance(self.metadata, Unavailable):
            return {}
        rejections, found = self.rejections, {}
        for label in self.metadata.variants:
            reasons = rejections.get(label, frozenset())
            if (label == self.label and self.choice.version == self.release) or Reason.LESS_PREFERRED in reasons:
                continue
            if Reason.VARIANT in reasons:
                found[label] = self.order.refused.get(label, "")
            elif Reason.YANKED in reasons:
                found[label] = f"its wheel for {self.choice.target.label} is yanked"
            else:
                found[label] = f"it has no wheel for {self.choice.target.label}"
        return found


_OF_THE_TARGET = frozenset({Reason.VARIANT, Reason.LESS_PREFERRED, Reason.YANKED})


def order_for(metadata: VariantMetadata, machine: Machine, target: Target | None = None) -> VariantOrder:
    """The variants of a release in the order in which ``machine`` prefers them; ``target`` may disable providers."""
    if metadata.revision is None:  # PEP 825, "Variant metadata": such wheels must be taken as unsupported
        reason = f"its metadata has an unknown revision: {metadata.schema[:200]}"
        return VariantOrder((), dict.fromkeys(metadata.variants, reason))

    def supported(namespace: str) -> Features | Why:
        provider = metadata.providers.get(namespace)
        if provider and provider.optional:
            return Why.OPTIONAL  # installers query an optional provider only if the user wants it (PEP 850)
        if provider and provider.enable_if and target and not _holds(provider.enable_if, target):
            return Why.DISABLED
        features = machine.supported(namespace, provider)
        return Why.UNKNOWN if features is None else features

    return order_variants(metadata, supported, machine.label)


def _holds(marker: str, target: Target) -> bool:
    """Whether an environment marker is true on a target; false if it cannot be evaluated there."""
    try:
        return Marker(marker).evaluate(dict(target.markers()))
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False


def order_variants(metadata: VariantMetadata, supported: Support, on: str = "this machine") -> VariantOrder:
    """The variants in the order of a machine (called ``on``) with exactly the ``supported`` features.

    A variant is supported when the machine supports one value of each of its features (PEP 825). Overrides of the order
    of features and values, from older revisions, apply to supported values.
    """
    answers = {namespace: supported(namespace) for namespace in metadata.priorities.namespaces}
    positions: dict[tuple[str, str], tuple[int, Mapping[str, int]]] = {}
    for namespace, answer in answers.items():
        if not isinstance(answer, Why):
            _place(namespace, answer, metadata, positions)
    keys, refused = {}, {}
    for label, variant in metadata.variants.items():
        best: dict[tuple[str, str], int] = {}
        for each in variant.properties:
            feature = (each.namespace, each.feature)
            rank = positions[feature][1].get(each.value) if feature in positions else None
            best[feature] = min(best.get(feature, sys.maxsize), sys.maxsize if rank is None else rank)
        lacking = next((feature for feature, rank in best.items() if rank == sys.maxsize), None)
        if lacking is None:
            # A missing feature is worse than any value: its position is after all others.
            keys[label] = (*sorted((positions[feature][0], rank) for feature, rank in best.items()), (sys.maxsize, 0))
        else:
            answer = answers.get(lacking[0], Why.UNORDERED)
            why = answer if isinstance(answer, Why) else Why.UNSUPPORTED
            refused[label] = _reason(Lack(*lacking, variant.values(*lacking), why), metadata, on)
    preferred = tuple(sorted(keys, key=lambda label: (keys[label], label)))
    used = {each.namespace for variant in metadata.variants.values() for each in variant.properties}
    unknown = (namespace for namespace, answer in answers.items() if answer is Why.UNKNOWN and namespace in used)
    return VariantOrder(preferred, refused, tuple(unknown), answers)


def _place(
    namespace: str,
    features: Features,
    metadata: VariantMetadata,
    positions: dict[tuple[str, str], tuple[int, Mapping[str, int]]],
) -> None:
    """Append the features of a namespace, each with its position among all and the ranks of its values."""
    first = metadata.priorities.features.get(namespace, ())
    for feature in dict.fromkeys((*(each for each in first if each in features), *features)):
        preferred = metadata.priorities.values.get((namespace, feature), ())
        ordered = dict.fromkeys((*(each for each in preferred if each in features[feature]), *features[feature]))
        positions[namespace, feature] = (len(positions), {value: rank for rank, value in enumerate(ordered)})


def _reason(lack: Lack, metadata: VariantMetadata, on: str) -> str:
    """Why a variant is not supported, for people."""
    provider = metadata.providers.get(lack.namespace)
    marker = provider.enable_if[:200] if provider else ""
    tails = {
        Why.UNORDERED: f"and default-priorities does not list {lack.namespace}",
        Why.UNKNOWN: f"and only the provider of {lack.namespace} can interpret it",
        Why.OPTIONAL: f"and the provider of {lack.namespace} is optional: installers use it only when enabled",
        Why.DISABLED: f"and the provider of {lack.namespace} is disabled: {marker} is false",
        Why.UNSUPPORTED: f"which {on} does not support",
    }
    return f"it needs {lack}, {tails[lack.why]}"


def choose_for_machines(
    requirement: Requirement,
    files: Sequence[IndexFile],
    target: Target,
    machines: Iterable[Machine],
    read: ReadMetadata,
    *,
    pre: bool = False,
) -> tuple[MachineChoice, ...]:
    """The choice of ``files`` for each of the ``machines`` of the target's kind. ``read`` is called once a release.

    The version is chosen first (PEP 825, "Installing a package from an index"); a release whose metadata is missing, or
    none of whose variants the machine supports, has only its wheels without a label to offer.
    """
    own = [machine for machine in machines if machine.machine == target.machine]
    if not own:
        return ()
    plain = choose(requirement, files, target, pre=pre)
    anything = choose(requirement, files, target, pre=pre, variants=lambda _version, _label: 0)
    first = anything.version or anything.newest_release
    if first and not any(variant_wheels(files, first)):  # they count although none may be for this platform
        first = None
    choose_by, read_once = partial(choose, requirement, files, target, pre=pre), cache(read)
    return tuple(_choose(choose_by, machine, plain, first, read_once) for machine in own)


def _choose(
    choose_by: Callable[..., Choice], machine: Machine, plain: Choice, first: Version | None, read: ReadMetadata
) -> MachineChoice:
    """The choice for one machine. ``first`` is the release with variants that comes first when all are supported."""
    known: dict[Version, tuple[VariantMetadata | Unavailable, VariantOrder]] = {}
    ranks: dict[Version, dict[str, int]] = {}

    def look_at(version: Version) -> None:
        metadata = read(version)
        order = VariantOrder() if isinstance(metadata, Unavailable) else order_for(metadata, machine, plain.target)
        known[version] = metadata, order
        ranks[version] = {label: rank for rank, label in enumerate(order.preferred)}

    def rank(version: Version, label: str) -> int | str:
        if version not in known:  # 0: if its release is chosen, it is looked at, and chosen from again
            return 0 if len(known) < MOST_RELEASES else "is a variant of a release that was not considered"
        metadata, order = known[version]
        if isinstance(metadata, Unavailable):
            return f"is a variant, and {metadata.reason}"
        if label in order.refused:
            return f"is not for {machine.label}: {order.refused[label]}"
        return ranks[version].get(label, f"has the label {label!r}, which variants.json does not list")

    if first:
        look_at(first)
    while True:
        choice = choose_by(variants=rank)
        label = split_label(choice.chosen.file_name.removesuffix(WHEEL_SUFFIX))[1] if choice.chosen else ""
        if choice.version is None or not label or choice.version in known:
            break
        look_at(choice.version)
    return _of_release(machine, choice, plain, label, known)


def _of_release(
    machine: Machine,
    choice: Choice,
    plain: Choice,
    label: str,
    known: Mapping[Version, tuple[VariantMetadata | Unavailable, VariantOrder]],
) -> MachineChoice:
    """The choice with its release. ``known`` are the inspected ones, the newest first."""
    if not known:
        return MachineChoice(machine, choice, plain, label, Unavailable("the release has no variants"), VariantOrder())
    newest = next(iter(known))
    seen = MachineChoice(machine, choice, plain, label, *known[newest], newest)
    if choice.version is None or choice.version == newest or choice.version not in known:
        return seen
    return MachineChoice(machine, choice, plain, label, *known[choice.version], choice.version, seen)


def variant_wheels(files: Sequence[IndexFile], version: Version) -> Iterator[IndexFile]:
    """The variant wheels of one release among ``files`` of a project."""
    for file in files:
        if is_variant(file.file_name) and _label_and_version(file.file_name)[1] == version:
            yield file


def _label_and_version(file_name: str) -> tuple[str, Version | None]:
    """The label and the version that the name of a variant wheel shows; ("", None) for a name that is not one."""
    name = wheel_name_or_none(file_name)
    return (name.variant, name.parsed_version) if name else ("", None)
