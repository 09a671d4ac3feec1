"""What an index looks at when a wheel is uploaded, besides the facts that every command reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.extras import how_to_install
from wheel_checks.facts.wheel.contents import WheelContents
from wheel_checks.facts.wheel.description import render_fault
from wheel_checks.formats.wheel.metadata_fields import MetadataFields, parse_metadata_fields
from wheel_checks.model import Unavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClassifierFacts:
    """The classifiers of a wheel that the list of ``version`` lacks, and the deprecated ones with what to use."""

    version: str
    unknown: tuple[str, ...] = ()
    deprecated: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class UploadFacts:
    """All fields of METADATA, the classifiers that an index does not take, and why the description does not render (""
    when it does).
    """

    fields: MetadataFields | Unavailable
    classifiers: ClassifierFacts | Unavailable
    render_fault: str | Unavailable


def read_upload(contents: WheelContents) -> UploadFacts | Unavailable:
    """These facts, of METADATA that was read already."""
    fields = _parsed(contents.metadata_bytes, parse_metadata_fields)
    if isinstance(fields, Unavailable):
        return fields
    return UploadFacts(
        fields,
        known_classifiers(fields.of("classifier")),
        render_fault(fields.description, fields.first("description-content-type")),
    )


def known_classifiers(classifiers: Sequence[str]) -> ClassifierFacts | Unavailable:
    """Which of them the list of trove-classifiers does not have; it is what the index takes."""
    if not classifiers:
        return ClassifierFacts("")
    if find_spec("trove_classifiers") is None:
        return Unavailable(
            "trove-classifiers, the list of classifiers that the index accepts, is not installed",
            how_to_install("release"),
        )
    table = import_module("trove_classifiers")
    return ClassifierFacts(
        metadata.version("trove-classifiers"),
        tuple(c for c in classifiers if c not in table.classifiers and c not in table.deprecated_classifiers),
        tuple((c, tuple(table.deprecated_classifiers[c])) for c in classifiers if c in table.deprecated_classifiers),
    )


def _parsed(content: bytes | Unavailable, parse: Callable[[bytes], T]) -> T | Unavailable:
    if isinstance(content, Unavailable):
        return content
    try:
        return parse(content)
    except FormatError as error:
        return Unavailable(str(error))
