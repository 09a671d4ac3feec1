"""The report as a Code Quality artifact of GitLab, whose merge requests show it on the lines that are changed.

The shape is that of https://docs.gitlab.com/ci/testing/code_quality/ ("Code Quality report format", November 2026).
"""

from pathlib import PurePosixPath
from typing import Any, TextIO

from wheel_checks.model import CheckResult, Outcome, Report, Severity, Subject
from wheel_checks.report import wording
from wheel_checks.report.identity import fingerprint, relative
from wheel_checks.report.wording import json_ready, neutral

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}
_NOT_CHECKED = "major"


def render(report: Report, stream: TextIO) -> None:
    """Write every failure, and every check that could not be made, as one entry of a JSON array in ASCII."""
    seen: dict[str, int] = {}
    entries = [
        _entry(subject, result, fingerprint(subject, result, seen))
        for subject in report.subjects
        for result in wording.problems(subject)
    ]
    wording.write_json(json_ready(entries), stream)


def _entry(subject: Subject, result: CheckResult, identity: str) -> dict[str, Any]:
    place = result.location
    on_disk = place.on_disk if place else ""
    unchecked = result.outcome is Outcome.ERROR
    prefix = "not checked: " if unchecked else ""
    return {
        "description": neutral(f"{prefix}{result.rule} {subject.id}: {result.message}"),
        "check_name": neutral(result.rule),
        "fingerprint": identity,
        "severity": _NOT_CHECKED if unchecked else _SEVERITIES[result.severity],
        "content": {"body": "\n".join(wording.detail_lines(result))},
        # GitLab takes no path that starts with "./", and needs a line.
        "location": {
            "path": neutral(str(PurePosixPath(relative(on_disk or subject.id)))),
            "lines": {"begin": (place.line if place and on_disk else None) or 1},
        },
    }
