"""Compares wheel_checks/data/startup_code.toml with the wheels on the configured index that its rows name.

usage: python ci/check_startup_code.py [NAME...]     (default: all; NAME is a table, such as code or program)

A line of [[code]] is in that member of the wheel; the template of a [[namespace]] is the one in setuptools; the text in
`holds` of a row is in the member that its source names; a [[guest]] has that member; each of the `projects` of a
[[program]] installs one of these; a [[namesake]] has that wheel. Wheels are read by ranges. Exits 1 for a wrong row, 3
for one whose wheel cannot be read.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.archive.members import read_members
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.security.known import program_owners
from wheel_checks.facts.security.places import place_of
from wheel_checks.formats.wheel.entry_points import parse_entry_points
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "startup_code.toml"
LARGEST = 1 << 20  # bytes of a member
SOURCE = re.compile(r"(\S+\.whl)(?:, (\S+))? \(")
SITE = "sys._getframe(1).f_locals['sitedir']"


class Wheel:
    """A wheel of the index, by its file name. Raises WheelproofError."""

    def __init__(self, file_name: str, index: SimpleIndex, client: HttpClient) -> None:
        listed = index.files(file_name.partition("-")[0]).files
        file = next((file for file in listed if file.file_name == file_name), None)
        if file is None:
            raise WheelproofError(f"the index has no {file_name}")
        self._source = client.open(file.url)
        self._archive = read_archive(self._source)
        self.members = [member.name for member in self._archive.members]

    def text(self, member: str) -> str:
        """The content of a member, "" if none exists."""
        content = read_members(self._source, self._archive, {member: LARGEST}).contents.get(member, b"")
        return content.decode() if isinstance(content, bytes) else ""

    def scripts(self) -> Iterator[str]:
        """The names of the programs that it installs."""
        for member in self.members:
            place = place_of(member)
            if place.area == "scripts":
                yield place.path
            if re.fullmatch(r"[^/]+\.dist-info/entry_points\.txt", member):
                points = parse_entry_points(self.text(member).encode()).entries
                yield from (point.name for point in points if point.group in ("console_scripts", "gui_scripts"))


def main() -> int:
    """Read the wheels, and print wrong rows."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    wanted = sys.argv[1:] or [name for name, rows in table.items() if isinstance(rows, list)]
    wrong = unread = rows = 0
    with HttpClient(None) as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        for name in wanted:
            for label, file_name, row in _named(name, table[name]):
                rows += 1
                try:
                    problem = problem_of(name, row, Wheel(file_name, index, client))
                except WheelproofError as error:
                    unread, problem = unread + 1, str(error)
                else:
                    wrong += bool(problem)
                print(f"{name:10} {label}: {problem or 'as in ' + file_name}")
    print(f"{rows} rows, {wrong} wrong, {unread} not read")
    return 1 if wrong else 3 if unread else 0


def _named(name: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The wheels for the rows of a table: a label, the name of the wheel, and the row."""
    for row in rows:
        if name == "program":
            yield from ((project, wheel, row) for project, wheel in row["projects"].items())
            continue
        match = SOURCE.match(row["source"])
        if match is None:
            raise SystemExit(f"{row} names no wheel")
        yield row.get("project") or row.get("group") or row.get("member") or match[1], match[1], row | {"in": match[2]}


def problem_of(name: str, row: dict[str, Any], wheel: Wheel) -> str:
    """Why a row does not fit the wheel; "" when it does."""
    if name == "code":
        members = [member for member in wheel.members if re.fullmatch(row["member"], member.rpartition("/")[2])]
        lines = [line.rstrip() for member in members for line in wheel.text(member).splitlines()]
        return "" if row["text"] in lines else f"no such line in {members}"
    if name == "namespace":
        return "" if row["text"] == _template(wheel.text(row["in"])) else "not the template of setuptools"
    if name == "program":
        kind = {script for script in wheel.scripts() if (known := program_owners(script)) and known[1] == row["kind"]}
        return "" if any(re.fullmatch(row["pattern"], script.removesuffix(".exe")) for script in kind) else "no script"
    if "holds" in row:
        return "" if row["holds"] in wheel.text(row["in"]) else f"not in {row['in']}"
    return "" if row["in"] in (None, *wheel.members) else f"no member {row['in']}"


def _template(source: str) -> str:
    """The lines of ``_nspkg_tmpl`` in a module of setuptools, with the names of our table."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and "_nspkg_tmpl" in [getattr(target, "id", "") for target in node.targets]:
            text = ";".join(ast.literal_eval(node.value))
            return text % {"root": SITE, "pth": _Written("{parts}"), "pkg": _Written("{name}")}
    return ""


class _Written(str):
    """A string whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


if __name__ == "__main__":
    sys.exit(main())
