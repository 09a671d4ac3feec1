"""The lines of strings in a TOML document."""

from __future__ import annotations

import tomllib

import pytest

from wheel_checks.formats.toml_lines import Lines, TextLine, text_lines

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


def test_strings_with_their_keys_and_lines() -> None:
    tomllib.loads(PROJECT)
    assert list(text_lines(PROJECT)) == [
        TextLine("project.name", "demo", 2),
        TextLine("project.dependencies", "torch>=2", 4),
        TextLine("project.dependencies", "numpy", 5),
        TextLine("project.dependencies", "scipy", 5),
        TextLine("project.optional-dependencies.gpu", "torch>=2", 8),
        TextLine("project.optional-dependencies.two words", "torch>=2", 10),
        TextLine("dependency-groups.dev", "lint", 13),
        TextLine("dependency-groups.dev", "pytest", 13),
        TextLine("tool.uv.index.name", "a[b]", 17),
    ]


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
