"""A status page of several reports: their verdicts, the cells of a matrix as a grid, and what was found.

It is one file without scripts, requests or pictures, for any place that serves files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from wheel_checks.model import CheckResult, Report
from wheel_checks.phrases import plural
from wheel_checks.report import wording
from wheel_checks.report.badge import message_of
from wheel_checks.report.html_report import problem_section, write_page
from wheel_checks.report.html_tables import table_of, text_of
from wheel_checks.report.overview import cell_map

_MOST = 500  # findings of one report
_SYMBOLS = {"pass": "✓", "fail": "✗", "undecided": "?"}


def render(reports: Sequence[Report], stream: TextIO, title: str = "wheelproof") -> None:
    """Write the page: a line for each report, the newest first, then the grid and the findings of each."""
    ordered = sorted(reports, key=lambda report: report.started, reverse=True)
    rows = "\n".join(_row(report, number) for number, report in enumerate(ordered))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("verdict", "report", "started (UTC)", "result"))
    body = [
        f"<header><h1>{text_of(title)}</h1></header>\n<main>",
        '<h2 id="reports">Reports</h2>\n<div class="scroll" tabindex="0" role="region" aria-labelledby="reports">',
        f'<table class="plain">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>',
        *(part for number, report in enumerate(ordered) for part in _sections(report, number)),
        "</main>",
    ]
    write_page(title, body, stream)


def _badge(verdict: str, text: str = "") -> str:
    return f'<span class="badge {verdict}">{_SYMBOLS[verdict]} {text_of(text or verdict)}</span>'


def _row(report: Report, number: int) -> str:
    return (
        f'<tr><td>{_badge(report.verdict)}</td><th scope="row"><a href="#r{number}">wheelproof '
        f"{text_of(report.command)}</a></th><td>{text_of(report.started)}</td><td>{text_of(message_of(report))}</td></tr>"
    )


def _sections(report: Report, number: int) -> Iterator[str]:
    yield f'<h2 id="r{number}">wheelproof {text_of(report.command)}, {text_of(report.started)}</h2>'
    counts = wording.counts_phrase(wording.all_results(report))
    yield f"<p>{text_of(wording.judged_phrase(report))}: {text_of(counts)}</p>"
    yield from (f'<p class="answer">{text_of(line)}</p>' for line in wording.answer_lines(report))
    shown, left_out = _shown(report)
    links = {report.subjects[place].id: f"#r{number}-{place}" for place in shown}
    yield from (table_of(cells, f"g{number}", links) for cells in cell_map(report))
    for place, problems in shown.items():
        subject = report.subjects[place]
        sections = "".join(problem_section(result, f"r{number}-{place}-{n}") for n, result in enumerate(problems))
        yield (
            f'<details class="subject" id="r{number}-{place}">\n<summary>{_badge(report.verdict_of(subject))} '
            f'<span class="file">{text_of(subject.id)}</span> '
            f'<span class="counts">{text_of(subject.headline)}</span></summary>\n'
            f'<div class="body">\n{sections}</div>\n</details>'
        )
    if left_out:
        yield f"<p>{plural(left_out, 'more finding')}; the report in the json format has everything.</p>"


def _shown(report: Report) -> tuple[dict[int, list[CheckResult]], int]:
    """The findings that are shown, by the place of their subject, and how many are omitted."""
    shown: dict[int, list[CheckResult]] = {}
    left, left_out = _MOST, 0
    for place, subject in enumerate(report.subjects):
        problems = wording.problems(subject)
        if problems[:left]:
            shown[place] = problems[:left]
        left_out += len(problems[left:])
        left -= len(problems[:left])
    return shown, left_out
