"""The facts of a wheel as the report shows them: JSON-ready, and one sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wheel_checks.facts.accelerator import AcceleratorFacts
from wheel_checks.facts.signals import CUDA, active_requirements
from wheel_checks.facts.wheel import Archive, WheelFacts
from wheel_checks.formats.wheel_name import WheelName
from wheel_checks.model import Unavailable


def headline(wheel: WheelFacts) -> str:
    """For people: "CUDA 13.0 (2.11.0+cu130)", "CPU only (2.10.0+cpu)", "not a readable wheel"."""
    facts = wheel.accelerator
    if isinstance(facts, Unavailable):
        return "not a readable wheel"
    return f"{facts.label} ({facts.local_version})" if facts.local_version else facts.label


def summarize(wheel: WheelFacts) -> dict[str, Any]:
    """Facts for the report's ``subjects[].facts``. Sizes in bytes; a fact that could not be had is left out."""
    facts: dict[str, Any] = {"location": wheel.location, "size": wheel.size}
    if isinstance(wheel.name, WheelName):
        facts |= _of_name(wheel.name)
    if wheel.target is not None:
        facts |= {"target": wheel.target.label, "machine": wheel.target.machine}
    if digest := _sha256(wheel):
        facts["sha256"] = digest
    if isinstance(wheel.accelerator, AcceleratorFacts):
        facts |= _of_accelerator(wheel.accelerator)
    if isinstance(wheel.archive, Archive):
        facts["members"] = len(wheel.archive.members)
        facts["unpacked_size"] = sum(member.size for member in wheel.archive.members)
    if not isinstance(wheel.metadata, Unavailable) and wheel.target is not None:
        active = active_requirements(wheel.metadata.requirements, wheel.target.markers())
        facts["requirements"] = [str(requirement) for requirement in active]
    if not isinstance(wheel.metadata, Unavailable) and wheel.metadata.requires_python:
        facts["requires_python"] = wheel.metadata.requires_python
    if wheel.listing is not None:
        facts |= _of_listing(wheel)
    return facts | {
        "bytes_read": wheel.bytes_read,
        "bytes_cached": wheel.bytes_cached,
        "requests": wheel.requests,
        "seconds": round(wheel.seconds, 3),
    }


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


def _of_listing(wheel: WheelFacts) -> Mapping[str, Any]:
    listing = wheel.listing
    if listing is None:
        return {}
    facts: dict[str, Any] = {"index": listing.index, "yanked": listing.yanked is not None}
    if listing.upload_time:
        facts["upload_time"] = listing.upload_time
    return facts


def _sha256(wheel: WheelFacts) -> str:
    """The digest of the file where it was read whole, else the index's word."""
    return wheel.content_sha256 or (wheel.listing.hashes.get("sha256", "") if wheel.listing else "")
