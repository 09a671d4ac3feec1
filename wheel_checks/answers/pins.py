"""Do installs keep the installed packages?"""

from __future__ import annotations

from collections.abc import Sequence

from wheel_checks.model import Answer, CheckResult, Outcome, Severity, Subject, Verdict
from wheel_checks.phrases import joined, plural

FRAMEWORK, NAMED = "framework", "named"  # roles
_KEEPS = ("PIN311", "PIN314", "PIN315")


def answer_prediction(subjects: Sequence[Subject]) -> Answer:
    """One answer for all installs: lost packages come before undecided ones, and those before kept ones."""
    return _answer(subjects).claiming("keeps torch", _KEEPS)


def _answer(subjects: Sequence[Subject]) -> Answer:
    before = [s for s in subjects if s.kind == "package" and s.facts.get("from")]
    there = [s for s in before if s.facts.get("role") in (FRAMEWORK, NAMED)] or before
    names = list(dict.fromkeys(f"{s.facts['name']} {s.facts['from']}" for s in there))
    who = joined(names) or "what is installed"
    verb = "stay" if len(names) > 1 else "stays"
    results = [result for subject in subjects for result in subject.results]
    errors = [r for r in results if _is_error(r)]
    if errors:
        reasons = tuple(dict.fromkeys(result.message for result in errors))
        rules = tuple(dict.fromkeys(result.rule for result in errors))
        more = f" (and {plural(len(reasons) - 1, 'more finding')})" if len(reasons) > 1 else ""
        return Answer(Verdict.FAIL, reasons[0] + more, decided_by=rules)
    undecided = [r for r in results if r.outcome is Outcome.ERROR]
    run = {result.rule for result in results if result.outcome in (Outcome.PASS, Outcome.FAIL)}
    not_run = [rule for rule in _KEEPS if rule not in run] if there else []
    if undecided or not_run or not there:
        silenced = [f"{joined(not_run)} {'was' if len(not_run) == 1 else 'were'} not run"] if not_run else []
        reasons = tuple(dict.fromkeys([*(result.message for result in undecided), *silenced]))
        return Answer(
            Verdict.UNDECIDED,
            f"it is not proven that {who} {verb}",
            reasons=reasons,
            decided_by=tuple(dict.fromkeys(result.rule for result in undecided)),
        )
    installers = list(dict.fromkeys(str(s.facts["installer"]) for s in subjects if "installer" in s.facts))
    return Answer(Verdict.PASS, f"{who} {verb} with {joined(installers)}", decided_by=_KEEPS)


def _is_error(result: CheckResult) -> bool:
    return result.outcome is Outcome.FAIL and result.severity is Severity.ERROR
