"""All rules: by kind, by id, by prefix."""

from collections.abc import Sequence

from wheel_checks import rules
from wheel_checks.errors import UsageError
from wheel_checks.model import Rule
from wheel_checks.registry import registered


def all_rules() -> list[Rule]:
    """Every rule, ordered by id."""
    rules.load()
    return registered()


def get_rule(rule_id: str) -> Rule:
    """The rule with this id (case does not matter). Raises UsageError if none exists."""
    found = {rule.id: rule for rule in all_rules()}.get(rule_id.upper())
    if found is None:
        raise UsageError(f"no rule has the id {rule_id!r}", hint="`wheelproof rules` lists them")
    return found


def select_rules(kind: str, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[Rule]:
    """The rules for subjects of ``kind`` whose ids start with a prefix in ``select`` and with none in ``ignore``.

    An empty ``select`` means all. A prefix that matches no rule of any kind raises UsageError: a misspelt filter must
    not pass silently.
    """
    known = [] if not (select or ignore) else all_rules()
    for prefix in (*select, *ignore):
        if not any(rule.id.startswith(prefix.upper()) for rule in known):
            raise UsageError(f"no rule starts with {prefix!r}", hint="`wheelproof rules` lists them")
    rules.load(kind)
    chosen = tuple(prefix.upper() for prefix in select) or ("",)
    ignored = tuple(prefix.upper() for prefix in ignore) or ("\0",)
    return [r for r in registered() if r.kind == kind and r.id.startswith(chosen) and not r.id.startswith(ignored)]
