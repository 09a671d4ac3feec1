"""Judge variant wheels, and the metadata of indexes about them, by the rules for variants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheel_checks.facts.variants.reading import variants_in_folder, variants_on_index
from wheel_checks.facts.wheel.variant import VariantIndex
from wheel_checks.formats.secrets import redact_text
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.model import Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.variant_files import VariantFiles

if TYPE_CHECKING:
    from wheelproof.wheels.model import JudgedWheel, Judgement, PlannedWheel

_MOST_LABELS = 200  # in the facts of a subject


def read_variants(planned: PlannedWheel, files: VariantFiles) -> Callable[[], VariantIndex | Unavailable]:
    """A reader of the variant metadata of a wheel's release, in its folder or index."""

    def read() -> VariantIndex | Unavailable:
        name = parse_wheel_name(planned.file_name)
        if isinstance(planned.location, Path):
            return variants_in_folder(name, planned.location.parent, files)
        if planned.listing is None:
            return Unavailable("a URL does not identify the index of the wheel", "give its requirement")
        return variants_on_index(name, planned.listed, planned.listing.index, files)

    return read


def variant_index_subjects(
    judged: Iterable[JudgedWheel], read: Iterable[VariantIndex], judgement: Judgement
) -> list[Subject]:
    """A subject for each document, or place without one, that a variant wheel among ``judged`` was found at.

    ``read`` are those by which variants were chosen for machines, although none may have been taken.
    """
    of_wheels = (item.facts.variant.index for item in judged if item.facts and item.facts.variant)
    indexes: dict[tuple[str, str], VariantIndex] = {}
    for index in (*read, *of_wheels):
        if not isinstance(index, Unavailable):
            indexes.setdefault((index.place, index.file_name), index)
    if not indexes:
        return []
    rules = judgement.selection.rules("variants-file")
    return [
        Subject(
            index.file_name,
            "variants-file",
            _headline(index),
            _facts(index),
            run_rules(rules, index, judgement.expectations),
        )
        for index in indexes.values()
    ]


def _headline(index: VariantIndex) -> str:
    if isinstance(index.metadata, Unavailable):
        return "cannot be read" if index.listed else "missing"
    revision = index.metadata.revision
    return f"{len(index.metadata.variants):,} variants, {revision.name if revision else 'an unknown revision'}"


def _facts(index: VariantIndex) -> dict[str, Any]:
    facts: dict[str, Any] = {"index": redact_text(index.place), "bytes_read": index.bytes_read}
    if isinstance(index.metadata, Unavailable):
        return facts
    variants = list(index.metadata.variants.values())
    return facts | {
        "schema": index.metadata.schema,
        "namespaces": list(index.metadata.priorities.namespaces),
        "variants": len(variants),
        "labels": {each.label: list(map(str, each.properties)) for each in variants[:_MOST_LABELS]},
    }
