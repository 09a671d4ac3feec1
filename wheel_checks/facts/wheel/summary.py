"""The facts of a wheel as the report shows them: JSON-ready, and one sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wheel_checks.facts.accelerator.signals import CUDA, active_requirements
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.wheel.wheel_name import WheelName
from wheel_checks.model import Unavailable, need

if TYPE_CHECKING:  # depth quick need not import the readers of links and GPU code
    from wheel_checks.facts.gpu.first_use import FirstUse
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.facts.links.linking import LinkFacts
    from wheel_checks.facts.wheel.variant import VariantFacts


def headline(wheel: WheelFacts) -> str:
    """For people: "CUDA 13.0 (2.11.0+cu130)", "CPU only (2.10.0+cpu)", "not a readable wheel"."""
    facts = wheel.accelerator
    if isinstance(facts, Unavailable):
        return "not a readable wheel"
    variant = wheel.variant.label if wheel.variant else ""
    return f"{facts.described}, variant {variant}" if variant else facts.described


def summarize(wheel: WheelFacts, gpus: Sequence[Product] = ()) -> dict[str, Any]:
    """Facts for the report's ``subjects[].facts``. Sizes in bytes; missing facts are omitted.

    ``gpus`` are the products for which the report says how the wheel runs on them.
    """
    facts: dict[str, Any] = {"location": wheel.location, "size": wheel.size}
    if isinstance(wheel.name, WheelName):
        facts |= _of_name(wheel.name)
    if wheel.target is not None:
        facts |= {"target": wheel.target.label, "machine": wheel.target.machine, "system": wheel.target.system}
    if digest := _sha256(wheel):
        facts["sha256"] = digest
    if isinstance(wheel.accelerator, AcceleratorFacts):
        facts |= _of_accelerator(wheel.accelerator)
    if isinstance(wheel.archive, Archive):
        facts["members"] = len(wheel.archive.members)
        if "native_members" not in facts:
            facts["native_members"] = {"count": _libraries_by_name(wheel.archive), "known": 0}
        facts["unpacked_size"] = sum(member.size for member in wheel.archive.members)
        facts["archive"] = {"proven": wheel.archive.mapped, "local_headers_read": wheel.archive.local_headers_read}
    if not isinstance(wheel.metadata, Unavailable) and wheel.target is not None:
        active = active_requirements(wheel.metadata.requirements, wheel.target.markers())
        facts["requirements"] = [str(requirement) for requirement in active]
    if not isinstance(wheel.metadata, Unavailable) and wheel.metadata.requires_python:
        facts["requires_python"] = wheel.metadata.requires_python
    if wheel.variant is not None:
        facts["variant"] = _of_variant(wheel.variant)
    facts |= _of_libraries(wheel, gpus) | _of_listing(wheel)
    return facts | {
        "bytes_read": wheel.bytes_read,
        "bytes_cached": wheel.bytes_cached,
        "requests": wheel.requests,
        "seconds": round(wheel.seconds, 3),
    }


def _libraries_by_name(archive: Archive) -> int:
    from wheel_checks.facts.elf.native_members import is_library  # imports the readers of ELF files

    return sum(is_library(member.name) for member in archive.members)


def _of_variant(found: VariantFacts) -> dict[str, Any]:
    """Label and properties of a variant wheel, and the revision of the drafts that describes it."""
    facts: dict[str, Any] = {"label": found.label}
    if not isinstance(found.metadata, Unavailable):
        facts["schema"] = found.metadata.schema
    if not isinstance(found.variant, Unavailable):
        facts["properties"] = list(map(str, found.variant.properties))
    return facts


def _of_name(name: WheelName) -> dict[str, Any]:
    tags = sorted(map(str, name.tags))
    return {
        "name": name.distribution,
        "version": name.version,
        "build": name.build,
        "tags": tags,
        "python": ".".join(sorted({tag.interpreter for tag in name.tags})),
        "platform": ".".join(sorted({tag.platform for tag in name.tags})),
    }


def _of_accelerator(found: AcceleratorFacts) -> dict[str, Any]:
    facts: dict[str, Any] = {"accelerator": found.accelerator, "accelerator_version": found.version}
    facts["accelerator_certainty"] = found.certainty
    if found.accelerator == CUDA and found.majors:
        facts["cuda_majors"] = list(found.majors)
    if found.content:
        facts["native_members"] = {"count": found.content.native, "known": found.content.read}
    if found.unread:
        facts["native_members_unread"] = found.unread
    if found.accelerator == CUDA and found.version:
        facts["cuda"] = found.version
    if found.others:
        facts["other_accelerators"] = list(found.others)
    if found.local_version:
        facts["local_version"] = found.local_version
    facts["signals"] = [
        {"name": s.name, "says": list(s.accelerators), "version": s.version, "detail": s.detail, "source": s.source}
        for s in found.signals
    ]
    return facts


def _of_libraries(wheel: WheelFacts, gpus: Sequence[Product]) -> dict[str, Any]:
    """The wheel's links and GPU code, as far as they were read."""
    facts = {} if isinstance(wheel.links, Unavailable) else {"links": _of_links(wheel.links) | _of_symbols(wheel)}
    if isinstance(wheel.gpu_code, Unavailable):
        return facts
    from wheel_checks.facts.gpu.summary import summarize_gpu_code

    code = summarize_gpu_code(wheel.gpu_code, gpus)
    if wheel.first_use is not None:
        code["compiled_at_first_use"] = _of_first_use(wheel.first_use)
    return facts | {"gpu_code": code}


