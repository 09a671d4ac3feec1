"""A difference as the report holds it: JSON-ready facts, one sentence for people, and the name of the pair."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.difference.pairing import Pairing
from wheel_checks.facts.difference.wheels import Compared, Difference, Side
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Unavailable
from wheel_checks.phrases import human_bytes

MOST_NAMES = 1_000
"""Names that one list of the JSON report holds; ``count`` says how many there are."""


def pair_id(pair: Difference) -> str:
    """Such as ``torch 2.11.0 cp312: aarch64 against x86_64``; by their locations where they are alike otherwise."""
    a, b = _parts(pair.a), _parts(pair.b)
    common = [one for one, other in zip(a, b, strict=True) if one and one == other]
    own_a, own_b = (
        " ".join(part for part, rest in zip(own, others, strict=True) if part and part != rest)
        for own, others in ((a, b), (b, a))
    )
    if not own_a and not own_b:
        own_a, own_b = pair.a.location, pair.b.location
    return f"{' '.join(common)}: {own_a or '-'} against {own_b or '-'}".removeprefix(": ")


def _parts(side: Side) -> tuple[str, ...]:
    build, variant = side.build and f"build {side.build}", side.variant and f"variant {side.variant}"
    return side.project, side.version, build, side.python, side.machine, variant


def headline(pair: Difference) -> str:
    """For people: "CUDA 13.0, 419.7 MB against CUDA 13.0, 530.7 MB"."""
    return " against ".join(f"{_accelerator(side)}, {human_bytes(side.size)}" for side in (pair.a, pair.b))


def _accelerator(side: Side) -> str:
    return side.accelerator.label if isinstance(side.accelerator, AcceleratorFacts) else "unknown"


def pairing_facts(pairing: Pairing) -> dict[str, Any]:
    """Facts of two sets: ``pairs``, and what only one of them has."""
    return {"pairs": [list(pair) for pair in pairing.pairs], "only_a": pairing.only_a, "only_b": pairing.only_b}


def pair_facts(pair: Difference, a: WheelFacts, b: WheelFacts) -> dict[str, Any]:
    """Facts of a pair: ``a`` and ``b``, ``differences`` by section, ``same`` (counts), and ``not_compared`` with why.

    Sizes in bytes.
    """
    sections: dict[str, Compared[Any] | Unavailable] = {
        "metadata": pair.fields,
        "version_py": pair.values,
        "variant": pair.properties,
        "requirements": pair.requirements,
        "startup": pair.startup,
        "sizes": pair.sizes,
        "links": pair.links,
        "gpu_code": pair.gpu_code,
    }
    compared = {name: value for name, value in sections.items() if not isinstance(value, Unavailable)}
    differences: dict[str, Any] = {name: list(map(asdict, value.differences)) for name, value in compared.items()}
    same: dict[str, int] = {name: value.same for name, value in compared.items()}
    if not isinstance(pair.members, Unavailable):
        for kind, members in pair.members.items():
            name = kind.value.replace(" ", "_").replace("-", "_").lower()
            lists = {"only_a": members.only_a, "only_b": members.only_b, "changed": members.changed}
            differences[name] = {side: _names(names) for side, names in lists.items()}
            same[name] = members.same
    return {
        "name": pair.a.project if pair.a.project == pair.b.project else "",
        "version": pair.a.version if pair.a.version == pair.b.version else "",
        "a": _side(pair.a, a),
        "b": _side(pair.b, b),
        "differences": differences,
        "same": same,
        "not_compared": {name: _why(value) for name, value in sections.items() if isinstance(value, Unavailable)},
        "unread": {"links": pair.links_unread, "gpu_code": pair.gpu_code_unread},
    }


def _names(names: Sequence[str]) -> dict[str, Any]:
    return {"count": len(names), "names": names[:MOST_NAMES]}


def _why(value: Unavailable) -> str:
    return value.reason + (f" ({value.hint})" if value.hint else "")


def _side(side: Side, wheel: WheelFacts) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "file_name": side.file_name,
        "location": side.location,
        "version": side.version,
        "build": side.build,
        "python": side.python,
        "variant": side.variant,
        "machine": side.machine,
        "size": side.size,
        "bytes_read": wheel.bytes_read,
        "requests": wheel.requests,
    }
    if not isinstance(side.unpacked_size, Unavailable):
        facts["unpacked_size"] = side.unpacked_size
    if isinstance(side.accelerator, AcceleratorFacts):
        facts["accelerator"] = side.accelerator.accelerator
        facts["accelerator_version"] = side.accelerator.version
        facts["local_version"] = side.accelerator.local_version
    return facts
