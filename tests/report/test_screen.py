"""A report on one screen: cut parts are counted, and the worst finding and its fix are never cut."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from tests.support import reports
from tests.support.screens import COLUMNS, LINK
from wheel_checks.catalogue import all_rules
from wheel_checks.fixes.commands import Command
from wheel_checks.model import Evidence, Fix, Outcome, Report, Severity, Verdict
from wheel_checks.report import render
from wheel_checks.report.overview import found_causes
from wheel_checks.report.screen import first_screen, rows_of
from wheel_checks.report.terminal import console_for

COMMANDS = tuple(Command(("wheelproof", "mend", f"{number}" * 50)) for number in range(3))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen_of(report: Report, room: int = 23) -> list[str]:
    return first_screen(console_for(io.StringIO(), width=COLUMNS), report, room)


def many(causes: int) -> Report:
    """Forty wheels, one with so many findings; some of them are notes."""
    found = tuple(
        reports.result(
            f"WHL1{number:02}",
            Outcome.FAIL,
            f"finding {number} " + "of many words " * number,
            severity=list(Severity)[number % 3],
            evidence=tuple(Evidence(f"value {line}", "seen " * 30) for line in range(5)),
            fix=Fix("mend it", COMMANDS),
        )
        for number in range(causes)
    )
    first, *others = reports.forty().subjects
    return replace(reports.forty(), subjects=(replace(first, results=found), *others))


def counted(line: str, noun: str) -> int:
    found = re.search(rf"(\d+) {noun}", line)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("room", [23, 30, 59])
@pytest.mark.parametrize("causes", [1, 2, 9, 30])
def test_what_is_left_out_is_counted(room: int, causes: int) -> None:
    report = many(causes)
    lines = screen_of(report, room)
    assert rows_of(lines, COLUMNS) <= room
    every = found_causes(report)
    shown = sum(bool(re.match(r"  (error|warning|not checked)  WHL", line)) for line in lines)
    assert shown + counted(lines[-1], "more finding") + counted(lines[-1], "note") == len(every)
    if "and more" not in lines[-1]:
        verdicts = sum(line.endswith(("  FAIL", "  UNDECIDED", "  PASS")) for line in lines)
        assert verdicts + counted(lines[-1], "more row") == len(report.subjects)


def test_the_commands_of_the_worst_finding_are_never_left_out() -> None:
    lines = screen_of(many(30), room=6)
    assert [line.strip() for line in lines if line.startswith("        wheelproof")] == [
        " ".join(command.argv) for command in COMMANDS
    ]


def test_the_worst_come_first_in_the_table() -> None:
    report = replace(reports.forty(), subjects=reports.forty().subjects[::-1])
    lines = screen_of(report)
    verdicts = [line.rsplit(None, 1)[-1] for line in lines if line.endswith(("  FAIL", "  UNDECIDED", "  PASS"))]
    assert verdicts
    assert set(verdicts) == {Verdict.FAIL.value.upper()}


def test_in_ci_a_terminal_is_a_log_and_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    terminal = Terminal()
    render(many(30), terminal, "text", color=False, width=COLUMNS)
    shown = re.findall(r"finding (\d+)\b", terminal.getvalue())
    assert sorted(map(int, shown)) == list(range(30))


@pytest.mark.parametrize(
    ("environment", "are_there"),
    [
        ({"FORCE_HYPERLINK": "1"}, True),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"VTE_VERSION": "7006"}, True),
        ({"VTE_VERSION": "4800"}, False),
        ({}, False),
        ({"TERM_PROGRAM": "vscode", "FORCE_HYPERLINK": "0"}, False),
        ({"FORCE_HYPERLINK": "1", "NO_COLOR": "1"}, False),
        ({"TERM_PROGRAM": "vscode", "CI": "true"}, False),
        ({"TERM_PROGRAM": "vscode", "TERM": "dumb"}, False),
    ],
)
def test_ids_of_rules_link_to_their_pages_where_the_terminal_opens_links(
    environment: dict[str, str], are_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "NO_COLOR", "TERM_PROGRAM", "VTE_VERSION", "KONSOLE_VERSION", "WT_SESSION", "DOMTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("wheel_checks.report.pages._repository", lambda: "https://example.test/wheelproof")
    all_rules()
    terminal = Terminal()
    render(reports.mixed(), terminal, "text", width=COLUMNS)
    links = set(filter(None, LINK.findall(terminal.getvalue())))
    assert ("https://example.test/wheelproof/blob/HEAD/docs/rules/WHL101.md" in links) == are_there
    assert bool(links) == are_there


def test_without_colours_there_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    monkeypatch.setattr("wheel_checks.report.pages._repository", lambda: "https://example.test/wheelproof")
    all_rules()
    terminal = Terminal()
    render(reports.mixed(), terminal, "text", width=COLUMNS, color=False)
    assert "\x1b" not in terminal.getvalue()
