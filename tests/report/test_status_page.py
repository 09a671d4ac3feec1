"""The status page: strict HTML in one file; verdicts, the grid of cells, and the findings of each report."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import html5lib

from tests.conftest import Wheelproof
from tests.report.test_html import by_class, text_of
from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.model import Outcome, Report, Subject
from wheel_checks.report.status_page import render


def parsed(text: str) -> ET.Element:
    page: ET.Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    return page


def page_of(*built: Report) -> ET.Element:
    stream = io.StringIO()
    render(built, stream, "Our wheels")
    return parsed(stream.getvalue())


def cell(platform: str, python: str, outcome: Outcome = Outcome.PASS, name: str = "", torch: str = "2.11.0") -> Subject:
    cell_id = "-".join(filter(None, (platform, f"py{python}", f"torch{torch}", name)))
    facts: dict[str, Any] = {"platform": platform, "python": python, "torch": torch}
    return Subject(cell_id, "cell", "CUDA 13.0", facts, (reports.result("MTX101", outcome, "why it is so"),))


GRID = reports.report(
    cell("x86_64", "3.9"),
    cell("x86_64", "3.13", Outcome.FAIL),
    cell("x86_64", "3.13", name="h100"),
    cell("aarch64", "3.13", Outcome.ERROR),
)


def rows(table: ET.Element) -> Sequence[Sequence[str]]:
    return [[text_of(field) for field in row] for row in table.iter("tr")]


def test_the_cells_are_a_grid_that_leads_to_the_findings() -> None:
    page = page_of(GRID)
    listed, grid = page.iter("table")

    assert rows(listed)[1][:2] == ["✗ fail", f"wheelproof {GRID.command}"]
    assert rows(grid) == [
        ["platform", "torch2.11.0", "torch2.11.0-h100"],
        ["x86_64, Python 3.9", "✓", ""],
        ["x86_64, Python 3.13", "✗", "✓"],
        ["aarch64, Python 3.13", "?", ""],
    ]
    links = {str(a.get("href")): a.get("title") for a in grid.iter("a")}
    assert links == {"#r0-1": "x86_64-py3.13-torch2.11.0: fails", "#r0-3": "aarch64-py3.13-torch2.11.0: undecided"}
    [legend] = by_class(page, "ul", "legend")
    assert [text_of(sign) for sign in legend] == ["✗ fails", "? undecided", "✓ passes"]
    assert [text_of(section) for section in by_class(page, "span", "file")] == [
        "x86_64-py3.13-torch2.11.0",
        "aarch64-py3.13-torch2.11.0",
    ]


def test_torch_that_is_a_range_is_one_column_whatever_was_resolved() -> None:
    def ranged(python: str, resolved: str) -> Subject:
        return replace(cell("x86_64", python, torch=resolved), id=f"x86_64-py{python}-torch-ge2.10")

    page = page_of(reports.report(ranged("3.12", "2.11.0"), ranged("3.9", "2.10.0")))
    assert rows(list(page.iter("table"))[1]) == [
        ["platform", "torch-ge2.10"],
        ["x86_64, Python 3.9", "✓"],
        ["x86_64, Python 3.12", "✓"],
    ]


def test_cells_of_other_peoples_making_do_not_fill_a_page_without_end() -> None:
    text = io.StringIO()
    render([reports.report(*(cell(f"machine{n}", str(n), name=f"n{n}") for n in range(2000)))], text, "Cells")
    assert "Cells by platform, Python and torch; 1,928 more are left out" in text.getvalue()
    assert len(text.getvalue()) < 600_000


def test_a_page_is_strict_html_whose_links_lead_somewhere() -> None:
    built = [reports.mixed(), reports.hostile(), reports.forty(), reports.empty(), GRID]
    page = page_of(*built)
    ids = [element.get("id") for element in page.iter() if element.get("id")]

    assert len(ids) == len(set(ids))
    assert {str(a.get("href")).removeprefix("#") for a in page.iter("a")} <= set(ids)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {e.tag for e in page.iter()}
    assert not {"src", "style", "onload"} & {name for element in page.iter() for name in element.attrib}
    assert text_of(next(page.iter("title"))) == "Our wheels"


def test_the_newest_report_comes_first() -> None:
    older = replace(reports.passing(), started="2026-01-01T00:00:00Z", command="older")
    newer = replace(reports.passing(), started="2026-11-01T00:00:00Z", command="newer")
    table = next(page_of(older, newer).iter("table"))

    assert [row[1] for row in rows(table)[1:]] == ["wheelproof newer", "wheelproof older"]


def test_of_many_findings_the_first_are_shown() -> None:
    page = page_of(reports.report(*(cell("x86_64", "3.13", Outcome.FAIL, name=f"n{n}") for n in range(600))))

    assert len([*by_class(page, "section", "problem")]) == 500
    assert "100 more findings" in text_of(page)
    ids = {element.get("id") for element in page.iter()}
    assert {str(a.get("href")).removeprefix("#") for a in page.iter("a")} <= ids


def test_the_command_reads_files_and_folders(wheelproof: Wheelproof, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(rendered(GRID, "json"))
    (tmp_path / "b.json").write_text(rendered(reports.mixed(), "json"))
    output = tmp_path / "status.html"
    run = wheelproof("report", "page", str(tmp_path / "in"), str(tmp_path / "b.json"), "--output", str(output))

    assert (run.status, run.out) == (0, "")
    assert len(rows(next(parsed(output.read_text()).iter("table")))) == 3
