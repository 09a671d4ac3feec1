from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import html5lib
import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.model import Outcome, Report, Severity, Subject


def hostile_overview() -> Report:
    return reports.own_overview(reports.HOSTILE)


def page_of(report: Report) -> ET.Element:
    """The page, parsed by the letter of the HTML standard: any parse error raises."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    page: ET.Element = parser.parse(rendered(report, "html"))
    return page


def text_of(element: ET.Element | None) -> str:
    assert element is not None
    return " ".join(" ".join(element.itertext()).split())


def by_class(page: ET.Element, tag: str, name: str) -> Iterator[ET.Element]:
    return (element for element in page.iter(tag) if name in element.get("class", "").split())


@pytest.mark.parametrize(
    "build",
    [
        reports.passing,
        reports.mixed,
        reports.empty,
        reports.missing_wheel,
        reports.hostile,
        reports.forty,
        hostile_overview,
    ],
)
def test_pages_are_strict_html_with_unique_ids_and_no_dead_link(build: Callable[[], Report]) -> None:
    page = page_of(build())
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    links = [str(a.get("href")) for a in page.iter("a")]
    assert {link.removeprefix("#") for link in links} <= set(ids)


@pytest.mark.parametrize("build", [reports.mixed, reports.hostile])
def test_a_page_is_self_contained_and_runs_nothing(build: Callable[[], Report]) -> None:
    page = page_of(build())
    used = {name for element in page.iter() for name in element.attrib}
    assert not {"src", "srcset", "action", "style", "background"} & used
    assert not [name for name in used if name.startswith("on")]
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {e.tag for e in page.iter()}
    [style] = page.iter("style")
    assert not re.search(r"url\(|@import", style.text or "")


def test_the_policy_allows_only_the_own_style_sheet() -> None:
    page = page_of(reports.mixed())
    [policy] = [m.get("content") for m in page.iter("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    [style] = page.iter("style")
    digest = base64.b64encode(hashlib.sha256((style.text or "").encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_a_table_of_an_overview_has_headers_and_aligned_numbers() -> None:
    table, _ = by_class(page_of(reports.own_overview()), "table", "plain")
    assert [(text_of(th), th.get("scope"), th.get("class")) for th in table.iter("th")] == [
        ("kernel", "col", None),
        ("us", "col", "number"),
    ]
    assert [[text_of(td) for td in row.iter("td")] for row in table.iter("tr")][1] == ["norm", "130.0"]


def test_the_banner_tells_the_verdict() -> None:
    [banner] = by_class(page_of(reports.mixed()), "div", "banner")
    assert text_of(banner).startswith("FAIL 3 wheels 3 findings (2 errors, 1 warning), 1 not checked")


def test_the_table_shows_subjects_by_rules_in_symbols_as_well_as_colours() -> None:
    [table] = by_class(page_of(reports.mixed()), "table", "heat")
    rules = [text_of(th) for th in table.iter("th") if th.get("class") == "rule"]
    assert rules == ["WHL101", "WHL301", "WHL501", "WHL601"], "what passes everywhere has no column"
    rows = [[text_of(td) for td in row.iter("td")] for row in table.iter("tr")][1:]
    assert rows == [
        ["fail", "✗", "✗", "", ""],
        ["undecided", "", "", "", "?"],
        ["pass", "", "", "!", ""],
    ]


def test_what_found_nothing_is_folded_and_counted() -> None:
    [quiet] = by_class(page_of(reports.mixed()), "details", "quiet")
    assert text_of(quiet.find("summary")) == "1 rule passes, 1 was skipped"
    assert quiet.get("open") is None
    assert [[text_of(td) for td in row.iter("td")] for row in quiet.iter("tr")][1:] == [
        ["WHL001", "Names agree", "3", "", ""],
        ["WHL401", "RECORD is complete", "", "2", "RECORD was not read (--depth links reads it)"],
    ]


def test_every_problem_is_a_line_above_that_leads_to_it_and_those_beyond_twenty_are_folded() -> None:
    failed = [reports.result(outcome=Outcome.FAIL, message=f"fault {n}", title="Names agree") for n in range(31)]
    page = page_of(reports.report(reports.wheel(results=tuple(failed))))
    [section] = by_class(page, "section", "findings")
    assert len(list(section.iter("li"))) == 31
    [more] = section.iter("label")
    assert (text_of(more), len(list(by_class(section, "li", "rest")))) == ("and 11 more", 11)
    places = {element.get("id"): element for element in by_class(page, "section", "problem")}
    for line in section.iter("li"):
        [link] = line.iter("a")
        [number] = re.findall(r"fault \d+$", text_of(link))
        assert text_of(places[str(link.get("href")).removeprefix("#")].find("h3")).endswith(number)


def test_what_is_shown_can_be_chosen_without_a_script() -> None:
    page = page_of(reports.mixed())
    chosen = {str(box.get("id")) for box in page.iter("input") if box.get("type") == "checkbox"}
    assert chosen == {"show-error", "show-crash", "show-warning", "show-passing"}
    [style] = page.iter("style")
    assert all(f"#{name}:not(:checked)" in str(style.text) for name in chosen)


def test_each_rule_that_found_something_can_be_chosen_alone() -> None:
    found = [reports.result("WHL301", Outcome.FAIL, f"fault {n}") for n in range(7)]
    wheels = [reports.wheel(results=tuple(found)), reports.wheel("2.10.0", results=(reports.CRASHED,)), reports.wheel()]
    page = page_of(reports.report(*wheels))
    rules = [label for label in page.iter("label") if label.findall("input[@type='radio']")]
    assert [text_of(label) for label in rules] == ["all rules", "WHL301 (7)", "WHL601 (1)"]
    [style] = page.iter("style")
    assert str(style.text).count("body:has(#only-") == 2
    [table] = by_class(page, "table", "subjects")
    assert [row.get("class") for row in table.iter("tr")][1:] == ["row-fail r0", "row-undecided r1", "row-pass"]


def test_of_few_findings_none_is_chosen() -> None:
    assert not [box for box in page_of(reports.mixed()).iter("input") if box.get("type") == "radio"]


def test_what_other_people_call_a_rule_does_not_get_into_the_style_sheet() -> None:
    names = ["}</style>", "a b", 'x"y', "r0"]
    failed = [reports.result(name, Outcome.FAIL, f"fault {n} of {name}") for name in names for n in range(2)]
    page = page_of(reports.report(reports.wheel(results=tuple(failed))))
    [style] = page.iter("style")
    assert not [name for name in names[:3] if f"{name})" in str(style.text) or f"{name}:" in str(style.text)]
    assert {line.get("class") for line in by_class(page, "li", "error")} == {f"error r{n}" for n in range(4)}


def cell(
    cell_id: str,
    outcome: Outcome = Outcome.PASS,
    severity: Severity = Severity.ERROR,
    torch: str = "2.11.0",
) -> Subject:
    """A cell of a matrix with an id such as ``x86_64-py3.12-torch2.11.0``; ``torch`` is the release in it."""
    platform, python, *_ = cell_id.split("-")
    facts = {"platform": platform, "python": python.removeprefix("py"), "torch": torch}
    return Subject(cell_id, "cell", "", facts, (reports.result("MTX101", outcome, "why", severity=severity),))


def cell_rows(page: ET.Element) -> list[list[str]]:
    [table] = by_class(page, "table", "map")
    return [[text_of(field) for field in row] for row in table.iter("tr")]


def test_the_cells_of_a_matrix_are_a_map_that_leads_to_their_details() -> None:
    cells = [
        cell("x86_64-py3.12-torch2.11.0"),
        cell("aarch64-py3.12-torch2.11.0", Outcome.FAIL),
        cell("armv7l-py3.12-torch2.11.0", Outcome.FAIL, Severity.NOTE),
    ]
    page = page_of(reports.report(*cells))
    assert cell_rows(page) == [
        ["platform", "torch2.11.0"],
        ["x86_64, Python 3.12", "✓"],
        ["aarch64, Python 3.12", "✗"],
        ["armv7l, Python 3.12", "i"],
    ]
    [table] = by_class(page, "table", "map")
    links = {text_of(link): str(link.get("href")).removeprefix("#") for link in table.iter("a")}
    details = {str(element.get("id")): text_of(element.find("summary")) for element in page.iter("details")}
    assert details[links["✗"]].startswith("fail aarch64-py3.12")
    assert details[links["i"]].startswith("pass armv7l-py3.12")


def test_the_rows_of_the_cells_are_in_the_order_of_the_pythons_and_may_have_holes() -> None:
    cells = [
        cell("x86_64-py3.13-torch2.11.0"),
        cell("x86_64-py3.9-torch2.11.0"),
        cell("x86_64-py3.13-torch2.11.0-h100"),
        cell("aarch64-py3.13-torch2.11.0", Outcome.ERROR),
    ]
    page = page_of(reports.report(*cells))
    assert cell_rows(page) == [
        ["platform", "torch2.11.0", "torch2.11.0-h100"],
        ["x86_64, Python 3.9", "✓", ""],
        ["x86_64, Python 3.13", "✓", "✓"],
        ["aarch64, Python 3.13", "?", ""],
    ]
    legend = [text_of(sign) for each in by_class(page, "ul", "legend") for sign in each]
    assert {"? undecided", "✓ passes"} <= set(legend)


def test_torch_that_is_a_range_is_one_column_whatever_was_resolved() -> None:
    cells = [cell("x86_64-py3.12-torch-ge2.10"), cell("x86_64-py3.9-torch-ge2.10", torch="2.10.0")]
    assert cell_rows(page_of(reports.report(*cells))) == [
        ["platform", "torch-ge2.10"],
        ["x86_64, Python 3.9", "✓"],
        ["x86_64, Python 3.12", "✓"],
    ]


def test_cells_of_other_peoples_making_do_not_fill_the_map_without_end() -> None:
    text = rendered(reports.report(*(cell(f"machine{n}-py{n}-n{n}") for n in range(2000))), "html")
    assert "Cells by platform, Python and torch; 1,928 more are left out" in text


def test_every_header_has_a_scope_and_every_symbol_a_name() -> None:
    [table] = by_class(page_of(reports.mixed()), "table", "heat")
    assert {th.get("scope") for th in table.iter("th")} == {"col", "row"}
    cells = [child for td in by_class(table, "td", "cell") for child in td]
    assert cells
    assert all(re.match(r"WHL\d+ .+: .+", cell.get("aria-label", "")) for cell in cells)


def test_evidence_and_fix_are_in_the_details_of_their_subject() -> None:
    page = page_of(reports.mixed())
    subject = next(by_class(page, "details", "subject"))
    assert subject.get("open") is not None
    assert "version.py 2.10.0+cpu torch/version.py" in text_of(subject)
    assert [text_of(pre) for pre in subject.iter("pre")] == ["pip install 'torch>=2.11'"]
    assert "certainty.accelerator exact" in text_of(subject)


def test_many_subjects_start_folded() -> None:
    subjects = list(by_class(page_of(reports.forty()), "details", "subject"))
    assert len(subjects) == 40
    assert not [subject for subject in subjects if "open" in subject.attrib]


def test_hostile_strings_are_text() -> None:
    heading = text_of(page_of(reports.hostile()).find(".//h1"))
    assert "<script>alert(1)</script>" in heading
    assert "\\x1b[31mred" in heading
    assert "\\u202egpj.exe" in heading
