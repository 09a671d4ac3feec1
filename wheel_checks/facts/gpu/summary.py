"""GPU code as the report shows it: JSON-ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wheel_checks.facts.gpu.answer import answers
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.gpu.targets import Coverage, Product
from wheel_checks.model import Unavailable


def summarize_gpu_code(found: GpuCodeFacts, gpus: Sequence[Product]) -> dict[str, Any]:
    """The deciding library, every library with GPU code, and how it runs on each of ``gpus``."""
    verdict = found.verdict
    facts: dict[str, Any] = {"sass": [], "ptx": [], "certainty": "exact"}
    if isinstance(verdict, Unavailable):
        facts = {"unavailable": verdict.reason}
    elif verdict is not None:
        whole = found.whole if verdict == found.main else verdict[1]
        facts = {"sass": list(whole.sass), "ptx": list(whole.ptx), "certainty": whole.certainty}
    if found.declared:
        facts["declared"] = [*found.declared.sass, *found.declared.ptx]
    if gpus:
        facts["products"] = [
            {
                "name": answer.product.name,
                "capability": answer.product.capability,
                "runs": answer.runs.how,
                "code": answer.runs.label,
                "member": answer.member,
                "why": answer.runs.why,
                **({"perhaps_native": True} if answer.is_perhaps_native else {}),
                **(_coverage(answer.coverage) if answer.coverage else {}),
            }
            for answer in answers(found, gpus)
        ]
    known = [
        {
            "member": library.member,
            "sass": list(library.code.sass),
            "ptx": list(library.code.ptx),
            "entries": dict(library.code.counts),
            "certainty": library.code.certainty,
            "bytes_read": library.bytes_read,
        }
        for library in found.libraries
        if not isinstance(library.code, Unavailable) and library.code.counts
    ]
    unread = [{"member": member, "unavailable": reason.reason} for member, reason in found.unread]
    return facts | {"libraries": [*known, *unread]}


def _coverage(found: Coverage) -> dict[str, Any]:
    """How many of the deciding library's compiled files have code for a product."""
    return {"compiled_files": {"running": found.running, "all": found.files}}
