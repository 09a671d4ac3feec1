"""The report as one HTML page: no script, no request, nothing outside the file; light or dark as the reader prefers."""

from __future__ import annotations

import base64
import hashlib
import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import groupby
from typing import TextIO

from wheel_checks.model import CheckResult, HeatMap, Outcome, Overview, Report, Subject, Verdict
from wheel_checks.report import wording
from wheel_checks.report.causes import Cause, causes, problems_of
from wheel_checks.report.html.tables import table_of, text_of
from wheel_checks.report.overview import cell_map, quiet_phrase, quiet_rules, speaking_rules, worst_subjects

# A cell of the table: class, symbol, meaning. The symbol repeats the meaning of the colour.
_CELLS = {
    "error": ("error", "✗", "error"),
    "not checked": ("crash", "?", "could not be checked"),
    "warning": ("warning", "!", "warning"),
    "note": ("note", "i", "note"),
    "skipped": ("skip", "-", "skipped"),
    "passed": ("pass", "✓", "passed"),
}

_FIRST = 20  # findings that are shown at once
_CHOICES = 30  # rules that can be chosen
_ANSWERS, _LONGEST = 4, 160  # answers and their characters for which the first screen has room
_MOST = 500  # subjects of a kind that the overview sums up


def render(report: Report, stream: TextIO) -> None:
    """Write the page: the verdict, the findings, a table of subjects by rules, and the evidence, folded."""
    overview = report.overview or Overview("")
    title = f"{report.verdict.value.upper()}: wheelproof {report.command}, {wording.judged_phrase(report)}"
    shown = _shown(report, overview.summed_up)
    shown = replace(shown, subjects=tuple(worst_subjects(shown)))
    found = causes(problems_of(shown))
    anchors = {
        id(result): f"s{number}-{index}"
        for number, subject in enumerate(shown.subjects)
        for index, result in enumerate(wording.problems(subject))
    }
    links = {subject.id: f"#s{number}" for number, subject in enumerate(shown.subjects)}
    tables = [*cell_map(report), *overview.maps, *overview.tables]
    tables.sort(key=lambda table: not isinstance(table, HeatMap))
    choices = _choices(found)
    left_out = len(report.subjects) - len(shown.subjects)
    body = [
        _banner(report),
        "<main>",
        _findings(found, anchors, choices),
        *(f"<p>{text_of(statement)}</p>" for statement in overview.statements),
        *(table_of(table, f"table-{number}", links) for number, table in enumerate(tables)),
        _subjects_table(shown, anchors, choices),
        _quiet(shown),
        "<h2>Details</h2>" * bool(shown.subjects),
        *(_subject(shown, subject, number, choices) for number, subject in enumerate(shown.subjects)),
        f"<p>{left_out:,} more are omitted; the json format has everything.</p>" * bool(left_out),
        *(f"<p>{text_of(note)}</p>" for note in overview.notes),
        "</main>",
        f"<footer>wheelproof {text_of(report.version)}, report of {text_of(report.started)}</footer>",
    ]
    _write_page(title, body, stream, style=_style_of(choices))


