"""All rules, by id. A rule registers itself where it is defined; importing ``wheel_checks.rules`` loads them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from wheel_checks.errors import UsageError
from wheel_checks.model import Finding, Rule, Severity

Check = TypeVar("Check", bound=Callable[[Any, Any], Iterable[Finding]])

_RULES: dict[str, Rule] = {}


def rule(
    rule_id: str, title: str, severity: Severity, *, why: str, example: str, fix: str, kind: str = "wheel"
) -> Callable[[Check], Check]:
    """Register the decorated pure function ``(facts, expectations) -> findings`` as a rule.

    Ids are never reused: WHL wheels, STK stacks, REL releases, PIN pins, DOC doctor, KRN kernels, MTX matrix.
    """

    def register(check: Check) -> Check:
        if rule_id in _RULES:
            raise ValueError(f"rule id {rule_id} is taken by {_RULES[rule_id].title!r}")
        _RULES[rule_id] = Rule(rule_id, title, kind, severity, why, example, fix, check)
        return check

    return register


def all_rules() -> list[Rule]:
    """Every registered rule, ordered by id."""
    import wheel_checks.rules  # noqa: F401, PLC0415  # they import this module; importing the package registers its rules

    return [_RULES[rule_id] for rule_id in sorted(_RULES)]


def get_rule(rule_id: str) -> Rule:
    """The rule with this id (case does not matter). Raises UsageError when there is none."""
    found = {rule.id: rule for rule in all_rules()}.get(rule_id.upper())
    if found is None:
        raise UsageError(f"no rule has the id {rule_id!r}", hint="`wheelproof rules` lists them")
    return found


def select_rules(kind: str, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[Rule]:
    """The rules for subjects of ``kind`` whose ids begin with a prefix in ``select`` and with none in ``ignore``.

    An empty ``select`` means all. A prefix that matches no rule of any kind raises UsageError: a misspelt filter must
    not pass silently.
    """
    rules = all_rules()
    for prefix in (*select, *ignore):
        if not any(rule.id.startswith(prefix.upper()) for rule in rules):
            raise UsageError(f"no rule starts with {prefix!r}", hint="`wheelproof rules` lists them")
    chosen = tuple(prefix.upper() for prefix in select) or ("",)
    ignored = tuple(prefix.upper() for prefix in ignore)
    return [r for r in rules if r.kind == kind and r.id.startswith(chosen) and not r.id.startswith(ignored or ("\0",))]
