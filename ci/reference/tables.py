"""The pages of the dated tables in ``wheel_checks/data``: their rows, and the comments that name the sources."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ci.reference.markdown import code, page, table, text
from wheel_checks.fixes.commands import in_words
from wheel_checks.rules.host.log_texts import step_of

FOLDER = Path(__file__).resolve().parents[2] / "wheel_checks" / "data"
# Columns whose values are typed or matched literally.
VERBATIM = {"pattern", "texts", "members", "names", "name_pattern"}
_NAMED = re.compile(r"\[\[(\w+)\]\]")  # a table that a comment speaks of
ABOUT = """\
What wheelproof knows of the world stands in TOML files in `wheel_checks/data`, each row or group of rows with its
source and the date when that was read. Past the end of a table the answer is "unknown" and not a guess."""


def pages() -> dict[str, str]:
    """One page for each table, and the index."""
    contents = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.toml"))}
    result = {f"tables/{name}.md": page_of(name, content) for name, content in contents.items()}
    rows = [(f"[{_title(name)}]({name}.md)", _first_sentence(content)) for name, content in contents.items()]
    return result | {"tables/index.md": page("Tables", ABOUT, table(("table", "holds"), rows))}


def _title(name: str) -> str:
    return name.replace("_", " ")


def _first_sentence(content: str) -> str:
    comment, _ = next(_sections(content))
    return text(" ".join(comment.split()).partition(". ")[0].rstrip(".") + ".")


def page_of(name: str, content: str) -> str:
    """The page of one table; ``content`` is its TOML."""
    parts = [f"`wheel_checks/data/{name}.toml`"]
    for comment, data in _sections(content):
        parts += [text(_NAMED.sub(r"`\1`", paragraph)) for paragraph in comment.split("\n\n")]
        parts += _tables(data)
    return page(_title(name).capitalize(), *parts)


def _sections(content: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each comment on its own lines, with the TOML up to the next one.

    A line that begins with # inside a text is no comment: up to there the TOML does not parse.
    """
    comment: list[str] = []
    lines: list[str] = []
    for line in content.splitlines():
        data = _parsed(lines) if line.startswith("#") else None
        if data is None:
            lines.append(line)
            continue
        if "".join(lines).strip():
            yield "\n".join(comment), data
            comment = []
        elif comment and lines:
            comment.append("")  # an empty line between two comments parts their paragraphs
        lines = []
        comment.append(line.removeprefix("#").strip())
    yield "\n".join(comment), tomllib.loads("\n".join(lines))


def _parsed(lines: list[str]) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _tables(data: Mapping[str, Any]) -> Iterator[str]:
    plain = [(code(key), _cell(key, value)) for key, value in data.items() if not is_table(value)]
    if plain:
        yield table(("key", "value"), plain)
    for name, value in data.items():
        if isinstance(value, dict):
            yield f"## {name}\n\n" + table(("key", "value"), [(code(k), _cell(k, v)) for k, v in value.items()])
        elif is_table(value):
            columns = list(dict.fromkeys(key for row in value for key in row))
            rows = [[_cell(column, row[column]) if column in row else "" for column in columns] for row in value]
            yield f"## {name}\n\n" + table(columns, rows)


def is_table(value: object) -> bool:
    """Whether a value of TOML has rows: a table, or an array of tables."""
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _cell(column: str, value: Any) -> str:
    if column == "commands":  # as a report shows them
        return "<br>".join(code(in_words(step_of(step))) for step in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value:
        separator = "<br>" if column in VERBATIM and isinstance(value[0], str) else ", "
        return separator.join(_cell(column, item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{text(key)} = {_cell(key, item)}" for key, item in value.items())
    return code(value) if column in VERBATIM and isinstance(value, str) and value else text(str(value))