def _write_page(title: str, body: Iterable[str], stream: TextIO, *, style: str) -> None:
    """Write a page with this ``body``, whose parts are HTML.

    The text is ASCII with character references, so that no encoding of ``stream`` can spoil it. The content security
    policy allows nothing but the page's own style sheet, by its hash. ``style`` is added to the common style sheet.
    """
    style = files("wheel_checks.report.html").joinpath("report.css").read_text(encoding="ascii") + style
    digest = base64.b64encode(hashlib.sha256(style.encode("ascii")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{text_of(title)}</title>\n<style>{style}</style>\n</head>\n<body>",
        *body,
        "</body>\n</html>\n",
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


def _banner(report: Report) -> str:
    verdict = report.verdict.value
    judged = text_of(", ".join(filter(None, (wording.judged_phrase(report), wording.silenced_phrase(report)))))
    counted = (wording.counts_phrase(wording.concerning(report.subjects)), wording.publisher_phrase(report))
    counts = text_of(", ".join(filter(None, counted)))
    also = "".join(f"<p>{text_of(line)}</p>\n" for line in filter(None, [wording.also_line(report)]))
    answers = _answers(wording.answer_lines(report))
    return (
        f'<header><div class="banner {verdict}">\n{answers}'
        f'<h1><span class="word">{verdict.upper()}</span> {judged}</h1>\n<p>{counts}</p>\n{also}'
        f'<p class="run"><code>wheelproof {text_of(report.command)}</code>: {text_of(wording.cost_phrase(report))}; '
        f"fails on: {report.fail_on.value}</p>\n</div></header>"
    )


def _answers(lines: Sequence[str]) -> str:
    """The answers. Those that would fill the first screen are cut there, until a click shows all of them."""
    shown = "".join(f'<span class="answer">{text_of(line)}</span>\n' for line in lines)
    if sum(map(len, lines)) <= _LONGEST and len(lines) <= _ANSWERS:
        return f'<p class="answers">{shown}</p>\n' if lines else ""
    return f'<details class="answers"><summary title="Show all of it">{shown}</summary></details>\n'


def _choices(found: Iterable[Cause]) -> dict[str, str]:
    """The class of each rule that can be chosen: those with most problems, in the order of ids; empty if few."""
    counts = Counter(cause.first.rule for cause in found)
    if len(counts) == 1 or counts.total() <= wording.MANY:
        return {}
    return {rule: f"r{number}" for number, rule in enumerate(sorted(dict(counts.most_common(_CHOICES))))}


def _style_of(choices: Mapping[str, str]) -> str:
    """Hides everything but the chosen rule. The classes are ours, independent of the rule's name."""
    what = ":is(.findings li, .subjects tbody tr, .subject)"
    return "".join(
        f"body:has(#only-{css}:checked) {what}:not(.{css}) {{ display: none; }}\n" for css in choices.values()
    )


def _findings(found: Sequence[Cause], anchors: Mapping[int, str], choices: Mapping[str, str]) -> str:
    """The problems, one line each, which lead to their evidence. The first ``_FIRST`` are shown, others on request."""
    if not found:
        return ""
    lines = [_finding(cause, anchors, choices, number) for number, cause in enumerate(found)]
    more = len(lines) - _FIRST
    rest = f'<label><input type="checkbox" id="show-rest"> and {more:,} more</label>' if more > 0 else ""
    kinds = dict.fromkeys(wording.label_of(cause.first) for cause in found)
    by_kind = "".join(
        f'<label class="{_CELLS[kind][0]}"><input type="checkbox" class="kind" id="show-{_CELLS[kind][0]}" checked> '
        f"{kind}</label>"
        for kind in kinds
    )
    counts = Counter(cause.first.rule for cause in found)
    by_rule = "".join(
        f'<label><input type="radio" name="rule" class="only" id="only-{css}"> '
        f'<span class="rule">{text_of(rule)}</span> ({counts[rule]:,})</label>'
        for rule, css in choices.items()
    )
    if unlisted := len(counts) - len(choices):
        by_rule += f"<span>and {unlisted:,} more rules</span>"
    every = '<label><input type="radio" name="rule" checked> all rules</label>'
    filters = [rest, f"Show {by_kind}" if len(kinds) > 1 else "", f"{every}{by_rule}" if choices else ""]
    shown = "".join(f'<p class="filters">{text}</p>\n' for text in filters if text)
    return f'<section class="findings" aria-label="Findings">\n<ol>\n{"".join(lines)}</ol>\n{shown}</section>'


def _finding(cause: Cause, anchors: Mapping[int, str], choices: Mapping[str, str], number: int) -> str:
    css, symbol, meaning = _CELLS[wording.label_of(cause.first)]
    message = cause.shown.message
    rest = message.removeprefix(cause.about) if message.startswith(cause.about) else f": {message}"
    path = " path" * ("/" in cause.about)
    classes = " ".join(filter(None, (css, choices.get(cause.first.rule), "rest" if number >= _FIRST else "")))
    return (
        f'<li class="{classes}"><a href="#{anchors[id(cause.first)]}" title="{text_of(f"{cause.about}{rest}")}">'
        f'<b class="{css}" role="img" aria-label="{meaning}">{symbol}</b> '
        f'<span class="rule">{text_of(cause.first.rule)}</span> '
        f'<span class="about{path}"><bdi>{text_of(cause.about)}</bdi></span>'
        f'<span class="said">{text_of(rest)}</span></a></li>\n'
    )


def _classes(verdict: Verdict, subject: Subject, choices: Mapping[str, str]) -> str:
    """The classes of a subject for the filters: its verdict, and the rules that found a problem of it."""
    rules = {result.rule: None for result in wording.problems(subject)}
    return " ".join([f"row-{verdict}", *(choices[rule] for rule in rules if rule in choices)])


def _subjects_table(report: Report, anchors: Mapping[int, str], choices: Mapping[str, str]) -> str:
    """The subjects by the rules that found something; a cell shows the worst result of its rule and leads to it."""
    if not report.subjects:
        return "<p>There was nothing to judge.</p>"
    rules = speaking_rules(report)
    head = "".join(
        f'<th scope="col" class="rule"><abbr title="{text_of(title)}">{text_of(rule)}</abbr></th>'
        for rule, title in rules.items()
    )
    rows = "\n".join(
        _row(report, subject, number, rules, anchors, choices) for number, subject in enumerate(report.subjects)
    )
    used = {wording.label_of(result) for result in wording.all_results(report) if result.rule in rules}
    legend = "".join(
        f'<li><b class="{css}">{symbol}</b> {meaning}</li>'
        for label, (css, symbol, meaning) in _CELLS.items()
        if label in used
    )
    passing = sum(report.verdict_of(subject) is Verdict.PASS for subject in report.subjects)
    hides = (
        f'<p class="filters"><label><input type="checkbox" id="show-passing" checked> {passing:,} that pass</label></p>'
        if 0 < passing < len(report.subjects)
        else ""
    )
    return (
        f'<h2 id="overview">Subjects{" by rules" * bool(rules)}, worst first</h2>\n{hides}'
        '<div class="scroll" tabindex="0" role="region" aria-labelledby="overview">\n<table class="heat subjects">\n'
        f'<thead><tr><th scope="col">subject</th><th scope="col">verdict</th>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
        + (f'\n<ul class="legend" aria-label="Legend">{legend}</ul>' if legend else "")
    )


def _row(
    report: Report,
    subject: Subject,
    number: int,
    rules: Iterable[str],
    anchors: Mapping[int, str],
    choices: Mapping[str, str],
) -> str:
    worst: dict[str, CheckResult] = {}
    for result in wording.worst_first(subject.results):
        worst.setdefault(result.rule, result)
    cells = "".join(_cell(worst.get(rule), anchors) for rule in rules)
    about = " · ".join(part for part in (subject.headline, wording.size_label(subject)) if part)
    verdict = report.verdict_of(subject)
    return (
        f'<tr class="{_classes(verdict, subject, choices)}">'
        f'<th scope="row"><a class="file" href="#s{number}">{text_of(subject.id)}</a>'
        f'<span class="about">{text_of(about)}</span></th>'
        f'<td><span class="badge {verdict}">{verdict}</span></td>{cells}</tr>'
    )


def _cell(result: CheckResult | None, anchors: Mapping[int, str]) -> str:
    if result is None:
        return '<td class="cell"></td>'
    css, symbol, meaning = _CELLS[wording.label_of(result)]
    label = text_of(f"{result.rule} {meaning}: {result.message}")
    if anchor := anchors.get(id(result)):
        content = f'<a class="{css}" href="#{anchor}" title="{label}" aria-label="{label}">{symbol}</a>'
    else:
        content = f'<span class="{css}" role="img" title="{label}" aria-label="{label}">{symbol}</span>'
    return f'<td class="cell">{content}</td>'


def _quiet(report: Report) -> str:
    """The rules that found nothing, folded."""
    rules = quiet_rules(report)
    if not rules:
        return ""
    rows = "\n".join(
        f"<tr><td>{text_of(rule.rule)}</td><td>{text_of(rule.title)}</td>"
        f'<td class="number">{rule.passed or ""}</td><td class="number">{rule.skipped or ""}</td>'
        f"<td>{text_of(rule.reason)}</td></tr>"
        for rule in rules
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("rule", "holds", "passed", "skipped", "why skipped"))
    return (
        f'<details class="more quiet"><summary>{text_of(quiet_phrase(rules))}</summary>\n'
        f'<div class="scroll"><table class="plain">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n'
        "</table></div></details>"
    )


def _subject(report: Report, subject: Subject, number: int, choices: Mapping[str, str]) -> str:
    verdict = report.verdict_of(subject)
    problems = wording.problems(subject)
    unfolded = " open" if problems and len(report.subjects) <= wording.MANY else ""
    return (
        f'<details class="subject {_classes(verdict, subject, choices)}" id="s{number}"{unfolded}>\n'
        f'<summary><span class="badge {verdict}">{verdict}</span> <span class="file">{text_of(subject.id)}</span> '
        f'<span class="counts">{text_of(subject.headline)}{": " if subject.headline else ""}'
        f'{text_of(wording.counts_phrase(subject.results))}</span></summary>\n<div class="body">\n'
        + "".join(_problem_section(result, f"s{number}-{index}") for index, result in enumerate(problems))
        + _others(subject)
        + _facts(subject)
        + "</div>\n</details>"
    )


def _problem_section(result: CheckResult, anchor: str) -> str:
    """A finding, or a check that could not be made, with its evidence and fix."""
    label = wording.label_of(result)
    css, symbol, _ = _CELLS[label]
    parts = [
        f'<section class="problem {css}" id="{anchor}">\n<h3><span class="badge {css}">{symbol} {label}</span> '
        f'{text_of(result.message)}</h3>\n<p class="title"><span class="rule">{text_of(result.rule)}</span> '
        + text_of(result.title)
    ]
    if place := wording.place_of(result):
        parts.append(f', at <span class="file">{text_of(place)}</span>')
    parts.append("</p>\n")
    if result.evidence:
        rows = []
        for evidence in result.evidence:
            source = f' <span class="source">{text_of(evidence.source)}</span>' if evidence.source else ""
            rows.append(f"<dt>{text_of(evidence.label)}</dt><dd>{text_of(evidence.value)}{source}</dd>\n")
        rows = ['<dl class="facts">\n', *rows, "</dl>"]
        parts.append(f'<details class="more" open><summary>Evidence</summary>\n{"".join(rows)}</details>\n')
    if result.fix:
        parts.append(f'<div class="fix"><p><b>Fix:</b> {text_of(result.fix.summary)}</p>\n')
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
            f'<span class="rule">{text_of(result.rule)}</span> {text_of(result.message)}</li>\n'
        )
    counts = text_of(wording.counts_phrase(others))
    return f'<details class="more"><summary>{counts}</summary>\n<ul class="others">\n{"".join(items)}</ul></details>\n'


def _facts(subject: Subject) -> str:
    rows = "".join(f"<dt>{text_of(n)}</dt><dd>{text_of(v)}</dd>\n" for n, v in wording.flat_facts(subject.facts))
    if not rows:
        return ""
    return f'<details class="more"><summary>Facts</summary>\n<dl class="facts">\n{rows}</dl></details>\n'
