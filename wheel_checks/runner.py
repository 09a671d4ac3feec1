"""Runs rules on facts. A rule that crashes is an error result, never a silent pass."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

from wheel_checks.errors import WheelproofError
from wheel_checks.model import (
    Audience,
    CheckResult,
    Evidence,
    FactUnavailableError,
    Finding,
    Fix,
    Outcome,
    Rule,
    Severity,
)

MAX_FINDINGS = 100  # results of one rule on one subject: a hostile wheel has a million faulty members


def run_rules(rules: Iterable[Rule], facts: Any, expectations: Any) -> tuple[CheckResult, ...]:
    """Judge ``facts`` by every rule: one result per finding, or one pass, skip or error per rule.

    Findings beyond ``MAX_FINDINGS`` of a rule are only counted, in one result with the worst of their severities.
    """
    results: list[CheckResult] = []
    for rule in rules:
        results.extend(_run(rule, facts, expectations))
    return tuple(results)


def _run(rule: Rule, facts: Any, expectations: Any) -> list[CheckResult]:
    start = time.perf_counter()

    def result(outcome: Outcome, message: str, **details: Any) -> CheckResult:
        details.setdefault("severity", rule.severity)
        details.setdefault("audience", rule.audience)
        details.setdefault("decides", rule.decides)
        return CheckResult(
            rule.id, rule.title, outcome, message=message, seconds=time.perf_counter() - start, **details
        )

    try:
        findings, more = _bounded(rule.check(facts, expectations))
    except FactUnavailableError as missing:
        reason = missing.unavailable
        return [result(Outcome.SKIP, reason.reason + (f" ({reason.hint})" if reason.hint else ""))]
    except WheelproofError as error:
        evidence = (Evidence("expected", error.expected),) if error.expected else ()
        return [result(Outcome.ERROR, error.what, evidence=evidence, fix=Fix(error.hint) if error.hint else None)]
    except Exception as crash:  # noqa: BLE001  # a defect in one rule must not hide the findings of others
        evidence = (Evidence("exception", f"{type(crash).__name__}: {crash}", _crash_site(crash)),)
        return [result(Outcome.ERROR, "the check itself crashed; please report this as a bug", evidence=evidence)]
    if not findings:
        return [result(Outcome.PASS, rule.title)]
    results = [
        result(
            _outcome(finding),
            finding.message,
            severity=finding.severity or rule.severity,
            evidence=finding.evidence,
            fix=finding.fix,
            location=finding.location,
            audience=finding.audience or rule.audience,
            cause=finding.cause,
            by_reader=finding.by_reader,
            decides=rule.decides if finding.decides is None else finding.decides,
            refused_by=finding.refused_by,
            assumes=finding.assumes,
        )
        for finding in findings
    ]
    for outcome in (Outcome.FAIL, Outcome.ERROR):
        rest = [(severity, audience, count) for (kind, severity, audience), count in more.items() if kind is outcome]
        if rest:
            worst = max((severity or rule.severity for severity, _, _ in rest), key=lambda severity: severity.rank)
            of_all = all((audience or rule.audience) is Audience.PUBLISHER for _, audience, _ in rest)
            audience = Audience.PUBLISHER if of_all else rule.audience
            total = sum(count for *_, count in rest)
            message = f"and {total:,} more findings of this rule"
            results.append(result(outcome, message, severity=worst, audience=audience))
    return results


def _outcome(finding: Finding) -> Outcome:
    return Outcome.ERROR if finding.undecided else Outcome.FAIL


_Kind = tuple[Outcome, Severity | None, Audience | None]


def _bounded(found: Iterable[Finding]) -> tuple[list[Finding], Counter[_Kind]]:
    """The first ``MAX_FINDINGS``, and of the others how many of each outcome, severity and audience."""
    findings = iter(found)
    return list(islice(findings, MAX_FINDINGS)), Counter((_outcome(f), f.severity, f.audience) for f in findings)


def _crash_site(crash: BaseException) -> str:
    traceback = crash.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    code = traceback.tb_frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno} in {code.co_name}"
