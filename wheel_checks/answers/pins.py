"""Do installs keep the installed packages?"""

from __future__ import annotations

from collections.abc import Sequence

from wheel_checks.answers.claims import made
from wheel_checks.answers.evidence import Evidence, Reason, gather
from wheel_checks.answers.questions import OF_A_CHANGED_PACKAGE, OF_AN_INSTALL
from wheel_checks.model import Answer, Subject, Verdict
from wheel_checks.phrases import joined, plural

FRAMEWORK, NAMED = "framework", "named"  # roles
_OBLIGATIONS = {"package": OF_A_CHANGED_PACKAGE, "install": OF_AN_INSTALL}  # by the kind of subject


def answer_prediction(subjects: Sequence[Subject]) -> Answer:
    """One answer for all installs: lost packages come before undecided ones, and those before kept ones."""
    before = [s for s in subjects if s.kind == "package" and s.facts.get("from")]
    there = [s for s in before if s.facts.get("role") in (FRAMEWORK, NAMED)] or before
    names = list(dict.fromkeys(f"{s.facts['name']} {s.facts['from']}" for s in there))
    who, verb = joined(names) or "what is installed", "stay" if len(names) > 1 else "stays"
    evidence = sum((gather(s, _OBLIGATIONS.get(s.kind, ())) for s in subjects), start=Evidence())
    if not there and not evidence.left_open:
        evidence += Evidence(left_open=(Reason("", "nothing is installed that an install could replace"),))
    reasons = evidence.texts
    claims = (made("keeps torch", evidence, (*OF_A_CHANGED_PACKAGE, *OF_AN_INSTALL)),)
    if evidence.verdict is Verdict.FAIL:
        more = f" (and {plural(len(reasons) - 1, 'more finding')})" if len(reasons) > 1 else ""
        return Answer(Verdict.FAIL, reasons[0] + more, decided_by=evidence.rules, claims=claims)
    if evidence.verdict is Verdict.UNDECIDED:
        sentence = f"it is not proven that {who} {verb}"
        return Answer(Verdict.UNDECIDED, sentence, "", reasons, "", evidence.rules, claims)
    installers = list(dict.fromkeys(str(s.facts["installer"]) for s in subjects if "installer" in s.facts))
    kept = f"{who} {verb} with {joined(installers)}"
    return Answer(Verdict.PASS, kept, decided_by=OF_A_CHANGED_PACKAGE, claims=claims)
