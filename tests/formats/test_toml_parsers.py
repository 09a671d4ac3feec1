"""All TOML is parsed by ``formats/documents.py``, which refuses the keys that make tomllib take gigabytes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARSERS = {"tomllib", "tomli", "tomlkit", "toml", "pytoml"}

# Who else imports a parser, and why no stranger's document reaches it.
EXCEPTIONS = {
    "wheel_checks/data/__init__.py": "tables of this package",
    "wheel_checks/formats/documents.py": "this is the one",
    "wheel_checks/sources/uv/own_configuration.py": "tomlkit.dumps alone, which writes",
}


def parsers_in(source: str) -> Iterator[str]:
    """The TOML parsers that a module imports, whichever way."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            names = [str(text) for text in texts] if called in ("import_module", "__import__") else []
        yield from PARSERS & {part for name in names for part in (name.split(".")[0], name.split(".")[-1])}


def test_no_other_module_parses_toml() -> None:
    modules = [path for name in ("tools", "wheel_checks", "kernels_smoke") for path in (ROOT / name).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in modules if set(parsers_in(path.read_text(encoding="utf-8")))}
    assert found == set(EXCEPTIONS)


def test_tomlkit_only_writes() -> None:
    tree = ast.parse((ROOT / "wheel_checks/sources/uv/own_configuration.py").read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {name for name in used if name.startswith("tomlkit.")} == {"tomlkit.dumps"}


@pytest.mark.parametrize(
    "source",
    [
        "import tomllib",
        "def f():\n    import tomllib as t",
        "from tomllib import loads as read",
        "import pip._vendor.tomli",
        "from pip._vendor import tomli",
        "import importlib\nimportlib.import_module('tomllib')",
        "__import__('tomlkit')",
    ],
)
def test_every_way_to_a_parser_is_seen(source: str) -> None:
    assert list(parsers_in(source))


def test_other_imports_are_none() -> None:
    assert not list(parsers_in("import json\nfrom wheel_checks.formats.toml_spans import scan\nload('tomllib')"))
