"""Everything that the rules may know about one wheel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.security.startup import StartupFacts
from wheel_checks.facts.wheel.depth import NO_ELFS, NO_GPU_CODE, NO_HEADS, NO_RUNTIMES, NO_STARTUP, NOT_COMPARED
from wheel_checks.formats.index.digests import StatedHash, WrongHash
from wheel_checks.formats.index.page import IndexFile, OtherListing
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.record import Record
from wheel_checks.formats.wheel.version_file import VersionFile
from wheel_checks.formats.wheel.wheel_file import WheelFile
from wheel_checks.formats.wheel.wheel_name import WheelName
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import Target

if TYPE_CHECKING:  # depth quick, the most common, need not import the readers of ELF files and GPU code
    from wheel_checks.facts.elf.member_elf import MemberElf
    from wheel_checks.facts.elf.named_imports import NamedImportFacts
    from wheel_checks.facts.gpu.code import GpuCodeFacts
    from wheel_checks.facts.gpu.first_use import FirstUse
    from wheel_checks.facts.gpu.toolkit import StaticRuntime
    from wheel_checks.facts.links.linking import LinkFacts
    from wheel_checks.facts.wheel.native_heads import NativeHeads
    from wheel_checks.facts.wheel.upload import UploadFacts
    from wheel_checks.facts.wheel.variant import VariantFacts
    from wheel_checks.formats.wheel.python_source import ModuleSources

NO_SIDECAR = Unavailable("the index offers no METADATA separate from the wheel (PEP 658)")
_NO_LINKS = Unavailable("its libraries were not read", "--depth links")
NO_UPLOAD = Unavailable("upload metadata was not read")


@dataclass(frozen=True, slots=True)
class Sibling:
    """A wheel of the same release, Python and ABI for another machine.

    ``certainty`` is "exact" when that wheel was read in this run, "sampled" when one of its libraries shows the
    accelerator, "declared" when it follows from requirements whose markers were evaluated for its machine; then
    ``accelerator`` may be "".
    """

    file_name: str
    machine: str
    accelerator: str
    accelerator_version: str
    certainty: str
    source: str


@dataclass(frozen=True, slots=True)
class WheelFacts:
    """One wheel. Missing facts are ``Unavailable``, with the reason."""

    file_name: str  # of the wheel
    location: str  # path or URL
    size: int  # bytes
    name: WheelName | Unavailable  # parsed file name
    archive: Archive | Unavailable  # directory of the zip file
    metadata: CoreMetadata | Unavailable  # METADATA
    sidecar: CoreMetadata | Unavailable  # the index's copy of METADATA (PEP 658)
    wheel_file: WheelFile | Unavailable  # WHEEL
    record: Record | Unavailable  # RECORD
    # (member, sentence) for contents that match neither RECORD nor CRC
    hash_faults: tuple[tuple[str, str], ...] | Unavailable
    accelerator: AcceleratorFacts | Unavailable  # the build: CUDA, ROCm, CPU, ...
    sidecar_hash: StatedHash | Unavailable = NO_SIDECAR  # of the sidecar, as stated and as it is
    # first different line of sidecar and METADATA; None if they are equal
    sidecar_difference: tuple[str, str] | Unavailable | None = NO_SIDECAR
    version_files: tuple[VersionFile, ...] = ()  # such as torch/version.py
    dist_infos: tuple[str, ...] = ()  # names of top-level ``*.dist-info`` folders
    # egg-info folders, and why pip cannot read them; "" if it can
    egg_infos: tuple[tuple[str, str | Unavailable], ...] = ()
    listing: IndexFile | None = None  # the index's statements on it
    other_listings: tuple[OtherListing, ...] = ()  # other indexes' statements on a file of that name
    target: Target | None = None  # platform and Python that markers were evaluated for; None without a single target
    is_target_requested: bool = False  # else it is that of the tags
    siblings: tuple[Sibling, ...] = ()  # wheels of the same release for other machines
    elfs: tuple[MemberElf, ...] | Unavailable = NO_ELFS  # ELF members
    sources: ModuleSources | Unavailable = NO_ELFS  # Python modules that show the files loaded by an import
    imports: NamedImportFacts | Unavailable = NO_ELFS  # symbols that its libraries import by name
    links: LinkFacts | Unavailable = _NO_LINKS  # the link closure
    gpu_code: GpuCodeFacts | Unavailable = NO_GPU_CODE  # by library
    static_runtimes: tuple[StaticRuntime, ...] | Unavailable = NO_RUNTIMES  # CUDA runtimes inside its libraries
    first_use: FirstUse | None = None  # what compiles for a GPU; None if not requested, or if there is GPU code
    variant: VariantFacts | None = None  # None if neither its name nor a ``variant.json`` makes it a variant
    # (member, kind) of native code with names of data files
    disguised: tuple[tuple[str, str], ...] | Unavailable = NOT_COMPARED
    startup: StartupFacts | Unavailable = NO_STARTUP  # code that runs when Python starts, and entry points
    heads: NativeHeads | Unavailable = NO_HEADS  # kinds of native members by their first bytes
    upload: UploadFacts | Unavailable = NO_UPLOAD  # facts that an index checks on upload
    content_sha256: str = ""  # digest of the file; "" if it was not read whole
    wrong_metadata: tuple[WrongHash, ...] = ()  # METADATA of required wheels with another hash than its index states
    etag: str = ""  # strong validator of the server; "" without one
    broken: str = ""  # why the archive cannot be read at all; "" if it can
    bytes_read: int = 0  # of the wheel
    bytes_cached: int = 0  # from the cache
    requests: int = 0  # to servers
    seconds: float = 0.0  # spent reading

    def without_members(self) -> WheelFacts:
        """The facts needed to compare wheels with each other; the members of a whole release would fill the memory."""
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
