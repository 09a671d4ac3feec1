"""Parts shared by the judging commands: selected rules, and the start and end of a report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from wheel_checks.answers.evidence import asides
from wheel_checks.model import (
    Answer,
    CheckResult,
    FactUnavailableError,
    FailOn,
    Finding,
    Outcome,
    Overview,
    Report,
    Rule,
    Subject,
    TreeConfiguration,
    Unavailable,
)
from wheel_checks.sources.byte_source import Cost
from wheelproof import __version__
from wheelproof.plugins.loading import NO_PLUGINS, Plugins


@dataclass(frozen=True, slots=True)
class TreeRules:
    """Settings of rules in the configuration ``file`` of a tree; "" without a file.

    Its ``select`` and ``ignore`` come after those of the user. ``refused`` has its ignored keys, with the reason.
    """

    file: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """The rules that count, by prefixes of their ids, and the lowest severity that fails the run.

    ``select`` and ``ignore`` are the user's; a ``tree`` may silence more rules, each of which the report shows.
    ``plugins`` add rules, and are blamed in the report if they are at fault.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: FailOn = FailOn.ERROR
    tree: TreeRules = TreeRules()
    plugins: Plugins = NO_PLUGINS

    def rules(self, kind: str) -> list[Rule]:
        """The selected rules for subjects of this kind; a rule that the tree ignores reports only that.

        Where the user selects rules, the tree's ``select`` adds to them. Its ``ignore`` does not reach a rule that the
        user selects by a prefix at least as long. Raises UsageError for a prefix that means nothing.
        """
        from wheel_checks.catalogue import select_rules  # imports every rule: not for --help

        if self.tree.select or self.tree.ignore:
            select_rules(kind, self.tree.select, self.tree.ignore)  # for its error
        chosen = self.plugins.chosen(select_rules(kind, self.requested, self.ignore))
        return [self._silent(rule) if self.silences(rule.id) else rule for rule in chosen]

    @property
    def requested(self) -> tuple[str, ...]:
        """The prefixes of the requested rules, () for all: the user's and those that the tree adds."""
        return (*self.select, *self.tree.select) if self.select else ()

    def silences(self, rule: str) -> bool:
        """Whether the tree omits the rule with this id."""
        if self.tree.select and not self.select and _longest(self.tree.select, rule) < 0:
            return True
        return _longest(self.tree.ignore, rule) > _longest(self.select, rule)

    def kept(self, results: Iterable[CheckResult]) -> Iterator[CheckResult]:
        """The results of selected rules; a rule that the tree ignores reports only that."""
        silent: set[str] = set()
        for result in results:
            if (self.requested and _longest(self.requested, result.rule) < 0) or _longest(
                self.ignore, result.rule
            ) >= 0:
                continue
            if not self.silences(result.rule):
                yield result
            elif result.rule not in silent:
                silent.add(result.rule)
                message = self._reason.reason
                yield CheckResult(result.rule, result.title, Outcome.SKIP, result.severity, message)

    @property
    def _reason(self) -> Unavailable:
        return Unavailable(f"silenced by {self.tree.file}")

    def _silent(self, rule: Rule) -> Rule:
        def check(facts: object, expectations: object) -> Iterable[Finding]:
            if _answers(rule, facts, expectations):
                return rule.check(facts, expectations)
            raise FactUnavailableError(self._reason)

        return replace(rule, check=check)

    def rules_by_kind(self, kinds: Iterable[str]) -> dict[str, list[Rule]]:
        """The selected rules for each of these kinds. Raises UsageError for a prefix that means nothing."""
        return {kind: self.rules(kind) for kind in kinds}


def _answers(rule: Rule, facts: object, expectations: object) -> bool:
    """Whether a rule says something else because of what is expected: no tree silences the answer to a question."""
    from wheel_checks.facts.wheel.expectations import Expectations  # not for --help

    if not isinstance(expectations, Expectations):
        return False
    return _outcome(rule, facts, expectations) != _outcome(rule, facts, Expectations())


def _outcome(rule: Rule, facts: object, expectations: object) -> object:
    try:
        return list(rule.check(facts, expectations))
    except Exception as error:  # noqa: BLE001  # why nothing is decided; a fault of the rule is reported where it is run
        return repr(error)


def _longest(prefixes: Iterable[str], rule: str) -> int:
    """The length of the longest prefix that a rule's id starts with; -1 without any."""
    return max((len(prefix) for prefix in prefixes if rule.startswith(prefix.upper())), default=-1)


EVERY_RULE = Selection()
NO_COST = Cost()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class OpenReport:
    """The report that ``command`` is making, and when it began, in UTC and in seconds."""

    command: str
    started: str = field(default_factory=_now)
    start: float = field(default_factory=time.perf_counter)

    def close(
        self,
        subjects: Iterable[Subject],
        selection: Selection,
        *,
        cost: Cost = NO_COST,
        local: int = 0,
        overview: Overview | None = None,
        answers: Iterable[Answer] = (),
    ) -> Report:
        """The report on ``subjects``, with the time since it was opened; ``local`` bytes were read besides ``cost``."""
        judged = (*subjects, *selection.plugins.subjects())
        return Report(
            command=self.command,
            version=__version__,
            started=self.started,
            seconds=time.perf_counter() - self.start,
            subjects=judged,
            fail_on=selection.fail_on,
            bytes_read=cost.bytes_read + local,
            requests=cost.requests,
            overview=overview,
            tree=_decided(selection, judged),
            answers=tuple(answers),
            also=asides(judged),
        )


def _decided(selection: Selection, subjects: Iterable[Subject]) -> TreeConfiguration | None:
    """The tree's effect on this report: the rules that it excluded; None without a tree."""
    tree = selection.tree
    if not tree.file:
        return None
    skipped = {r.rule for subject in subjects for r in subject.results if r.outcome is Outcome.SKIP}
    return TreeConfiguration(tree.file, tuple(sorted(filter(selection.silences, skipped))), tree.refused)
