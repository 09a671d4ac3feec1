"""Makes the facts of a wheel of its contents and of the request: the target, the listing, the sidecar."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.accelerator.shown import IS, NEEDS
from wheel_checks.facts.accelerator.signals import CUDA
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts, judge
from wheel_checks.facts.archive.facts import MAX_READ
from wheel_checks.facts.archive.kept import NOTHING_KEPT, AsJson, FileFacts
from wheel_checks.facts.wheel.contents import WheelContents
from wheel_checks.facts.wheel.contents_reading import read_contents
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import NO_SIDECAR, WheelFacts
from wheel_checks.facts.wheel.native_code import with_accelerator, with_gpu_code_for
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.index.digests import StatedHash, compare_hashes, first_difference
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.core_metadata import parse_core_metadata
from wheel_checks.formats.wheel.wheel_name import WheelName, parse_wheel_name
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource
from wheel_checks.targets.of_wheel import markers_of_tags, target_of_tags
from wheel_checks.targets.target import OLDEST_GLIBC, Target

if TYPE_CHECKING:  # few wheels are variants
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.facts.wheel.variant import VariantFacts, VariantIndex

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """A request to read a wheel: its file name, the index's statements, the target, and the depth.

    ``read_sidecar`` fetches the METADATA that the index serves next to the wheel (PEP 658), or is None.
    ``read_variants`` reads the variants of its release at the place of a variant wheel. ``accelerator`` is to be proven
    or refuted ("cuda", "cpu", ``ANY`` accelerator; ``ALL`` for its version): then native members are read until it is
    shown, within a larger bound. ``upload`` reads the facts that an index checks on upload. ``gpus`` requests the GPU
    code that decides whether it runs on them, at any depth; at most ``max_read`` bytes are streamed for it. With
    ``presence`` PTX that a driver compiles suffices. ``drivers`` requests the CUDA that made its code, as far as
    decides whether they run it: GPU code is read if nothing else shows it, and at depth gpu static runtimes, too. With
    ``first_use`` a wheel without GPU code is searched for code that is compiled at first use. ``glance`` reads the
    accelerator only partly: for a wheel whose accelerator was not requested.
    """

    file_name: str
    listing: IndexFile | None = None
    target: Target | None = None
    depth: Depth = Depth.QUICK
    read_sidecar: Callable[[], bytes] | None = None
    accelerator: str = ""
    gpus: tuple[Product, ...] = ()
    read_variants: Callable[[], VariantIndex | Unavailable] | None = None
    max_read: int = MAX_READ
    presence: bool = False
    glance: bool = False
    upload: bool = False
    first_use: bool = False
    drivers: tuple[str, ...] = ()


def read_wheel(source: ByteSource, request: Request, kept: FileFacts = NOTHING_KEPT) -> WheelFacts:
    """The facts of one wheel, with ``broken`` set for a broken archive; ``kept`` caches them. Raises SourceError."""
    started = time.perf_counter()
    name = _parsed(partial(parse_wheel_name, request.file_name))
    is_requested = request.target is not None
    if not is_requested and not isinstance(name, Unavailable):
        request = replace(request, target=target_of_tags(name.tags))
    contents = read_contents(source, name, request.depth, kept, request.max_read, glance=request.glance)
    if request.accelerator:
        contents = with_accelerator(contents, source, request.accelerator, kept)
    facts = _assemble(contents, source.location, request, name)
    wants_code = request.gpus or (request.drivers and _hides_its_cuda(facts))
    if wants_code and not request.depth.includes(Depth.GPU):
        facts = _with_gpu_code(facts, contents, source, kept, request)
    if request.drivers and request.depth.includes(Depth.GPU):
        facts = _with_static_runtimes(facts, source, kept)
    if request.gpus and request.first_use:
        facts = _with_first_use(facts, source, kept, request)
    if request.upload:
        from wheel_checks.facts.wheel.upload import read_upload

        facts = replace(facts, upload=read_upload(contents.metadata_bytes))
    facts = _of_project(replace(facts, is_target_requested=is_requested))
    cost = source.cost
    return replace(
        facts,
        bytes_read=facts.bytes_read + cost.bytes_read,
        bytes_cached=cost.bytes_cached,
        requests=facts.requests + cost.requests,
        seconds=time.perf_counter() - started,
    )


def _parsed(parse: Callable[[], T]) -> T | Unavailable:
    try:
        return parse()
    except FormatError as error:
        return Unavailable(str(error))


def _assemble(contents: WheelContents, location: str, request: Request, name: WheelName | Unavailable) -> WheelFacts:
    """The facts: those of the file, and their consequences for the target and the listing. Reads no file."""
    facts = WheelFacts(
        file_name=request.file_name,
        location=location,
        size=contents.size,
        name=name,
        archive=contents.archive,
        metadata=contents.metadata,
        sidecar=contents.archive if isinstance(contents.archive, Unavailable) else NO_SIDECAR,
        wheel_file=contents.wheel_file,
        record=contents.record,
        hash_faults=contents.hash_faults,
        accelerator=_accelerator(contents, _environment(request, name)),
        version_files=contents.version_files,
        dist_infos=contents.dist_infos,
        egg_infos=contents.egg_infos,
        listing=request.listing,
        target=request.target,
        elfs=contents.elfs,
        imports=contents.imports,
        sources=contents.sources,
        gpu_code=contents.gpu_code,
        content_sha256=contents.content_sha256,
        disguised=contents.disguised,
        startup=contents.startup,
        heads=contents.heads,
        broken=contents.broken,
    )
    if contents.broken:
        return facts
    label = "" if isinstance(name, Unavailable) else name.variant
    if label or contents.variant is not None:
        facts = replace(facts, variant=_variant(contents, label, request))
    return _with_sidecar(facts, request.read_sidecar, contents.metadata_bytes) if request.read_sidecar else facts


def _variant(contents: WheelContents, label: str, request: Request) -> VariantFacts:
    from wheel_checks.facts.wheel.variant import VariantFacts

    unknown = Unavailable("the wheel was not found on an index", "give its requirement with --index-url")
    index = request.read_variants() if request.read_variants and label else unknown
    missing = Unavailable(f"the wheel has no {contents.variant_member}")
    return VariantFacts(label, contents.variant_member, contents.variant or missing, index)


def _with_gpu_code(
    facts: WheelFacts, contents: WheelContents, source: ByteSource, kept: FileFacts, request: Request
) -> WheelFacts:
    """With the GPU code; nothing is read of a wheel that is built for something else than all of ``gpus``."""
    from wheel_checks.facts.gpu.code import is_for_others

    gpus, built_for = request.gpus, facts.accelerator
    if gpus and not isinstance(built_for, Unavailable) and all(is_for_others(built_for, gpu) for gpu in gpus):
        return replace(facts, gpu_code=Unavailable(f"the wheel is {built_for.label}"))
    project = "" if isinstance(facts.name, Unavailable) else canonicalize_name(facts.name.distribution)
    found = with_gpu_code_for(
        contents, source, kept, project, gpus, request.max_read, presence=request.presence, drivers=request.drivers
    )
    return replace(facts, gpu_code=found.gpu_code)


def _hides_its_cuda(facts: WheelFacts) -> bool:
    """True for a wheel with GPU code for CUDA, none of whose libraries needs a runtime of a known version."""
    found = facts.accelerator
    content = None if isinstance(found, Unavailable) else found.content
    return content is not None and content.is_bound_to(CUDA) and not content.versions(CUDA, NEEDS, IS)


def _with_static_runtimes(facts: WheelFacts, source: ByteSource, kept: FileFacts) -> WheelFacts:
    """With the CUDA runtimes that are linked into its libraries, but for those that need the shared one."""
    archive, elfs = facts.archive, facts.elfs
    if isinstance(archive, Unavailable) or isinstance(elfs, Unavailable):
        return facts
    from wheel_checks.facts.gpu.static_runtime import read_static_runtimes
    from wheel_checks.facts.gpu.toolkit import StaticRuntime

    dynamic = [(elf.member.name, elf.facts.dynamic) for elf in elfs if not isinstance(elf.facts, Unavailable)]
    shared = {
        name
        for name, found in dynamic
        if isinstance(found, DynamicFacts) and any(need.startswith("libcudart") for need in found.needed)
    }
    found = kept.remember(
        "static runtimes", AsJson(tuple[StaticRuntime, ...]), lambda: read_static_runtimes(source, archive, shared)
    )
    return replace(facts, static_runtimes=found)


def _with_first_use(facts: WheelFacts, source: ByteSource, kept: FileFacts, request: Request) -> WheelFacts:
    """With the compilers and the code for them of a wheel that has no GPU code itself."""
    from wheel_checks.facts.gpu.answer import answers

    code, archive = facts.gpu_code, facts.archive
    if isinstance(code, Unavailable) or isinstance(archive, Unavailable) or answers(code, request.gpus):
        return facts
    from wheel_checks.facts.gpu.first_use import FirstUse, read_first_use

    whole = request.depth.includes(Depth.GPU)
    part = "first use, whole" if whole else "first use"
    found = kept.remember(part, AsJson(FirstUse), lambda: read_first_use(source, archive, whole=whole))
    return replace(facts, first_use=found)


def _of_project(facts: WheelFacts) -> WheelFacts:
    """With the name of the project in the facts about GPU code, by which its own libraries are known."""
    if isinstance(facts.gpu_code, Unavailable) or isinstance(facts.name, Unavailable):
        return facts
    return replace(facts, gpu_code=replace(facts.gpu_code, project=canonicalize_name(facts.name.distribution)))


def _accelerator(contents: WheelContents, here: dict[str, str]) -> AcceleratorFacts | Unavailable:
    if isinstance(contents.archive, Unavailable):
        return contents.archive
    linux = {"os_name": "posix", "platform_system": "Linux", "sys_platform": "linux"}
    everywhere = [here | linux | {"platform_machine": machine} for machine in OLDEST_GLIBC]
    requirements = () if isinstance(contents.metadata, Unavailable) else contents.metadata.requirements
    members = [member.name for member in contents.archive.members]
    others = [markers for markers in everywhere if markers != here]
    return judge(members, contents.version_files, requirements, here, others, contents.accelerator)


def _environment(request: Request, name: WheelName | Unavailable) -> dict[str, str]:
    """The marker variables to judge by; without its own platform (``py3-none-any``) those of this host."""
    if request.target is not None:
        return request.target.markers()
    return markers_of_tags(() if isinstance(name, Unavailable) else name.tags)


def _with_sidecar(facts: WheelFacts, read_sidecar: Callable[[], bytes], own: bytes | Unavailable) -> WheelFacts:
    """With the index's copy of the wheel's METADATA. A copy whose hash differs from the stated one is not used."""
    try:
        data = read_sidecar()
    except SourceError as error:
        missing = Unavailable(f"the METADATA that the index offers for the wheel cannot be fetched: {error}")
        return replace(facts, sidecar=missing, sidecar_hash=missing, sidecar_difference=missing)
    facts = replace(facts, bytes_read=len(data), requests=1)
    stated = facts.listing.core_metadata if facts.listing else None
    hash_ = compare_hashes(data, stated or {}) or Unavailable("the index states no hash of the METADATA")
    if isinstance(hash_, StatedHash) and hash_.is_wrong:
        unused = Unavailable("the METADATA that the index serves is not used: its hash is not the stated one")
        return replace(facts, sidecar=unused, sidecar_hash=hash_, sidecar_difference=unused)
    difference = own if isinstance(own, Unavailable) else first_difference(data, own)
    sidecar = _parsed(partial(parse_core_metadata, data))
    return replace(facts, sidecar=sidecar, sidecar_hash=hash_, sidecar_difference=difference)
