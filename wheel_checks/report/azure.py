"""The report as logging commands of Azure Pipelines, which become the errors and warnings of the run.

The commands and their escapes are those of
https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands (November 2026).
"""

from __future__ import annotations

from typing import TextIO

from wheel_checks.model import CheckResult, Outcome, Report, Severity, Subject
from wheel_checks.phrases import LONGEST, shortened
from wheel_checks.report import wording
from wheel_checks.report.causes import causes, problems_of
from wheel_checks.report.wording import neutral


def render(report: Report, stream: TextIO) -> None:
    """Write the answers, a logging command for each error and warning, notes as plain lines, and the verdict.

    Findings with one cause are one command.
    """
    lines = list(map(_plain, wording.answer_lines(report)))
    for cause in causes(problems_of(report)):
        subject, result = cause.results[0][0], cause.shown
        if result.outcome is Outcome.FAIL and result.severity is Severity.NOTE:
            lines.append(_plain(f"note {result.rule} {subject.id}: {result.message}"))
        else:
            lines.append(_issue(subject, result))
    lines.append(_plain(wording.verdict_line(report)))
    wording.write(stream, "".join(f"{line}\n" for line in lines))


def _issue(subject: Subject, result: CheckResult) -> str:
    place = result.location
    properties = {"type": "warning" if result.severity is Severity.WARNING else "error", "code": neutral(result.rule)}
    if result.outcome is Outcome.ERROR:
        properties["type"] = "error"
    if place and place.on_disk:
        properties["sourcepath"] = neutral(place.on_disk)
        if place.line is not None:
            properties["linenumber"] = str(place.line)
            if place.column is not None:
                properties["columnnumber"] = str(place.column)
    prefix = "not checked: " if result.outcome is Outcome.ERROR else ""
    message = shortened("\n".join([neutral(f"{prefix}{subject.id}: {result.message}"), *wording.described(result)]))
    if commands := "".join(f"\n{line}" for line in wording.command_lines(result)):
        message += commands if len(commands) <= LONGEST else "\n    the commands are too long for a message"
    listed = "".join(f"{name}={_property(shortened(value))};" for name, value in properties.items())
    return f"##vso[task.logissue {listed}]{_data(message)}"


def _data(text: str) -> str:
    """Escapes as the agent does: the percent sign first, then what ends a line."""
    return text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace("]", "%5D").replace(";", "%3B")


def _plain(text: str) -> str:
    """A line that is not a command."""
    return wording.without_commands(shortened(neutral(text)))
