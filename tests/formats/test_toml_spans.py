"""The scanner of TOML gives the same values as tomllib, and where each is."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from tests.support.growth import assert_at_most_doubles
from wheel_checks.formats.toml_spans import Header, Kind, Lines, Statement, Value, scan

DOCUMENT = """\
title = 'a # b'  # comment
"quo ted".x = "es\\"c\\u00e9"
dates = [1979-05-27 07:32:00, 1979-05-27T07:32:00Z]
many = \"\"\"
[not.a.table]
x = "y\\
  z\"\"\"\"\"
[a.b]
c = [ [1, 2.0,], ["x", 'y'], {d.e = true, "f" = inf} ] # c
[[a.list]]
x = 1
[[a.list.below]]
y = {}
[[a.list]]
x = 2
[a.list.table]
z = []
"""


def values(text: str) -> dict[str, Any]:
    """The document, rebuilt from the scanner's spans."""
    root: dict[str, Any] = {}
    for entry in scan(text):
        if isinstance(entry, Header):
            container_at(root, entry.path)
        else:
            put(root, entry, text)
    return root


def put(root: dict[str, Any], entry: Statement, text: str) -> None:
    container_at(root, entry.path[:-1])[entry.path[-1]] = value_of(entry.value, text)


def container_at(root: Any, path: tuple[str | int, ...]) -> Any:
    for part, following in zip(path, (*path[1:], ""), strict=False):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int):
            if part == len(root):
                root.append(empty)
            root = root[part]
        else:
            root = root.setdefault(part, empty)
    return root


def value_of(value: Value, text: str) -> Any:
    if value.kind is Kind.STRING:
        return value.text
    if value.kind is Kind.ARRAY:
        return [value_of(member, text) for _, member in value.members]
    if value.kind is Kind.TABLE:
        table: dict[str, Any] = {}
        for path, member in value.members:
            container_at(table, path[:-1])[path[-1]] = value_of(member, text)
        return table
    return tomllib.loads(f"x = {text[value.start : value.end]}")["x"]


def test_it_finds_what_tomllib_finds() -> None:
    assert values(DOCUMENT) == tomllib.loads(DOCUMENT)


def test_every_value_stands_where_it_says() -> None:
    (statement,) = scan('x = [ "a" , "b" ] # c\n')
    assert isinstance(statement, Statement)
    array = statement.value

    assert [statement.start, statement.end] == [0, 22]
    assert array.spans == [(6, 9), (12, 15)]
    assert array.separators == [10, None]
    assert (array.start, array.end) == (4, 17)


scalars = st.one_of(
    st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.dates(), st.datetimes()
)
trees = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))


@given(st.dictionaries(st.text(), trees, max_size=5))
def test_any_document_that_tomlkit_writes(tree: dict[str, Any]) -> None:
    text = tomlkit.dumps(tree)
    try:
        expected = tomllib.loads(text)
    except ValueError:  # tomlkit writes some control characters as they are
        return
    assert values(text) == expected


@given(st.text(alphabet="ab.[]{}=,\"'# \n\\\t1", max_size=60))
def test_any_text_that_tomllib_reads(text: str) -> None:
    try:
        expected = tomllib.loads(text)
    except ValueError:
        return
    assert values(text) == expected


PROJECT = """\
[project]  # "not": this
name = "demo"
dependencies = [
  "torch>=2",  # "numpy"
  'numpy', "scipy",
]
[project.optional-dependencies]
gpu = ["torch>=2"]
"two words" = [
  "torch>=2",
]
[dependency-groups]
dev = [{include-group = "lint"}, \"\"\"
py\\
  test\"\"\"]
[[tool.uv.index]]
name = "a[b]"
"""


def test_the_lines_of_strings() -> None:
    lines = Lines(PROJECT)
    assert lines.of("project.name", "demo") == 2
    assert lines.of("project.dependencies", "scipy") == 5
    assert lines.of("project.optional-dependencies.two words", "torch>=2") == 10
    assert lines.of("dependency-groups.dev.include-group", "lint") == 13
    assert lines.of("dependency-groups.dev", "pytest") == 13
    assert lines.of("tool.uv.index.name", "a[b]") == 17


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("project.dependencies", "torch>=2", 4),
        ("project.optional-dependencies.gpu", "torch>=2", 8),
        ("project.optional-dependencies.cpu", "torch>=2", 0),
        ("project.dependencies", "jax", 0),
    ],
)
def test_the_line_of_a_requirement(path: str, text: str, line: int) -> None:
    assert Lines(PROJECT).of(path, text) == line


def test_within_inline_tables_and_repeated() -> None:
    lines = Lines('[project]\noptional-dependencies = { gpu = ["torch"], cpu = [\n"torch"] }\n')
    found = [lines.of(f"project.optional-dependencies.{extra}", "torch") for extra in ("gpu", "cpu", "rocm")]
    assert found == [2, 3, 0]


def test_the_cost_of_a_string_is_linear() -> None:
    for part in ("\\n", '\\"', '""\\n', "'"):
        assert_at_most_doubles(lambda size, part=part: f'x = """{part * size}"""\n', scan, 20_000)  # type: ignore[misc]  # a default argument
    assert_at_most_doubles(lambda size: "# \n" * size, scan, 20_000)
