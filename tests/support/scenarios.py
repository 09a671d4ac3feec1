"""Scenarios: files with the facts of a host, and the expected diagnosis.

{"name": "the fabric manager does not run", "catalogue": "D01",
 "base": ["hgx", ["cuda_fails", 802]],                  # builders of tests.support.hosts, one applied to the other
 "facts": {"services": {"processes": []}},              # the differences, as in `wheelproof.host/1`
 "expect": {"root": "DOC401", "confidence": "proven"}}

Without "base", "facts" are complete: the file of `wheelproof doctor --save-facts`. In a difference, an object in place
of a list of objects changes the named ones (by name, path, index, ...), adds new ones, and omits those under "-". Any
other value replaces the base's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import hosts, other_hosts
from wheel_checks.facts.host.codec import from_json, to_json
from wheel_checks.facts.host.facts import HostFacts

FOLDER = Path(__file__).resolve().parents[1] / "data" / "scenarios"
REMOVE = "-"
IDENTITIES = ("index", "address", "path", "name", "variable", "rule")  # fields that may name an object of a list


@dataclass(frozen=True)
class Expected:
    """``root`` is None if none exists; ``silent`` are rules that must say nothing, ``others`` those next to it."""

    root: str | None
    confidence: str = ""
    consequences: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One file."""

    file: str
    name: str
    catalogue: str
    facts: HostFacts
    expected: Expected


def scenarios() -> list[Scenario]:
    """All of them, in the order of the catalogue."""
    return [read_scenario(path) for path in sorted(FOLDER.glob("*.json"))]


def read_scenario(path: Path) -> Scenario:
    """The scenario in a file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    facts = data["facts"]
    if "base" in data:
        facts = patched(to_json(built(data["base"])), facts)
    expected: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data["expect"].items()
    }
    return Scenario(path.stem, data["name"], data["catalogue"], from_json(facts), Expected(**expected))


def built(steps: list[Any]) -> HostFacts:
    """The host that the builders make: ``["hgx", ["cuda_fails", 802, {"library": "..."}]]``."""
    facts = None
    for step in steps:
        name, *arguments = [step] if isinstance(step, str) else list(step)
        options: Any = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
        facts = getattr(hosts if hasattr(hosts, name) else other_hosts, name)(
            *([] if facts is None else [facts]), *arguments, **options
        )
    assert isinstance(facts, HostFacts)
    return facts


def patched(base: Any, change: Any) -> Any:
    """``base`` with the change applied, as the module's docstring says."""
    if not isinstance(change, Mapping):
        return change
    if isinstance(base, list) and all(isinstance(item, Mapping) for item in base):
        return _patched_list(base, change)
    if not isinstance(base, Mapping) or "unavailable" in change or "unavailable" in base:
        base = {}
    changed = {name: patched(base.get(name), value) for name, value in change.items() if name != REMOVE}
    return {name: value for name, value in {**base, **changed}.items() if name not in change.get(REMOVE, ())}


def _patched_list(base: list[Any], change: Mapping[str, Any]) -> list[Any]:
    identity = identity_of(base)
    gone = change.get(REMOVE, ())
    named = {str(item[identity]): item for item in base}
    kept = [patched(item, change.get(name, {})) for name, item in named.items() if name not in gone]
    return kept + [value for name, value in change.items() if name != REMOVE and name not in named]


def identity_of(items: list[Any]) -> str:
    """The field that distinguishes the objects of a list; "" when none does."""

    def tells(field: str) -> bool:
        return len({str(item[field]) for item in items if field in item}) == len(items)

    return next(filter(tells, IDENTITIES), "")