def _of_first_use(found: FirstUse) -> dict[str, Any]:
    """The signs that a wheel without GPU code compiles, and the targets of its compilers."""
    return {
        "signs": [{"what": sign.what, "member": sign.member, "compiler": sign.compiler} for sign in found.signs],
        "compilers": [
            {"member": one.member, "unavailable": one.targets.reason}
            if isinstance(one.targets, Unavailable)
            else {"member": one.member, "targets": [f"sm_{sm}" for sm in one.targets]}
            for one in found.compilers
        ],
    }


def _of_links(links: LinkFacts) -> dict[str, Any]:
    """Every DT_NEEDED with its status, the file that satisfies it and the wheel that provides that."""
    needs = [
        {
            "elf": item.elf,
            "of": links.owners[item.elf],
            "needs": item.soname,
            "status": str(item.status),
            "by": item.by,
            "wheel": links.owners.get(item.by, ""),
            "how": item.how,
            "certain": item.certain,
        }
        for item in links.closure.needs
    ]
    return {
        "resolved_by": links.how,
        "wheels": list(links.wheels),
        "needs": needs,
        "orphans": list(links.closure.orphans),
        "unread": list(links.closure.unread),
        "not_followed": list(links.not_followed),
        "absent": _absent(links),
    }


def _of_symbols(wheel: WheelFacts) -> dict[str, Any]:
    """How many files' symbols were looked up, and the files for the stable ABI whose symbols were not read."""
    looked_up = need(wheel.links).symbols
    facts: dict[str, Any] = {} if isinstance(looked_up, Unavailable) else {"symbols": looked_up.judged}
    tags = wheel.name.tags if isinstance(wheel.name, WheelName) else frozenset()
    stable = any(tag.abi == "abi3" for tag in tags)
    unread = () if isinstance(wheel.imports, Unavailable) else wheel.imports.unread
    return facts | {"stable_abi_unread": [name for name in unread if stable or name.endswith(".abi3.so")]}


def _absent(links: LinkFacts) -> list[dict[str, str]]:
    """The required packages without a wheel for the target."""
    return [] if isinstance(links.absent, Unavailable) else [{"name": a.name, "why": a.why} for a in links.absent]


def _of_listing(wheel: WheelFacts) -> dict[str, Any]:
    listing = wheel.listing
    if listing is None:
        return {}
    facts: dict[str, Any] = {"index": listing.index, "yanked": listing.yanked is not None}
    if listing.upload_time:
        facts["upload_time"] = listing.upload_time
    return facts


def _sha256(wheel: WheelFacts) -> str:
    """The digest of the file if it was read whole, else the index's."""
    return wheel.content_sha256 or (wheel.listing.hashes.get("sha256", "") if wheel.listing else "")
