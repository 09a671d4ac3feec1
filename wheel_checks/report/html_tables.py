"""Tables and heat maps as HTML. What a colour says, the text of its cell says as well."""

import html
from collections.abc import Mapping

from wheel_checks.model import HeatMap, Table
from wheel_checks.phrases import shortened
from wheel_checks.report.wording import neutral


def text_of(text: str) -> str:
    """Text of anybody's as HTML shows it, in one line and of bounded length."""
    return html.escape(shortened(neutral(text)))


def table_of(table: Table, number: str, links: Mapping[str, str]) -> str:
    """The table under its heading; ``number`` distinguishes it on its page.

    ``links`` are the addresses of subjects on the page, by their ids.
    """
    if isinstance(table, HeatMap):
        return _heat_map(table, number, links)
    numbers = [" number" * (column in table.numbers) for column in table.columns]
    head = "".join(
        f'<th{_class(css)} scope="col">{text_of(column)}</th>'
        for column, css in zip(table.columns, numbers, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(_cell(table, row, column, text, numbers[column]) for column, text in enumerate(cells))
        + "</tr>"
        for row, cells in enumerate(table.rows)
    )
    return _framed(text_of(table.title), number, "plain", head, rows)


def _cell(table: Table, row: int, column: int, text: str, css: str) -> str:
    state = table.states.get((row, column))
    return f"<td{_class(f'{state} marked{css}' if state else css)}>{text_of(text)}</td>"


def _class(names: str) -> str:
    return f' class="{names.strip()}"' if names else ""


def _heat_map(table: HeatMap, number: str, links: Mapping[str, str]) -> str:
    first, *columns = map(text_of, table.columns)
    head = f'<th scope="col">{first}</th>'
    head += "".join(f'<th class="rule" scope="col"><abbr>{name}</abbr></th>' for name in columns)
    rows = "\n".join(
        f'<tr><th scope="row">{text_of(name)}</th>'
        + "".join(_sign(table, (row, column), text, links) for column, text in enumerate(cells, 1))
        + "</tr>"
        for row, (name, *cells) in enumerate(table.rows)
    )
    states = {sign: state for place, state in table.states.items() if (sign := table.rows[place[0]][place[1]])}
    legend = "".join(
        f'<li><b class="{states[sign]}">{text_of(sign)}</b> {text_of(meaning)}</li>'
        for sign, meaning in table.signs.items()
        if sign in states
    )
    framed = _framed(text_of(table.heading), number, "heat map", head, rows)
    return f'{framed}\n<ul class="legend" aria-label="Legend">{legend}</ul>'


def _sign(table: HeatMap, place: tuple[int, int], sign: str, links: Mapping[str, str]) -> str:
    """A cell: its sign, in the colour of its state, which leads to its subject."""
    if not sign:
        return '<td class="cell"></td>'
    subject = table.subjects.get(place, "")
    css, title = table.states.get(place, ""), text_of(f"{subject}: {table.signs.get(sign, sign)}")
    if link := links.get(subject):
        return f'<td class="cell"><a class="{css}" href="{link}" title="{title}">{text_of(sign)}</a></td>'
    return f'<td class="cell"><span class="{css}" title="{title}">{text_of(sign)}</span></td>'


def _framed(title: str, number: str, css: str, head: str, rows: str) -> str:
    return (
        f'<h2 id="{number}">{title}</h2>\n<div class="scroll" tabindex="0" role="region" aria-labelledby="{number}">\n'
        f'<table class="{css}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>'
    )
