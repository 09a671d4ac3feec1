"""The metadata of wheel variants: ``variant.json`` in a wheel, ``{name}-{version}-variants.json`` on an index.

Both have one structure (PEP 825, "Variant metadata" and "Index-level metadata"; PEP 850 adds "providers"). Which
revisions are understood, and what each of them allows, is data: ``wheel_checks/data/variants.toml``.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from packaging.markers import InvalidMarker, Marker

from wheel_checks.data import load
from wheel_checks.decode import Policy, decode
from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.variant_faults import Fault, Faults, mapping_of, name_pattern, shown, texts_of
from wheel_checks.formats.wheel.variant_label import VARIANT_MEMBER

NULL_LABEL: str = load("variants")["null_label"]
_SEPARATOR: str = load("variants")["separator"]


@dataclass(frozen=True, slots=True, order=True)
class VariantProperty:
    """One claim: the system must support this value of the feature, or another value of it that the variant claims."""

    namespace: str
    feature: str
    value: str

    @property
    def key(self) -> str:
        """The feature with its namespace: "nvidia :: sm_arch"."""
        return _SEPARATOR.join((self.namespace, self.feature))

    def __str__(self) -> str:
        return _SEPARATOR.join((self.namespace, self.feature, self.value))


@dataclass(frozen=True, slots=True)
class Variant:
    """A label and the properties after it, sorted and each of them once. The null variant has none."""

    label: str
    properties: tuple[VariantProperty, ...] = ()

    def values(self, namespace: str, feature: str) -> tuple[str, ...]:
        """The values that are claimed for a feature, of which the system must support one; () for no claim."""
        return tuple(p.value for p in self.properties if (p.namespace, p.feature) == (namespace, feature))


@dataclass(frozen=True, slots=True)
class VariantProvider:
    """Who computes the properties of a namespace (PEP 850): packages to install, an installer itself, or a list.

    ``requires`` are requirements of the plugin, ``plugin_api`` its object ("" for the one that follows from them),
    ``builtin`` the name by which an installer knows it. ``static_properties`` are the values of each feature that every
    system supports, in their order; ``feature_order`` orders the features. Exactly one of the three is given.
    ``enable_if`` is an environment marker without which the provider is disabled (PEP 817), "" if none.
    """

    requires: tuple[str, ...] = ()
    plugin_api: str = ""
    optional: bool = False
    builtin: str = ""
    static_properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    feature_order: tuple[str, ...] = ()
    enable_if: str = ""


@dataclass(frozen=True, slots=True)
class DefaultPriorities:
    """What orders the variants of a release, each most preferred first.

    ``features`` and ``values`` are overrides that only older revisions know: the features of each namespace, and the
    values by namespace and feature.
    """

    namespaces: tuple[str, ...] = ()
    features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of the format, a row of the table. ``label_length`` is in characters, 0 for no limit."""

    schema: str
    name: str
    label_length: int
    priorities: tuple[str, ...]
    providers: bool
    sorted: bool
    providers_optional: bool = False
    provider_keys: tuple[str, ...] = ()
    provider_kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VariantMetadata:
    """What one document says. ``variants`` are by label, in the order of the document.

    ``revision`` is None for a schema that is unknown; the document is then read as one of the latest revision.
    ``faults`` say what is against the draft; what is faulty is omitted from the other fields where it cannot be read.
    """

    schema: str
    revision: Revision | None
    priorities: DefaultPriorities
    providers: Mapping[str, VariantProvider]
    variants: Mapping[str, Variant]
    faults: tuple[Fault, ...] = ()

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that the properties of all variants use, sorted."""
        return tuple(sorted({p.namespace for variant in self.variants.values() for p in variant.properties}))


@cache
def revisions() -> tuple[Revision, ...]:
    """The revisions that are understood, the newest first."""
    return tuple(decode(Revision, row, Policy(unknown_keys=True)) for row in load("variants")["revision"])


def parse_variant_metadata(data: bytes, what: str = VARIANT_MEMBER) -> VariantMetadata:
    """The metadata in ``data``; ``what`` names the document in messages.

    Raises FormatError when it is not JSON object, or larger than our bounds (bytes, variants, properties of one
    variant, namespaces, names). Everything else that is wrong is among the faults.
    """
    faults = Faults()
    top = _read_json(data, what, faults)
    schema = top.get("$schema")
    revision = next((known for known in revisions() if known.schema == schema), None)
    if not isinstance(schema, str):
        faults.add("schema", "$schema is missing or not a string; expected the URL of a schema")
    elif revision is None:
        known = ", ".join(row.schema for row in revisions())
        faults.add("schema", f"$schema is {shown(schema)}, an unknown revision; known are {known}")
    rules = revision or revisions()[0]
    faults.strict = revision is not None  # what another revision allows is not ours to judge
    allowed = {"$schema", "default-priorities", "variants", *(["providers"] if rules.providers else [])}
    faults.unknown_keys("the document", top, allowed)
    variants = _variants(top.get("variants"), what, rules, faults)
    priorities = _priorities(top.get("default-priorities"), what, rules, faults)
    providers = _providers(top.get("providers"), rules, faults)
    metadata = VariantMetadata(schema if isinstance(schema, str) else "", revision, priorities, providers, variants)
    _check_namespaces(metadata, what, rules, faults)
    return replace(metadata, faults=faults.found)


def _read_json(data: bytes, what: str, faults: Faults) -> Mapping[str, Any]:
    largest = load("variants")["bounds"]["bytes"]
    if len(data) > largest:
        raise FormatError(f"{what} has {len(data):,} bytes", expected=f"at most {largest:,}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            key, count = Counter(key for key, _ in pairs).most_common(1)[0]
            faults.add("duplicate", f"the key {shown(key)} occurs {count:,} times in one object")
        return made

    try:
        document = json.loads(data.decode(), object_pairs_hook=unique)
    except RecursionError:
        raise FormatError(f"{what} is nested too deeply to be read", expected="an object of five levels") from None
    except ValueError as error:  # malformed UTF-8, malformed JSON, a number of thousands of digits
        raise FormatError(f"{what} is not valid JSON: {error}", expected="variant metadata (PEP 825)") from None
    if not isinstance(document, dict):
        raise FormatError(f"{what} contains a JSON {type(document).__name__}", expected="an object")
    return document


def _variants(value: object, what: str, rules: Revision, faults: Faults) -> dict[str, Variant]:
    bounds = load("variants")["bounds"]
    labels = mapping_of(value, "variants", faults, required=True)
    if len(labels) > bounds["variants"]:
        raise FormatError(f"{what} lists {len(labels):,} variants", expected=f"at most {bounds['variants']:,}")
    found = {}
    for label, content in labels.items():
        where = f"variants.{shown(label)}"
        faults.name("label", label, where)
        if rules.label_length and len(label) > rules.label_length:
            faults.add("label", f"{where} has {len(label):,} characters; {rules.name} allows {rules.label_length}")
        properties = list(_properties(content, where, rules, faults))
        if len(properties) > bounds["properties"]:
            raise FormatError(
                f"{where} of {what} has {len(properties):,} properties", expected=f"at most {bounds['properties']:,}"
            )
        if content == {} and label != NULL_LABEL:
            faults.add("null", f"{where} has no properties; only the label {NULL_LABEL!r} may have none")
        if properties and label == NULL_LABEL:
            faults.add("null", f"{where} has properties; the null variant has none")
        found[label] = Variant(label, tuple(sorted(set(properties))))
    return found


def _properties(content: object, where: str, rules: Revision, faults: Faults) -> Iterable[VariantProperty]:
    for namespace, features in mapping_of(content, where, faults).items():
        faults.name("namespace", namespace, where)
        for feature, listed in mapping_of(features, f"{where}.{shown(namespace)}", faults, nonempty=True).items():
            place = f"{where}.{namespace[:100]}.{shown(feature)}"
            faults.name("feature", feature, place)
            values = texts_of(listed, place, "value", faults)
            if rules.sorted and list(values) != sorted(values):
                faults.add("order", f"{place} is {shown(', '.join(values))}; the values must be sorted")
            yield from (VariantProperty(namespace, feature, value) for value in values)


def _priorities(value: object, what: str, rules: Revision, faults: Faults) -> DefaultPriorities:
    where = "default-priorities"
    table = mapping_of(value, where, faults, required=True)
    faults.unknown_keys(where, table, rules.priorities)
    namespaces: tuple[str, ...] = ()
    if "namespace" in table:
        namespaces = texts_of(table["namespace"], f"{where}.namespace", "namespace", faults)
        most = load("variants")["bounds"]["namespaces"]
        if len(namespaces) > most:
            raise FormatError(f"{what} orders {len(namespaces):,} namespaces", expected=f"at most {most:,}")
    elif isinstance(value, dict):
        faults.add("priorities", f"{where}.namespace is missing; it must order the namespaces")
    features, values = {}, {}
    for namespace, listed in mapping_of(table.get("feature", {}), f"{where}.feature", faults).items():
        place = f"{where}.feature.{shown(namespace)}"
        features[namespace] = texts_of(listed, place, "feature", faults, may_be_empty=True)
    for namespace, inner in mapping_of(table.get("property", {}), f"{where}.property", faults).items():
        for feature, listed in mapping_of(inner, f"{where}.property.{shown(namespace)}", faults).items():
            place = f"{where}.property.{namespace[:100]}.{shown(feature)}"
            values[namespace, feature] = texts_of(listed, place, "value", faults, may_be_empty=True)
    return DefaultPriorities(namespaces, features, values)


def _providers(value: object, rules: Revision, faults: Faults) -> dict[str, VariantProvider]:
    if value is None:
        return {}
    found = {}
    for namespace, content in mapping_of(value, "providers", faults).items():
        where = f"providers.{shown(namespace)}"
        faults.name("namespace", namespace, where)
        table = mapping_of(content, where, faults)
        faults.unknown_keys(where, table, rules.provider_keys)
        kinds = [kind for kind in rules.provider_kinds if table.get(kind)]
        if rules.provider_kinds and len(kinds) != 1:
            said = " and ".join(kinds) or "none of them"
            faults.add("provider", f"{where} has {said}; expected exactly one of {', '.join(rules.provider_kinds)}")
        _text(table, "plugin-use", where, faults)
        static = mapping_of(table.get("static-properties", {}), f"{where}.static-properties", faults)
        for feature in static:
            faults.name("feature", feature, f"{where}.static-properties")
        found[namespace] = provider = VariantProvider(
            _requirements(table.get("requires", []), f"{where}.requires", faults),
            _text(table, "plugin-api", where, faults),
            _flag(table, "optional", where, faults),
            _text(table, "builtin", where, faults),
            {key: texts_of(static[key], f"{where}.static-properties.{shown(key)}", "value", faults) for key in static},
            texts_of(table.get("feature-order", []), f"{where}.feature-order", "feature", faults, may_be_empty=True),
            _marker(table, "enable-if", where, faults),
        )
        if rules.provider_kinds:
            _check_provider(provider, where, faults)
    return found


def _check_provider(provider: VariantProvider, where: str, faults: Faults) -> None:
    """Keys of one kind of provider occur with no other, and more features than one are ordered."""
    static, ordered = sorted(provider.static_properties), provider.feature_order
    if (ordered or len(static) > 1) and sorted(ordered) != static:
        message = f"{where}.feature-order is {shown(', '.join(ordered))}; it must order the features of "
        faults.add("provider", f"{message}static-properties: {shown(', '.join(static))}")
    if provider.plugin_api and not provider.requires:
        faults.add("provider", f"{where}.plugin-api has no effect without requires")


def _marker(table: Mapping[str, Any], key: str, where: str, faults: Faults) -> str:
    text = _text(table, key, where, faults)
    try:
        if text:
            Marker(text)
    except (InvalidMarker, RecursionError):
        faults.add("provider", f"{where}.{key} is {shown(text)}; expected an environment marker")
        return ""
    return text


def _requirements(value: object, where: str, faults: Faults) -> tuple[str, ...]:
    longest = load("variants")["bounds"]["text"]
    if not isinstance(value, list) or not all(isinstance(each, str) and 0 < len(each) <= longest for each in value):
        faults.add("provider", f"{where} is not a list of requirements")
        return ()
    return tuple(value)


def _text(table: Mapping[str, Any], key: str, where: str, faults: Faults) -> str:
    value = table.get(key, "")
    if not isinstance(value, str) or len(value) > load("variants")["bounds"]["text"]:
        faults.add("provider", f"{where}.{key} is {shown(value)}; expected a short string")
        return ""
    return value


def _flag(table: Mapping[str, Any], key: str, where: str, faults: Faults) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        faults.add("provider", f"{where}.{key} is {shown(value)}; expected true or false")
    return value is True


def _check_namespaces(metadata: VariantMetadata, what: str, rules: Revision, faults: Faults) -> None:
    """Every namespace that is used is ordered; where the revision has providers, the same ones have a provider."""
    ordered = metadata.priorities.namespaces
    used, pattern = metadata.namespaces, name_pattern("namespace")
    most = load("variants")["bounds"]["namespaces"]
    if len(used) > most:  # more than can be ordered: each would be sought among a thousand
        raise FormatError(f"the variants of {what} use {len(used):,} namespaces", expected=f"at most {most:,}")
    if unordered := [n for n in used if n not in ordered and pattern.fullmatch(n)]:
        faults.add(
            "priorities",
            f"default-priorities.namespace does not list {shown(', '.join(unordered))}, which variants use",
        )
    if not rules.providers or rules.providers_optional:
        return
    needed = dict.fromkeys((*ordered, *used))
    if missing := [namespace for namespace in needed if namespace not in metadata.providers]:
        faults.add("provider", f"{shown(', '.join(missing))} has no provider, so nothing can evaluate it")
    if idle := [namespace for namespace in metadata.providers if namespace not in needed]:
        faults.add("provider", f"{shown(', '.join(idle))} has a provider, but is missing from default-priorities")
