"""The badge: one SVG, plain text, with a title; nothing outside of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.conftest import Wheelproof
from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.model import Outcome, Report, Subject
from wheel_checks.report.badge import badge, message_of

SVG = "{http://www.w3.org/2000/svg}"


def cells(*outcomes: Outcome) -> Report:
    subjects = [Subject(f"c{n}", "cell", results=(reports.result("MTX101", o),)) for n, o in enumerate(outcomes)]
    return reports.report(*subjects)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (cells(Outcome.PASS), "pass"),
        (cells(Outcome.PASS, Outcome.PASS), "pass: 2 cells"),
        (cells(Outcome.PASS, Outcome.FAIL, Outcome.ERROR), "fail: 1 of 3 cells"),
        (cells(Outcome.PASS, Outcome.ERROR, Outcome.ERROR), "undecided: 2 of 3 cells"),
        (reports.empty(), "undecided"),
    ],
)
def test_the_message_is_the_verdict_of_the_report(report: Report, message: str) -> None:
    assert message_of(report) == message
    picture = ET.fromstring(badge(report, "matrix"))
    assert picture.find(f"{SVG}title").text == f"matrix: {message}"  # type: ignore[union-attr]  # it fails if None
    assert (picture.get("role"), picture.get("aria-label")) == ("img", f"matrix: {message}")
    assert [text.text for text in picture.iter(f"{SVG}text")] == ["matrix", message]


@pytest.mark.parametrize("label", ["<script>alert(1)</script>", '" onload="x', "&amp;\x1b[31m", "ü" * 200, ""])
def test_a_label_is_text(label: str) -> None:
    text = badge(reports.passing(), label)
    picture = ET.fromstring(text)
    assert {element.tag.removeprefix(SVG) for element in picture.iter()} <= {
        *("svg", "title", "clipPath", "rect", "g", "text")
    }
    assert not re.search(r"\x1b|href|http(?!://www\.w3\.org/2000/svg)", text)


def contrast(colour: str) -> float:
    """The contrast ratio with white text (WCAG 2, 1.4.3)."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.FAIL, Outcome.ERROR])
def test_the_text_can_be_read_on_its_colours(outcome: Outcome) -> None:
    picture = ET.fromstring(badge(cells(outcome), "matrix"))
    fills = [rect.get("fill") for rect in picture.iter(f"{SVG}rect") if rect.get("fill")]
    assert len(fills) == 2
    assert all(contrast(str(fill)) >= 4.5 for fill in fills)


@pytest.mark.parametrize("build", [reports.mixed, reports.hostile, reports.forty, reports.empty])
def test_a_report_that_was_written_gives_the_same_badge(
    wheelproof: Wheelproof, tmp_path: Path, build: Callable[[], Report]
) -> None:
    report = replace(build(), overview=None)
    (tmp_path / "report.json").write_text(rendered(report, "json"))
    run = wheelproof("report", "badge", str(tmp_path / "report.json"), "--label", "wheels")

    assert (run.status, run.out) == (0, badge(report, "wheels"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "report.json is not a report of wheelproof"),
        ('{"schema": "wheelproof.report/9"}', "report.json is not a report of wheelproof"),
        ('{"schema": "wheelproof.report/1", "command": "verify"}', "report.json: "),
        ("{", "it ends in the middle of a document"),
        ("", "it is empty"),
    ],
)
def test_what_is_no_report_is_said(wheelproof: Wheelproof, tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "report.json").write_text(content)
    run = wheelproof("report", "badge", str(tmp_path / "report.json"))

    assert (run.status, run.out) == (3, "")
    assert says in run.err


def test_several_reports_are_no_badge(wheelproof: Wheelproof, tmp_path: Path) -> None:
    one = json.dumps(json.loads(rendered(reports.passing(), "json")))
    (tmp_path / "reports.json").write_text(f"{one}\n{one}\n")
    run = wheelproof("report", "badge", str(tmp_path / "reports.json"))

    assert run.status == 2
    assert "has 2 reports, but a badge shows one verdict" in run.err
