"""Everything that the rules may know about one wheel."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from wheel_checks.facts.accelerator import AcceleratorFacts
from wheel_checks.formats.core_metadata import CoreMetadata
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.record import Record
from wheel_checks.formats.version_file import VersionFile
from wheel_checks.formats.wheel_file import WheelFile
from wheel_checks.formats.wheel_name import WheelName
from wheel_checks.formats.zip_directory import EndRecord, Member
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import Target


class Depth(enum.StrEnum):
    """How deep to look: quick reads the directory and small members, full reads every byte."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class ArchiveFault:
    """One thing wrong with the zip archive.

    ``kind`` is "directory", "overlap", "header" or "content"; ``member`` is "" when the fault is the archive's.
    """

    kind: str
    message: str
    member: str = ""


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive as its central directory describes it.

    ``local_headers_read`` counts the members whose own header was compared with it.
    """

    end: EndRecord
    members: tuple[Member, ...]
    faults: tuple[ArchiveFault, ...]
    local_headers_read: int = 0


@dataclass(frozen=True, slots=True)
class Sibling:
    """A wheel of the same release, Python and ABI for another machine.

    ``certainty`` is "exact" when that wheel was read in this run, "declared" when its accelerator follows from
    requirements whose markers were evaluated for its machine.
    """

    file_name: str
    machine: str
    accelerator: str
    accelerator_version: str
    certainty: str
    source: str


@dataclass(frozen=True, slots=True)
class WheelFacts:
    """One wheel. What could not be had is ``Unavailable``, with the reason.

    ``broken`` is the sentence that says why the archive cannot be read at all ("" when it can).
    ``target`` is the platform and Python for which markers were evaluated (None: no single target is meant).
    ``dist_infos`` are the names of all top-level ``*.dist-info`` folders; ``sidecar`` is the METADATA that the index
    serves beside the wheel (PEP 658); ``hash_faults`` are ``(member, sentence)`` of contents that match neither RECORD
    nor CRC; ``content_sha256`` is the digest of the file itself, "" unless it was read whole.
    """

    file_name: str
    location: str
    size: int
    name: WheelName | Unavailable
    archive: Archive | Unavailable
    metadata: CoreMetadata | Unavailable
    sidecar: CoreMetadata | Unavailable
    wheel_file: WheelFile | Unavailable
    record: Record | Unavailable
    hash_faults: tuple[tuple[str, str], ...] | Unavailable
    accelerator: AcceleratorFacts | Unavailable
    version_files: tuple[VersionFile, ...] = ()
    dist_infos: tuple[str, ...] = ()
    listing: IndexFile | None = None
    target: Target | None = None
    siblings: tuple[Sibling, ...] = ()
    content_sha256: str = ""
    broken: str = ""
    bytes_read: int = 0
    bytes_cached: int = 0
    requests: int = 0
    seconds: float = 0.0

    def without_members(self) -> WheelFacts:
        """What comparing wheels with each other needs; the members of a whole release would fill the memory."""
        dropped = Unavailable("the members were judged already, and not kept")
        return replace(self, archive=dropped, record=dropped)
