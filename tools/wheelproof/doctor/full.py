"""``--full``: after the diagnosis the Triton kernels are run, by ``wheelproof smoke`` in its own process."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wheel_checks.decode import Policy, decode
from wheel_checks.model import CheckResult, Outcome, Severity, Subject, Verdict
from wheel_checks.process import run

LEVEL = "quick"
KIND = "smoke"
_GRACE = 10.0  # seconds beyond its deadline that smoke has to end its own children


def smoke_command(python: str, deadline: float) -> list[str]:
    """The command line; applications of wheelproof know each other by nothing else."""
    options = ["--python", python, "--level", LEVEL, "--deadline", f"{deadline:g}", "--format", "json", "--quiet"]
    return [sys.executable, "-P", "-m", "wheelproof", "smoke", *options, "--config", os.devnull]


def run_smoke(python: str, deadline: float) -> Subject:
    """Run the kernels under ``python`` for at most ``deadline`` seconds; what goes wrong with that is a result, too."""
    ended = run(smoke_command(python, deadline), deadline=deadline + _GRACE, first=signal.SIGTERM, grace=_GRACE)
    if ended.timed_out:
        return _undecided(f"it did not finish within {deadline:g} s")
    try:
        return smoke_subject(json.loads(ended.output))
    except ValueError:  # no report
        words = ended.errors.decode(errors="replace").strip().splitlines()
        return _undecided(words[0] if words else f"it exited with code {ended.status}, without output")


def smoke_subject(report: Mapping[str, Any]) -> Subject:
    """What matters of its report: the counts, and everything that did not pass."""
    summary = report["summary"]
    results = []
    for subject in report["subjects"]:
        for data in subject["results"]:
            if data["outcome"] in {Outcome.FAIL, Outcome.ERROR}:
                result = decode(CheckResult, data, Policy(unknown_keys=True, null_is_absent=True))
                results.append(replace(result, message=f"{subject['id']}: {result.message}", location=None))
    verdict = summary.get("verdict", Verdict.UNDECIDED)
    if verdict != Verdict.PASS and not results:  # an answer of the report decides it, and no check
        results.append(_not_passed(verdict, _reason(report)))
    kernels = (subject["id"] for subject in report["subjects"] if subject["kind"] == "kernel")
    count = len({name.partition(" on GPU ")[0] for name in kernels})  # each is a subject on each of several GPUs
    passed = f"{count} kernels ran, {summary['pass']} checks passed"
    return Subject(f"smoke --level {LEVEL}", KIND, passed, {"summary": summary}, tuple(results))


def _reason(report: Mapping[str, Any]) -> str:
    """The answers of the report that are no pass, with their reasons."""
    answers = [answer for answer in report["summary"].get("answers", ()) if answer.get("verdict") != Verdict.PASS]
    said = [": ".join(filter(None, (a.get("sentence", ""), "; ".join(a.get("reasons", ()))))) for a in answers]
    return "; ".join(said) or "its report has no details"


def _undecided(what: str) -> Subject:
    result = _not_passed(Verdict.UNDECIDED, what)
    return Subject(f"smoke --level {LEVEL}", KIND, what, {}, (result,))


def _not_passed(verdict: str, what: str) -> CheckResult:
    failed = verdict == Verdict.FAIL
    message = f"the kernels failed: {what}" if failed else f"whether the kernels work is not decided: {what}"
    outcome = Outcome.FAIL if failed else Outcome.ERROR
    return CheckResult("KRN001", "the suite ended with a report", outcome, Severity.ERROR, message)
