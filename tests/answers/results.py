"""Results and subjects for answers: each as small as the question allows."""

from __future__ import annotations

from wheel_checks.model import Audience, CheckResult, Outcome, Severity, Subject

PASS, FAIL, SKIP, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.SKIP, Outcome.ERROR


def result(
    rule: str,
    outcome: Outcome = PASS,
    severity: Severity = Severity.ERROR,
    message: str = "",
    audience: Audience = Audience.BOTH,
) -> CheckResult:
    """One result; its message names the rule unless it is given."""
    return CheckResult(rule, "a title", outcome, severity, message or f"{rule} says so", audience=audience)


def stack(*results: CheckResult) -> Subject:
    """A resolved stack; the rules that answer pass unless ``results`` has them."""
    return Subject("demo on cp312 aarch64", "stack", results=_with(results, "STK104", "STK105", "STK106", "STK107"))


def package(name: str, *results: CheckResult, runs: dict[str, str] | None = None, certainty: str = "exact") -> Subject:
    """A wheel of a stack, whose rules pass unless ``results`` has them. ``runs`` says how it runs on which GPU."""
    products = [{"name": gpu, "runs": how} for gpu, how in ({"GB200": "native"} if runs is None else runs).items()]
    facts = {"package": name, "version": "1.0", "gpu_code": {"certainty": certainty, "products": products}}
    facts["native_members"] = {"count": 0}
    return Subject(
        f"{name}-1.0.whl", "wheel", facts=facts, results=_with(results, *OF_WHEELS), reader=Audience.INSTALLER
    )


OF_WHEELS = ("STK101", "STK102", "STK103", "STK124", "WHL601")


def without(subject: Subject, rule: str) -> Subject:
    """The subject of a run in which the rule was not selected."""
    from dataclasses import replace

    return replace(subject, results=tuple(r for r in subject.results if r.rule != rule))


def _with(results: tuple[CheckResult, ...], *rules: str) -> tuple[CheckResult, ...]:
    given = {item.rule for item in results}
    return (*results, *(result(rule) for rule in rules if rule not in given))
