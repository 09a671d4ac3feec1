"""What an index looks at when a wheel is uploaded, besides the facts that every command reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.extras import how_to_install
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.kept import AsJson, FileFacts
from wheel_checks.facts.archive.members import MemberContents, read_members
from wheel_checks.facts.wheel.contents import WheelContents
from wheel_checks.facts.wheel.description import render_fault
from wheel_checks.formats.wheel.metadata_fields import MetadataFields, parse_metadata_fields
from wheel_checks.formats.wheel.sbom import MAX_SIZE, SbomDocument, parse_sbom
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

MOST_SBOMS = 32  # documents of one wheel; auditwheel, maturin and the project write one each

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClassifierFacts:
    """The classifiers of a wheel that the list of ``version`` lacks, and the deprecated ones with what to use."""

    version: str
    unknown: tuple[str, ...] = ()
    deprecated: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class UploadFacts:
    """All fields of METADATA, the classifiers that an index does not take, why the description does not render ("" when
    it does), and the SBOM documents by member (PEP 770). ``dist_info`` is the folder that they were read from.
    """

    dist_info: str
    fields: MetadataFields | Unavailable
    classifiers: ClassifierFacts | Unavailable
    render_fault: str | Unavailable
    sboms: tuple[tuple[str, SbomDocument | Unavailable], ...] = ()


def read_upload(source: ByteSource, contents: WheelContents, kept: FileFacts) -> UploadFacts | Unavailable:
    """These facts; of the file the SBOM documents are read. Raises SourceError when bytes cannot be had."""
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return archive
    dist_info = contents.variant_member.rpartition("/")[0]
    fields = _parsed(contents.metadata_bytes, parse_metadata_fields)
    if isinstance(fields, Unavailable):
        return UploadFacts(dist_info, fields, fields, fields, _sboms(source, archive, dist_info, kept))
    return UploadFacts(
        dist_info,
        fields,
        known_classifiers(fields.of("classifier")),
        render_fault(fields.description, fields.first("description-content-type")),
        _sboms(source, archive, dist_info, kept),
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


def _sboms(
    source: ByteSource, archive: Archive, dist_info: str, kept: FileFacts
) -> tuple[tuple[str, SbomDocument | Unavailable], ...]:
    names = [m.name for m in archive.members if m.name.startswith(f"{dist_info}/sboms/") and not m.is_directory]
    if not names:
        return ()
    read = kept.remember(
        "sboms",
        AsJson(MemberContents),
        lambda: read_members(source, archive, dict.fromkeys(names[:MOST_SBOMS], MAX_SIZE)),
    )
    unread = Unavailable(f"at most {MOST_SBOMS} documents are read")
    return tuple((name, _parsed(read.contents.get(name, unread), parse_sbom)) for name in names)


def _parsed(content: bytes | Unavailable, parse: Callable[[bytes], T]) -> T | Unavailable:
    if isinstance(content, Unavailable):
        return content
    try:
        return parse(content)
    except FormatError as error:
        return Unavailable(str(error))
