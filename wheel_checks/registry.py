"""The registry of rules, which they enter as they are defined; ``wheel_checks.catalogue`` loads and finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from wheel_checks.model import Audience, Finding, Rule, Severity

Check = TypeVar("Check", bound=Callable[[Any, Any], Iterable[Finding]])

RETIRED = {"REL313": "SBOM documents match the files that they describe: no index checks it at upload"}
"""The ids of removed rules, which are never reused, with the title of each rule and why it was removed."""

_RULES: dict[str, Rule] = {}
_FOREIGN: dict[str, Rule] = {}


def rule(
    rule_id: str,
    title: str,
    severity: Severity = Severity.ERROR,
    *,
    why: str,
    example: str,
    fix: str,
    kind: str = "wheel",
    audience: Audience = Audience.BOTH,
    decides: bool = True,
    sources: Iterable[str] = (),
    tested: str = "",
) -> Callable[[Check], Check]:
    """Register the decorated pure function ``(facts, expectations) -> findings`` as a rule.

    Ids are never reused: WHL wheels, SEC start-up code of wheels, STK stacks, REL releases, PIN pins, DOC doctor, KRN
    kernels, MTX matrix, PLG plug-ins.
    """

    def register(check: Check) -> Check:
        if rule_id in RETIRED:
            raise ValueError(f"rule id {rule_id} is retired: {RETIRED[rule_id]}")
        if rule_id in _RULES:
            raise ValueError(f"rule id {rule_id} is already used by {_RULES[rule_id].title!r}")
        described = Rule(rule_id, title, kind, severity, why, example, fix, check, audience)
        _RULES[rule_id] = replace(described, sources=tuple(sources), tested=tested, decides=decides)
        return check

    return register


def rules_of(
    kind: str, audience: Audience = Audience.BOTH, *, decides: bool = True
) -> Callable[..., Callable[[Check], Check]]:
    """:func:`rule` for subjects of ``kind``, and for ``audience`` if a rule names no other."""
    return partial(rule, kind=kind, audience=audience, decides=decides)


def registered() -> list[Rule]:
    """The rules that have been registered so far, ordered by id."""
    known = _FOREIGN | _RULES
    return [known[rule_id] for rule_id in sorted(known)]


def set_foreign(rules: Iterable[Rule]) -> None:
    """Make the rules of plug-ins known, instead of those that were before; none of them hides a built-in one."""
    _FOREIGN.clear()
    _FOREIGN.update((rule.id, rule) for rule in rules)
