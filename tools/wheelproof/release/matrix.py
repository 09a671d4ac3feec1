"""The release as a matrix of Pythons by platforms, with a verdict for each cell."""

from collections.abc import Sequence
from typing import Any

from wheel_checks.facts.release import ReleaseFacts, ReleaseFile
from wheel_checks.model import Report, Unavailable, Verdict
from wheel_checks.phrases import plural

MISSING = "missing"
_WORST_FIRST = (Verdict.FAIL, Verdict.UNDECIDED, Verdict.PASS)


def headline(release: ReleaseFacts) -> str:
    """For people: "28 of 28 cells filled by 28 files"."""
    filled = sum(map(bool, release.filled.values()))
    return f"{filled} of {len(release.filled)} cells filled by {plural(len(release.own_files), 'file')}"


def matrix_facts(release: ReleaseFacts, report: Report) -> dict[str, Any]:
    """The facts of the release as a subject. A cell has the worst verdict of its files in ``report``, or "missing"."""
    verdicts = {subject.id: report.verdict_of(subject) for subject in report.subjects}
    expected = release.expectation
    served = [
        {"machine": made.machine.label, "python": made.choice.target.interpreter, "variant": made.label}
        for made, _ in release.machine_choices
    ]
    return {
        "name": expected.project,
        "version": str(release.version),
        "files": len(release.own_files),
        "platforms": [platform.name for platform in expected.platforms],
        "pythons": list(dict.fromkeys(cell.python for cell in release.filled)),
        "cells": [
            {
                "platform": cell.platform,
                "python": cell.python,
                "verdict": _worst([verdicts[file.file_name] for file in files]),
                "accelerator": _accelerator(files),
                "files": [file.file_name for file in files],
            }
            for cell, files in release.filled.items()
        ],
        **({"machines": served} if served else {}),
    }


def _worst(verdicts: Sequence[Verdict]) -> str:
    return next((verdict.value for verdict in _WORST_FIRST if verdict in verdicts), MISSING)


def _accelerator(files: Sequence[ReleaseFile]) -> str:
    """That of the file which an installer takes, "" when it is unknown."""
    found = files[0].accelerator if files else Unavailable("")
    return "" if isinstance(found, Unavailable) else found.label
