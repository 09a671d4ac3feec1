"""Everything that the rules may know about one wheel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.security.startup import StartupFacts
from wheel_checks.facts.wheel.depth import NO_ELFS, NO_GPU_CODE, NO_HEADS, NO_STARTUP, NOT_COMPARED
from wheel_checks.formats.digests import StatedHash, WrongHash
from wheel_checks.formats.index_page import IndexFile, OtherListing
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.record import Record
from wheel_checks.formats.wheel.version_file import VersionFile
from wheel_checks.formats.wheel.wheel_file import WheelFile
from wheel_checks.formats.wheel.wheel_name import WheelName
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import Target

if TYPE_CHECKING:  # depth quick, the most common, need not load what reads ELF files and GPU code
    from wheel_checks.facts.elf.member_elf import MemberElf
    from wheel_checks.facts.elf.named_imports import NamedImportFacts
    from wheel_checks.facts.gpu.code import GpuCodeFacts
    from wheel_checks.facts.links.linking import LinkFacts
    from wheel_checks.facts.wheel.native_heads import NativeHeads
    from wheel_checks.facts.wheel.upload import UploadFacts
    from wheel_checks.facts.wheel.variant import VariantFacts
    from wheel_checks.formats.wheel.python_source import ModuleSources

NO_SIDECAR = Unavailable("the index offers no METADATA separate from the wheel (PEP 658)")
_NO_LINKS = Unavailable("libraries are not followed at depth quick", "--depth links")
NO_UPLOAD = Unavailable("upload metadata was not read")


@dataclass(frozen=True, slots=True)
class Sibling:
    """A wheel of the same release, Python and ABI for another machine.

    ``certainty`` is "exact" when that wheel was read in this run, "sampled" when one of its libraries shows the
    accelerator, "declared" when it follows from requirements whose markers were evaluated for its machine; then
    ``accelerator`` is "" where these say nothing.
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

    ``broken`` is the sentence that says why the archive cannot be read at all ("" when it can). ``sources`` are the
    Python modules that show what an import loads. ``variant`` is None for a wheel that is not a variant: neither a
    label in its name nor a ``variant.json``. ``listing`` is what the index says of it, ``other_listings`` what other
    indexes say of a file of that name. ``target`` is the platform and Python for which markers were evaluated (None: no
    single target is meant). ``dist_infos`` are the names of all top-level ``*.dist-info`` folders, ``egg_infos`` those
    of egg-info folders with why pip cannot read them, "" where it can; ``sidecar`` is the METADATA
    that the index serves next to the wheel (PEP 658), ``sidecar_hash`` its hash as stated and as it is, and
    ``sidecar_difference`` the first line in which it differs from the wheel's own, of both, None when they are equal;
    ``wrong_metadata`` is METADATA that indexes serve of required wheels with another hash than they state;
    ``hash_faults`` are ``(member, sentence)`` of contents that match neither RECORD nor CRC; ``disguised`` are
    ``(member, kind)`` of native code under names of data; ``startup`` is what runs when Python starts, and the entry
    points; ``heads`` is what native members are by their first bytes; ``upload`` is what an index looks at besides;
    ``content_sha256`` is the digest of the file itself, "" unless it was read whole; ``etag`` is the strong validator
    of the server, "" without one.
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
    sidecar_hash: StatedHash | Unavailable = NO_SIDECAR
    sidecar_difference: tuple[str, str] | Unavailable | None = NO_SIDECAR
    version_files: tuple[VersionFile, ...] = ()
    dist_infos: tuple[str, ...] = ()
    egg_infos: tuple[tuple[str, str | Unavailable], ...] = ()
    listing: IndexFile | None = None
    other_listings: tuple[OtherListing, ...] = ()
    target: Target | None = None
    siblings: tuple[Sibling, ...] = ()
    elfs: tuple[MemberElf, ...] | Unavailable = NO_ELFS
    sources: ModuleSources | Unavailable = NO_ELFS
    imports: NamedImportFacts | Unavailable = NO_ELFS
    links: LinkFacts | Unavailable = _NO_LINKS
    gpu_code: GpuCodeFacts | Unavailable = NO_GPU_CODE
    variant: VariantFacts | None = None
    disguised: tuple[tuple[str, str], ...] | Unavailable = NOT_COMPARED
    startup: StartupFacts | Unavailable = NO_STARTUP
    heads: NativeHeads | Unavailable = NO_HEADS
    upload: UploadFacts | Unavailable = NO_UPLOAD
    content_sha256: str = ""
    wrong_metadata: tuple[WrongHash, ...] = ()
    etag: str = ""
    broken: str = ""
    bytes_read: int = 0
    bytes_cached: int = 0
    requests: int = 0
    seconds: float = 0.0

    def without_members(self) -> WheelFacts:
        """What comparing wheels with each other needs; the members of a whole release would fill the memory."""
        dropped = Unavailable("the members were already checked, and not kept")
        return replace(
            self,
            archive=dropped,
            record=dropped,
            elfs=dropped,
            heads=dropped,
            sources=dropped,
            imports=dropped,
            links=dropped,
            gpu_code=dropped,
        )
