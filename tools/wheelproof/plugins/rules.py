"""Rules of plug-ins: each is described once, and judges in a child that knows nothing of our other results.

A plug-in adds results and takes none away: its answers are decoded as the findings of its own rules, and any other
event in its child is an error of these.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from wheel_checks.decode import DecodeError, Policy, decode
from wheel_checks.errors import WheelproofError
from wheel_checks.model import Audience, FactUnavailableError, Finding, Rule, Severity, Unavailable
from wheel_checks.rules import MODULES
from wheelproof.plugins.calling import UNFINISHED, call, fault_of
from wheelproof.plugins.child import CHECK, DESCRIBE, Task
from wheelproof.plugins.installed import Plugin

OURS = ("WHL", "SEC", "STK", "REL", "PIN", "DOC", "KRN", "MTX", "PLG")
KINDS = frozenset(kind for kinds in MODULES.values() for kind in kinds)
_ID = re.compile(r"[A-Z][A-Z0-9]{1,15}[0-9]{3}")
_POLICY = Policy(unknown_keys=True, longest=100_000, clipped=True, most=10_000)


@dataclass(frozen=True, slots=True)
class _Described:
    """The documentation of a rule."""

    id: str
    title: str
    kind: str
    severity: Severity
    why: str
    example: str
    fix: str
    audience: Audience
    sources: tuple[str, ...] = ()
    tested: str = ""


def read_rules(plugin: Plugin) -> tuple[Rule, ...]:
    """The rules that a plug-in registers; each runs in a child. Raises PluginFaultError when they cannot be used."""
    answers, fault = call(plugin, Task(DESCRIBE, plugin.value))
    if fault or not answers:
        raise fault_of(plugin, fault or "described no rule")
    child = _Child(plugin)
    try:
        described = [decode(_Described, description, _POLICY) for description in answers[0]["rules"]]
    except DecodeError as error:
        raise fault_of(plugin, f"has an invalid rule: {error.what}") from error
    return tuple(_rule(one, plugin, child) for one in described)


def _rule(one: _Described, plugin: Plugin, child: _Child) -> Rule:
    if not _ID.fullmatch(one.id):
        what = f"has a rule with the id {one.id!r}; expected capital letters and three digits, such as ACME001"
    elif one.id.startswith(OURS):
        what = f"has a rule {one.id}, which has a prefix of wheelproof's own rules; expected another prefix"
    elif one.kind not in KINDS:
        what = f"has a rule {one.id} for subjects of the kind {one.kind!r}; expected one of {', '.join(sorted(KINDS))}"
    elif not all((one.title, one.why, one.example, one.fix)):
        what = f"has a rule {one.id} without a title, why, example or fix"
    else:
        check = partial(_Batch(child, (one.id,)).check, one.id)
        return Rule(
            one.id,
            one.title,
            one.kind,
            one.severity,
            one.why,
            one.example,
            one.fix,
            check,
            one.audience,
            plugin=plugin.distribution,
            sources=one.sources,
            tested=one.tested,
        )
    raise fault_of(plugin, what)


def together(rules: Sequence[Rule]) -> list[Rule]:
    """The rules, in which all rules of one plug-in share a child."""
    batches: dict[_Child, _Batch] = {}
    for rule in rules:
        for child in _child_of(rule):
            batch = batches.get(child, _Batch(child, ()))
            batches[child] = _Batch(child, (*batch.rules, rule.id))
    return [
        replace(rule, check=partial(batches[child].check, rule.id)) if child else rule
        for rule in rules
        for child in (*_child_of(rule), None)[:1]
    ]


def _child_of(rule: Rule) -> Iterator[_Child]:
    batch = getattr(getattr(rule.check, "func", None), "__self__", None)
    if isinstance(batch, _Batch):
        yield batch.child


class _Child:
    """Runs the rules of one plug-in, and not again after a hang: a hundred wheels would take a quarter of an hour."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self._given_up = ""

    def judged(self, rules: tuple[str, ...], facts: Any, expectations: Any) -> dict[str, dict[str, Any]]:
        """The answer for each rule. A rule that hangs, or ends the child, leaves those after it without one."""
        if self._given_up:
            return {name: {"crash": self._given_up} for name in rules}
        answers, fault = call(self.plugin, Task(CHECK, self.plugin.value, rules, (facts, expectations)))
        judged = {str(answer["rule"]): answer for answer in answers}
        if len(judged) < len(rules):
            guilty, *others = [name for name in rules if name not in judged]
            judged[guilty] = {"crash": fault}
            judged |= {name: {"crash": f"{guilty}, which came before, {fault}"} for name in others}
            if fault.startswith(UNFINISHED):
                self._given_up = f"{guilty} {fault} on another subject, and the plug-in is not called again"
        return judged


class _Batch:
    """Rules of one plug-in that judge the same facts, one after the other, in one child."""

    def __init__(self, child: _Child, rules: tuple[str, ...]) -> None:
        self.child, self.rules = child, rules
        self._last = threading.local()  # each thread judges another subject

    def check(self, rule_id: str, facts: Any, expectations: Any) -> Iterable[Finding]:
        """The findings of a rule. Raises the errors of an undecided rule, and PluginFaultError."""
        last = getattr(self._last, "answers", None)
        if last is None or last[0] is not facts or last[1] is not expectations:
            last = self._last.answers = (facts, expectations, self.child.judged(self.rules, facts, expectations))
        answer = last[2][rule_id]
        try:
            if "crash" in answer:
                raise fault_of(self.child.plugin, f"could not perform this check: {answer['crash']}")
            if "error" in answer:
                what, expected, hint = map(str, answer["error"])
                raise WheelproofError(what, expected=expected, hint=hint)
            if "unavailable" in answer:
                raise FactUnavailableError(decode(Unavailable, answer["unavailable"], _POLICY))
            return [decode(Finding, finding, _POLICY) for finding in answer["findings"]]
        except DecodeError as error:
            raise fault_of(self.child.plugin, f"returned an invalid finding: {error.what}") from error
