"""The collector as one file: the source code of the reader and of what it imports, for Python 3.6, after one start.

What is carried follows from the imports. Omitted are the tables that no carried module names, and modules that need
another package than packaging: those reach for an index, which the collector does not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import util
from pathlib import Path

from wheel_checks.errors import SourceError
from wheelproof.doctor.collector.older_syntax import in_older_syntax, is_for_type_checkers

_STARTS = ("wheelproof.doctor.reading", "wheelproof.doctor.facts_file")
_STARTED_BY_NAME = ("wheelproof.doctor.probes", "wheelproof.doctor.inside", "wheel_checks.rules.installed")
_OURS = ("wheelproof", "wheel_checks")
_CARRIED = (*_OURS, "packaging", "tomllib")
_INSIDE = "wheelproof.doctor.inside."
# What the interpreter in question runs fails under Python 3.6, as the doctor's own: that is too old for torch.
_OF_THE_TARGET = {f"{_INSIDE}{name}" for name in ("interpreter", "torch_import")}
_FUTURE = "from __future__ import annotations\n"
_TABLES = "wheel_checks.data"

_REPLACED = {
    # A table of 1.4 MB that only names the torch releases with a symbol; a message does without.
    "wheel_checks.facts.links.torch_exports": "def releases_that_export(names, machine):\n    return ()\n",
    # The default index is not a setting, and is not written to the facts.
    "wheel_checks.sources.uv_binary": "def default_index():\n    return 'https://default.invalid/simple'\n",
}
_HERE = Path(__file__).parent / "carried"


def collector_program() -> str:
    """The text of the file. Raises SourceError where the source code of a module is not available."""
    modules = _closure()
    files = {_file_name(name, path): _older(name, path) for name, path in sorted(modules.items())}
    for name in ("older", "older_dataclasses"):
        files[f"_{name}.py"] = (_HERE / f"{name}.py").read_text(encoding="utf-8")
    files["_older_names.py"] = f"STANDARD_MODULES = {sorted(sys.stdlib_module_names)!r}\n"
    files |= dict(_tables(modules))
    start = (_HERE / "start.py").read_text(encoding="utf-8")
    texts = "".join(f"    {name!r}: {_quoted(text)},\n" for name, text in sorted(files.items()))
    return f"#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n{_NOTICE}{start}\n\nFILES = {{\n{texts}}}\n\n{_END}"


_NOTICE = """# Source code of wheelproof (Apache-2.0), packaging (Apache-2.0 or BSD-2-Clause) and CPython's
# tomllib (PSF-2.0), rewritten for Python 3.6 without its comments.
"""
_END = """if __name__ == "__main__":
    sys.exit(collect(FILES))
"""


def _closure() -> dict[str, Path]:
    """The file of every module that is carried, by its name."""
    waiting = [*_STARTS, *(name for package in _STARTED_BY_NAME for name in _modules_below(package))]
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in _CARRIED or (path := _source_of(name)) is None:
            continue
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse("" if name in _REPLACED else path.read_bytes())
        if not name.startswith(_INSIDE) and any(map(_is_foreign, _imports(tree, package, inside=False))):
            continue
        imported = list(_imports(tree, package))
        found[name] = path
        waiting += [*imported, *([name.rpartition(".")[0]] if "." in name else [])]
    return found


def _is_foreign(name: str) -> bool:
    return name.partition(".")[0] not in {*_CARRIED, *sys.stdlib_module_names}


def _modules_below(package: str) -> Iterator[str]:
    folder = _source_of(package)
    if folder is None:
        raise SourceError(f"the source code of {package} is not available", hint="install wheelproof again")
    top = folder.parent
    for path in sorted(top.rglob("*.py")):
        parts = path.relative_to(top).with_suffix("").parts
        yield ".".join((package, *(part for part in parts if part != "__init__")))


def _source_of(name: str) -> Path | None:
    """The source file of a module; None for what is not a module, such as a class that is imported from one."""
    top, *rest = name.split(".")
    spec = util.find_spec(top)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent.joinpath(*rest)
    files = (folder / "__init__.py", folder.with_suffix(".py"))
    return next((file for file in files if file.is_file()), None)


def _imports(tree: ast.AST, package: str, *, inside: bool = True) -> Iterator[str]:
    """What a module imports when it runs, ``inside`` of functions too; of ``from a import b`` both a and a.b."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join((*parents, *([node.module] if node.module else [])))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif is_for_type_checkers(node):
            yield from (name for one in node.orelse for name in _imports(ast.Module([one], []), package, inside=inside))
        elif inside or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _imports(node, package, inside=inside)


def _file_name(name: str, path: Path) -> str:
    folder = name.replace(".", "/")
    return f"{folder}/__init__.py" if path.name == "__init__.py" else f"{folder}.py"


def _older(name: str, path: Path) -> str:
    source = _REPLACED.get(name) or path.read_text(encoding="utf-8")
    text = in_older_syntax(source, name, alone=name.startswith(_INSIDE))
    return _FUTURE + text if name in _OF_THE_TARGET else text


def _tables(modules: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """The tables of ``wheel_checks.data`` that the carried modules name."""
    for path in sorted(modules[_TABLES].parent.iterdir()):
        used = any(f'("{path.stem}"' in file.read_text(encoding="utf-8") for file in modules.values())
        if path.suffix in {".toml", ".txt"} and used:
            yield f"{_TABLES.replace('.', '/')}/{path.name}", path.read_text(encoding="utf-8")


def _quoted(text: str) -> str:
    """The text as a literal that people can read."""
    for quotes in ("'''", '"""'):
        if quotes not in text and not text.endswith((quotes[0], "\\")):
            return f"r{quotes}{text}{quotes}"
    return repr(text)
