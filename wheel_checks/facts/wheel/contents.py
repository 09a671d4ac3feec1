"""The facts in a wheel's bytes: the same for every target, index, command and expectation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheel_checks.facts.accelerator.shown import AcceleratorContent
from wheel_checks.facts.accelerator.verdict import NOT_READ
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.security.startup import StartupFacts
from wheel_checks.facts.wheel.depth import NO_ELFS, NO_GPU_CODE, NO_HEADS, NO_STARTUP, NOT_COMPARED, Depth
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.record import Record
from wheel_checks.formats.wheel.version_file import VersionFile
from wheel_checks.formats.wheel.wheel_file import WheelFile
from wheel_checks.model import Unavailable

if TYPE_CHECKING:  # depth quick, the most common, need not import the readers of ELF files and GPU code
    from wheel_checks.facts.elf.member_elf import MemberElf
    from wheel_checks.facts.elf.named_imports import NamedImportFacts
    from wheel_checks.facts.gpu.code import GpuCodeFacts
    from wheel_checks.facts.wheel.native_heads import NativeHeads
    from wheel_checks.formats.wheel.python_source import ModuleSources
    from wheel_checks.formats.wheel.variant_metadata import VariantMetadata


@dataclass(frozen=True, slots=True)
class WheelContents:
    """The facts in the bytes of one wheel, as in ``WheelFacts``; missing ones are ``Unavailable``."""

    size: int  # bytes
    depth: Depth  # how much was read
    archive: Archive | Unavailable
    metadata: CoreMetadata | Unavailable
    metadata_bytes: bytes | Unavailable  # METADATA as it is, to compare it with the index's copy
    wheel_file: WheelFile | Unavailable
    record: Record | Unavailable
    dist_infos: tuple[str, ...] = ()
    egg_infos: tuple[tuple[str, str | Unavailable], ...] = ()
    version_files: tuple[VersionFile, ...] = ()
    variant_member: str = ""  # actual or expected path of ``variant.json``
    variant: VariantMetadata | Unavailable | None = None  # None without a ``variant.json``
    elfs: tuple[MemberElf, ...] | Unavailable = NO_ELFS
    sources: ModuleSources | Unavailable = NO_ELFS
    imports: NamedImportFacts | Unavailable = NO_ELFS
    gpu_code: GpuCodeFacts | Unavailable = NO_GPU_CODE
    accelerator: AcceleratorContent | Unavailable = NOT_READ  # the accelerator by the content
    hash_faults: tuple[tuple[str, str], ...] | Unavailable = NOT_COMPARED
    content_sha256: str = ""
    disguised: tuple[tuple[str, str], ...] | Unavailable = NOT_COMPARED
    startup: StartupFacts | Unavailable = NO_STARTUP
    heads: NativeHeads | Unavailable = NO_HEADS
    broken: str = ""
