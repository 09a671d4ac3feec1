"""The report as workflow commands of GitHub Actions, which become annotations of the run."""

from __future__ import annotations

from typing import TextIO

from wheel_checks.model import CheckResult, Outcome, Report, Severity, Subject
from wheel_checks.phrases import LONGEST, plural, shortened
from wheel_checks.report import wording
from wheel_checks.report.causes import causes, problems_of
from wheel_checks.report.wording import neutral

PER_LEVEL = 10
"""GitHub shows this many annotations of each level per step and drops the others silently."""

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report, stream: TextIO) -> None:
    """Write the answers, the worst findings as annotations, those beyond ``PER_LEVEL`` as plain lines, and the verdict.

    Findings with one cause are one annotation.
    """
    found = [(cause.results[0][0], cause.shown) for cause in causes(problems_of(report))]
    used = dict.fromkeys(_COMMANDS.values(), 0)
    lines, rest = list(map(_plain, wording.answer_lines(report))), []
    for subject, result in found:
        command = "error" if result.outcome is Outcome.ERROR else _COMMANDS[result.severity]
        used[command] += 1
        if used[command] <= PER_LEVEL:
            lines.append(_annotation(command, subject, result))
        else:
            rest.append(_plain(f"{wording.label_of(result)} {result.rule} {subject.id}: {result.message}"))
    if rest:
        lines.append(_plain(f"{plural(len(rest), 'more finding')}not shown as annotations because of GitHub's limit:"))
        lines += rest
    lines += map(_plain, filter(None, (wording.verdict_line(report), wording.also_line(report))))
    wording.write(stream, "".join(f"{line}\n" for line in lines), commands=True)


def _annotation(command: str, subject: Subject, result: CheckResult) -> str:
    place = result.location
    properties = {"file": neutral(place.on_disk if place and place.on_disk else subject.id)}
    if place and place.on_disk and place.line is not None:
        properties["line"] = str(place.line)
        if place.column is not None:
            properties["col"] = str(place.column)
    prefix = "not checked: " if result.outcome is Outcome.ERROR else ""
    properties["title"] = neutral(f"{prefix}{result.rule} {result.title}")
    message = shortened("\n".join([neutral(f"{subject.id}: {result.message}"), *wording.described(result)]))
    if commands := "".join(f"\n{line}" for line in wording.command_lines(result)):
        message += commands if len(commands) <= LONGEST else "\n    the commands are too long for an annotation"
    listed = ",".join(f"{name}={_property(shortened(value))}" for name, value in properties.items())
    return f"::{command} {listed}::{_data(message)}"


def _data(text: str) -> str:
    """Escapes as the runner's toolkit does: the percent sign first, then line ends."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _plain(text: str) -> str:
    """A line that is not a command."""
    return wording.without_commands(shortened(neutral(text)))
