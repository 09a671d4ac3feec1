"""A status page of several reports: their verdicts, the cells of a matrix as a grid, and what was found.

It is one file without scripts, requests or pictures, for any place that serves files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from wheel_checks.model import CheckResult, Report, Subject
from wheel_checks.phrases import plural
from wheel_checks.report import wording
from wheel_checks.report.badge import message_of
from wheel_checks.report.html_report import problem_section, text_of, write_page

CELL = "cell"  # the kind of a subject that is a cell of a matrix
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
    cells = [subject for subject in report.subjects if subject.kind == CELL]
    if cells:
        yield _grid(report, cells, number, {report.subjects[place].id: place for place in shown})
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
        yield f"<p>{plural(left_out, 'more finding')}; the report in the json format holds everything.</p>"


def _shown(report: Report) -> tuple[dict[int, list[CheckResult]], int]:
    """The findings that are shown, by the place of their subject, and how many are left out."""
    shown: dict[int, list[CheckResult]] = {}
    left, left_out = _MOST, 0
    for place, subject in enumerate(report.subjects):
        problems = wording.problems(subject)
        if problems[:left]:
            shown[place] = problems[:left]
        left_out += len(problems[left:])
        left -= len(problems[:left])
    return shown, left_out


def _grid(report: Report, cells: Sequence[Subject], number: int, places: Mapping[str, int]) -> str:
    """Platforms and torch versions by Pythons; cells that have a name share the place of their combination.

    ``places`` are those of the cells whose findings are shown.
    """
    pythons = sorted({_fact(cell, "python") for cell in cells}, key=_natural)
    rows: dict[tuple[str, str], dict[str, list[Subject]]] = {}
    for cell in cells:
        place = rows.setdefault((_fact(cell, "platform"), _fact(cell, "torch")), {})
        place.setdefault(_fact(cell, "python"), []).append(cell)
    lines = []
    for (platform, torch), by_python in rows.items():
        shown = ("".join(_cell(report, c, number, places) for c in by_python.get(python, ())) for python in pythons)
        head = f'<th scope="row">{text_of(platform)}, torch {text_of(torch)}</th>'
        lines.append(f"<tr>{head}{''.join(f'<td>{text}</td>' for text in shown)}</tr>")
    head = "".join(f'<th scope="col">Python {text_of(python)}</th>' for python in pythons)
    label = f"g{number}"
    return (
        f'<h3 id="{label}">Cells</h3>\n<div class="scroll" tabindex="0" role="region" aria-labelledby="{label}">\n'
        f'<table class="plain">\n<thead><tr><th scope="col">platform</th>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody>\n</table>\n</div>"
    )


def _cell(report: Report, cell: Subject, number: int, places: Mapping[str, int]) -> str:
    """The verdict of a cell, with the name that is the end of its id; it leads to the findings, where there are any."""
    verdict = report.verdict_of(cell)
    usual = "-".join((_fact(cell, "platform"), f"py{_fact(cell, 'python')}", f"torch{_fact(cell, 'torch')}"))
    name = cell.id.removeprefix(usual).lstrip("-")
    shown = _badge(verdict, f"{name}: {verdict}" if name else "")
    title = f' title="{text_of(cell.id)}"'
    if cell.id in places:
        return f'<a href="#r{number}-{places[cell.id]}"{title}>{shown}</a> '
    return f"<span{title}>{shown}</span> "


def _fact(cell: Subject, name: str) -> str:
    return str(cell.facts.get(name, ""))


def _natural(version: str) -> tuple[list[int], str]:
    return [int(part) if part.isascii() and part.isdigit() else 0 for part in version.rstrip("t").split(".")], version
