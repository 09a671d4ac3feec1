"""The facts of an installed environment as the report shows them: JSON-ready, and one sentence for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.gpu.summary import summarize_gpu_code
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.installed.facts import InstalledDistribution, InstalledEnvironment, RecordedFiles
from wheel_checks.facts.links.closure import Closure
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.model import Unavailable
from wheel_checks.phrases import plural


def headline(inside: InstalledEnvironment) -> str:
    """For people: "torch 2.11.0+cu130, CUDA 13.0; 29 distributions for cp312 aarch64"."""
    held = plural(len(inside.distributions), "distribution", grouping="")
    held += "" if isinstance(inside.target, Unavailable) else f" for {inside.target.label}"
    torch = inside.named("torch")
    if torch is None or not isinstance(inside.accelerator, AcceleratorFacts):
        return held
    return f"torch {inside.accelerator.local_version or torch.version}, {inside.accelerator.label}; {held}"


def summarize(inside: InstalledEnvironment) -> dict[str, Any]:
    """Facts for ``subjects[].facts`` of an environment. Paths of libraries are relative to the folder of imports."""
    environment = inside.environment
    facts: dict[str, Any] = {
        "location": environment.path,
        "environment": environment.kind,
        "found": environment.found,
        "paths": [{"path": entry.path, "origin": entry.origin} for entry in environment.entries],
        "machine": environment.machine,
        "distributions": len(inside.distributions),
    }
    if not environment.tree.is_this_machine:
        facts["root"] = environment.tree.root
    if environment.interpreter:
        facts["interpreter"] = environment.interpreter
    if not isinstance(inside.target, Unavailable):
        facts |= {"target": inside.target.label, "python": inside.target.interpreter}
    if isinstance(inside.accelerator, AcceleratorFacts):
        facts |= {"accelerator": inside.accelerator.accelerator, "accelerator_version": inside.accelerator.version}
        facts |= {"cuda": inside.accelerator.version} if inside.accelerator.accelerator == "cuda" else {}
        facts |= {"local_version": inside.accelerator.local_version} if inside.accelerator.local_version else {}
    if isinstance(inside.closure, Closure):
        facts["closure"] = _of_closure(inside, inside.closure)
    return facts | {"bytes_read": inside.bytes_read, "seconds": round(inside.seconds, 3)}


def _of_closure(inside: InstalledEnvironment, closure: Closure) -> dict[str, Any]:
    owners = {
        path: distribution.name
        for distribution in inside.distributions
        if isinstance(distribution.files, RecordedFiles)
        for path in distribution.files.owned
    }
    needs = [
        {
            "elf": inside.relative(need.elf),
            "soname": need.soname,
            "status": need.status.value,
            "by": inside.relative(need.by),
            "distribution": owners.get(need.by, ""),
            "how": need.how,
        }
        for need in closure.needs
    ]
    return {
        "count": dict(Counter(need.status.value for need in closure.needs)),
        "needs": needs,
        "orphans": [inside.relative(path) for path in closure.orphans],
    }


def summarize_distribution(subject: InstalledDistribution, gpus: Sequence[Product] = ()) -> dict[str, Any]:
    """Facts for ``subjects[].facts`` of one distribution. ``size`` is the sum of what RECORD states, in bytes.

    ``gpus`` are the products of which to say how its GPU code, if it has some, runs on them.
    """
    distribution = subject.distribution
    facts: dict[str, Any] = {
        "name": distribution.name,
        "version": distribution.version,
        "location": distribution.folder,
        "installer": distribution.installer,
        "requested": distribution.requested,
        "editable": distribution.editable,
    }
    if distribution.url:
        facts["url"] = distribution.url
    if distribution.shadowed_by:
        facts["hidden_by"] = distribution.shadowed_by
    if isinstance(distribution.metadata, CoreMetadata):
        facts["requirements"] = [str(requirement) for requirement in distribution.metadata.requirements]
    if isinstance(distribution.files, RecordedFiles):
        facts["files"] = len(distribution.files.owned)
    if not isinstance(distribution.record, Unavailable):
        facts["size"] = sum(row.size or 0 for row in distribution.record.rows)
    if not isinstance(subject.gpu_code, Unavailable) and subject.gpu_code.libraries:
        facts["gpu_code"] = summarize_gpu_code(subject.gpu_code, gpus)
    return facts
