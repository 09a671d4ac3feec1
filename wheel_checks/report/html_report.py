"""The report as one HTML page: no script, no request, nothing outside the file; light or dark as the reader prefers."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from itertools import groupby
from typing import TextIO

from wheel_checks.model import CheckResult, Outcome, Overview, Picture, Report, Subject, Table
from wheel_checks.phrases import shortened
from wheel_checks.report import wording
from wheel_checks.report.wording import neutral

# What a cell of the table shows: class, symbol, meaning. The symbol says what the colour shows.
_CELLS = {
    "error": ("error", "✗", "error"),
    "not checked": ("crash", "?", "could not be checked"),
    "warning": ("warning", "!", "warning"),
    "note": ("note", "i", "note"),
    "skipped": ("skip", "-", "skipped"),
    "passed": ("pass", "✓", "passed"),
}

_MOST = 500  # subjects of a kind that the overview sums up


def render(report: Report, stream: TextIO) -> None:
    """Write the page: the verdict, a table of subjects by rules, and per subject the evidence, folded.

    The text is ASCII with character references, so that no encoding of ``stream`` can spoil it. The content security
    policy allows nothing but the page's own style sheet, by its hash, and pictures that are part of the page.
    """
    style = files("wheel_checks.report").joinpath("report.css").read_text(encoding="ascii")
    digest = base64.b64encode(hashlib.sha256(style.encode("ascii")).digest()).decode("ascii")
    overview = report.overview or Overview("")
    images = "img-src data:; " if overview.pictures else ""
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; {images}base-uri 'none'; form-action 'none'"
    title = f"{report.verdict.value.upper()}: wheelproof {report.command}, {wording.judged_phrase(report)}"
    shown = _shown(report, overview.summed_up)
    left_out = len(report.subjects) - len(shown.subjects)
    page = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>",
        _banner(report),
        "<main>",
        *(f"<p>{_text(statement)}</p>" for statement in overview.statements),
        *map(_picture, overview.pictures),
        *map(_table, overview.tables),
        _heat_map(shown),
        *(_subject(shown, subject, number) for number, subject in enumerate(shown.subjects)),
        f"<p>{left_out:,} more are left out; the json format holds everything.</p>" * bool(left_out),
        *(f"<p>{_text(note)}</p>" for note in overview.notes),
        "</main>",
        f"<footer>wheelproof {_text(report.version)}, report of {_text(report.started)}</footer>\n</body>\n</html>\n",
    ]
    text = wording.without_commands("\n".join(page), colon="&#58;")
    stream.write(text.encode("ascii", "xmlcharrefreplace").decode("ascii"))


def _shown(report: Report, summed_up: frozenset[str]) -> Report:
    """The report with at most ``_MOST`` subjects of kinds that its overview sums up: those with problems first."""
    several = [subject for subject in report.subjects if subject.kind in summed_up]
    if len(several) <= _MOST:
        return report
    kept = {id(subject) for subject in sorted(several, key=lambda s: not wording.problems(s))[:_MOST]}
    subjects = (s for s in report.subjects if s.kind not in summed_up or id(s) in kept)
    return replace(report, subjects=tuple(subjects))


def _text(text: str) -> str:
    return html.escape(shortened(neutral(text)))


def _banner(report: Report) -> str:
    verdict = report.verdict.value
    judged = _text(", ".join(filter(None, (wording.judged_phrase(report), wording.silenced_phrase(report)))))
    counted = (wording.counts_phrase(wording.concerning(report.subjects)), wording.publisher_phrase(report))
    counts = _text(", ".join(filter(None, counted)))
    answers = "".join(f'<p class="answer">{_text(line)}</p>\n' for line in wording.answer_lines(report))
    return (
        f'<header><div class="banner {verdict}">\n{answers}'
        f'<h1><span class="word">{verdict.upper()}</span> {judged}</h1>\n<p>{counts}</p>\n'
        f'<p class="run"><code>wheelproof {_text(report.command)}</code>: {_text(wording.cost_phrase(report))}; '
        f"fails on: {report.fail_on.value}</p>\n</div></header>"
    )


def _picture(picture: Picture) -> str:
    """The picture as an image: what is in an ``img`` runs no script and loads nothing, whoever wrote it."""
    data = base64.b64encode(picture.svg.encode("utf-8", "replace")).decode("ascii")
    title = _text(picture.title)
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{title}"><figcaption>{title}</figcaption></figure>'
    )


def _table(table: Table) -> str:
    numbers = [' class="number"' if column in table.numbers else "" for column in table.columns]
    mark = ' class="warning marked"'
    head = "".join(
        f'<th scope="col"{css}>{_text(column)}</th>' for column, css in zip(table.columns, numbers, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(
            f"<td{mark if (number, column) in table.marked else css}>{_text(cell)}</td>"
            for column, (cell, css) in enumerate(zip(row, numbers, strict=True))
        )
        + "</tr>"
        for number, row in enumerate(table.rows)
    )
    title = _text(table.title)
    return (
        f'<h2>{title}</h2>\n<div class="scroll" tabindex="0" role="region" aria-label="{title}">\n'
        f'<table class="plain">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>'
    )


def _heat_map(report: Report) -> str:
    """The table of subjects by rules; a cell shows the worst result of its rule and leads to it."""
    if not report.subjects:
        return "<p>There was nothing to judge.</p>"
    titles = {result.rule: result.title for result in wording.all_results(report)}
    rules = sorted(titles)
    head = "".join(
        f'<th scope="col" class="rule"><abbr title="{_text(titles[rule])}">{_text(rule)}</abbr></th>' for rule in rules
    )
    rows = "\n".join(_row(report, subject, number, rules) for number, subject in enumerate(report.subjects))
    legend = "".join(f'<li><b class="{css}">{symbol}</b> {meaning}</li>' for css, symbol, meaning in _CELLS.values())
    return (
        '<h2 id="overview">Subjects by rules</h2>\n'
        '<div class="scroll" tabindex="0" role="region" aria-labelledby="overview">\n<table class="heat">\n'
        f'<thead><tr><th scope="col">subject</th><th scope="col">verdict</th>{head}</tr></thead>\n'
        f'<tbody>\n{rows}\n</tbody>\n</table>\n</div>\n<ul class="legend" aria-label="Legend">{legend}</ul>\n'
        "<h2>Details</h2>"
    )


def _row(report: Report, subject: Subject, number: int, rules: Iterable[str]) -> str:
    anchors = {id(result): f"s{number}-{index}" for index, result in enumerate(wording.problems(subject))}
    worst: dict[str, CheckResult] = {}
    for result in wording.worst_first(subject.results):
        worst.setdefault(result.rule, result)
    cells = "".join(_cell(worst.get(rule), anchors) for rule in rules)
    about = " · ".join(part for part in (subject.headline, wording.size_label(subject)) if part)
    verdict = report.verdict_of(subject).value
    return (
        f'<tr><th scope="row"><a class="file" href="#s{number}">{_text(subject.id)}</a>'
        f'<span class="about">{_text(about)}</span></th>'
        f'<td><span class="badge {verdict}">{verdict}</span></td>{cells}</tr>'
    )


def _cell(result: CheckResult | None, anchors: dict[int, str]) -> str:
    if result is None:
        return '<td class="cell"></td>'
    css, symbol, meaning = _CELLS[wording.label_of(result)]
    label = _text(f"{result.rule} {meaning}: {result.message}")
    if anchor := anchors.get(id(result)):
        content = f'<a class="{css}" href="#{anchor}" title="{label}" aria-label="{label}">{symbol}</a>'
    else:
        content = f'<span class="{css}" role="img" title="{label}" aria-label="{label}">{symbol}</span>'
    return f'<td class="cell">{content}</td>'


def _subject(report: Report, subject: Subject, number: int) -> str:
    verdict = report.verdict_of(subject).value
    problems = wording.problems(subject)
    unfolded = " open" if problems and len(report.subjects) <= wording.MANY else ""
    return (
        f'<details class="subject" id="s{number}"{unfolded}>\n'
        f'<summary><span class="badge {verdict}">{verdict}</span> <span class="file">{_text(subject.id)}</span> '
        f'<span class="counts">{_text(subject.headline)}{": " if subject.headline else ""}'
        f'{_text(wording.counts_phrase(subject.results))}</span></summary>\n<div class="body">\n'
        + "".join(_problem(result, f"s{number}-{index}") for index, result in enumerate(problems))
        + _others(subject)
        + _facts(subject)
        + "</div>\n</details>"
    )


def _problem(result: CheckResult, anchor: str) -> str:
    label = wording.label_of(result)
    css, symbol, _ = _CELLS[label]
    parts = [
        f'<section class="problem {css}" id="{anchor}">\n<h3><span class="badge {css}">{symbol} {label}</span> '
        f'{_text(result.message)}</h3>\n<p class="title"><span class="rule">{_text(result.rule)}</span> '
        + _text(result.title)
    ]
    if place := wording.place_of(result):
        parts.append(f', at <span class="file">{_text(place)}</span>')
    parts.append("</p>\n")
    if result.evidence:
        rows = []
        for evidence in result.evidence:
            source = f' <span class="source">{_text(evidence.source)}</span>' if evidence.source else ""
            rows.append(f"<dt>{_text(evidence.label)}</dt><dd>{_text(evidence.value)}{source}</dd>\n")
        rows = ['<dl class="facts">\n', *rows, "</dl>"]
        parts.append(f'<details class="more" open><summary>Evidence</summary>\n{"".join(rows)}</details>\n')
    if result.fix:
        parts.append(f'<div class="fix"><p><b>Fix:</b> {_text(result.fix.summary)}</p>\n')
        for for_shell, lines in groupby(wording.fix_lines(result.fix), key=lambda line: line.for_shell):
            shown = "\n".join(html.escape(line.text) for line in lines)
            # A line feed right after <pre> is dropped by HTML, so this one keeps a command's own first character safe.
            pre = '<pre tabindex="0" aria-label="Commands">\n'
            parts.append(f"{pre}{shown}</pre>" if for_shell else f"<p>{shown}</p>")
        parts.append("</div>\n")
    return "".join([*parts, "</section>\n"])


def _others(subject: Subject) -> str:
    others = wording.worst_first(r for r in subject.results if r.outcome in (Outcome.SKIP, Outcome.PASS))
    if not others:
        return ""
    items = []
    for result in others:
        css, symbol, meaning = _CELLS[wording.label_of(result)]
        items.append(
            f'<li class="{css}"><b role="img" aria-label="{meaning}">{symbol}</b> '
            f'<span class="rule">{_text(result.rule)}</span> {_text(result.message)}</li>\n'
        )
    counts = _text(wording.counts_phrase(others))
    return f'<details class="more"><summary>{counts}</summary>\n<ul class="others">\n{"".join(items)}</ul></details>\n'


def _facts(subject: Subject) -> str:
    rows = "".join(f"<dt>{_text(n)}</dt><dd>{_text(v)}</dd>\n" for n, v in wording.flat_facts(subject.facts))
    if not rows:
        return ""
    return f'<details class="more"><summary>Facts</summary>\n<dl class="facts">\n{rows}</dl></details>\n'
