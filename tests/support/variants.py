"""Variant wheels and the documents that describe them, written by hand so that one part at a time can be wrong.

wheel = variant("cu130", ["nvidia :: sm_arch :: 90_real"])
facts_of(wheel.build(), wheel.variant_name)
document({"cu130": [...]}, namespaces=["nvidia"])
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.wheels import WheelBuilder

SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
PROVIDERS = {
    "nvidia": {"requires": ["nvidia-variant-provider>=0.0.1"]},
    "x86_64": {"requires": ["provider-variant-x86-64>=0.0.1"]},
    "aarch64": {"requires": ["provider-variant-aarch64>=0.0.1"]},
    "blas": {"static-properties": {"library": ["mkl", "openblas"]}},
}


def document(
    variants: Mapping[str, Sequence[str]], /, namespaces: Sequence[str] | None = None, **changes: Any
) -> dict[str, Any]:
    """The metadata of these variants, each a label and its properties, in the form that variantlib 0.2.2 writes.

    ``namespaces`` is the order of priority, by default of first use. ``changes`` replace keys of the document, with _
    for -; None leaves one out.
    """
    tree: dict[str, dict[str, dict[str, list[str]]]] = {}
    used: dict[str, None] = {}
    for label, properties in variants.items():
        tree[label] = {}
        for text in properties:
            namespace, feature, value = text.split(" :: ")
            tree[label].setdefault(namespace, {}).setdefault(feature, []).append(value)
            used[namespace] = None
    order = list(used if namespaces is None else namespaces) or ["nvidia"]
    made: dict[str, Any] = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": order},
        "providers": {name: PROVIDERS.get(name, {"requires": [f"{name}-provider"]}) for name in order},
        "variants": tree,
    }
    made |= {key.replace("schema", "$schema").replace("_", "-"): value for key, value in changes.items()}
    return {key: value for key, value in made.items() if value is not None}


class VariantWheel(WheelBuilder):
    """A wheel with a label and a ``variant.json``."""

    label = ""

    @property
    def file_name(self) -> str:
        return super().file_name.removesuffix(".whl") + f"-{self.label}" * bool(self.label) + ".whl"


def variant(
    label: str,
    properties: Sequence[str] = (),
    *,
    name: str = "demo",
    version: str = "1.0",
    tags: str = "cp312-cp312-manylinux_2_28_x86_64",
    described: Mapping[str, Any] | bytes | None = None,
) -> VariantWheel:
    """A wheel of this label whose ``variant.json`` says these properties, or ``described``; b"" leaves it out."""
    wheel = VariantWheel(name, version, tags)
    wheel.label = label
    content = document({label: properties}) if described is None else described
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return wheel.dist_info_file("variant.json", data or None)
