"""Findings that the expectation knows of and lets pass until a date: they stay in the report, as skipped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from wheel_checks.answers.evidence import IGNORED
from wheel_checks.facts.release.expectation import Exemption
from wheel_checks.facts.release.facts import ReleaseFacts
from wheel_checks.model import CheckResult, Outcome, Subject


def exempt(subject: Subject, release: ReleaseFacts) -> Subject:
    """The subject, whose failures of exempted rules are skipped with the reason; an expired exemption does nothing."""
    valid = [e for e in release.expectation.exemptions if release.today <= e.until and fnmatchcase(subject.id, e.files)]
    if not valid:
        return subject
    return replace(subject, results=tuple(_judged(subject.results, valid)))


def _judged(results: Iterable[CheckResult], exemptions: Sequence[Exemption]) -> Iterable[CheckResult]:
    for result in results:
        reason = next((e for e in exemptions if result.rule.startswith(tuple(map(str.upper, e.rules)))), None)
        if result.outcome is Outcome.FAIL and reason is not None:
            message = f"{IGNORED}{reason.until}, {reason.reason}: {result.message}"
            yield replace(result, outcome=Outcome.SKIP, message=message)
        else:
            yield result
