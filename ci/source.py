"""The uses of a Python file for ``ci/reach.py``: names, imports, strings, templates of module names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DYNAMIC = {"import_module", "run_path", "run_module", "find_spec", "spec_from_file_location", "__import__"}


@dataclass
class Uses:
    """The uses of a piece of code: names, strings, and templates of module names."""

    names: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    templates: set[str] = field(default_factory=set)
    dynamic: bool = False  # it imports by a name that it computes


@dataclass
class Source:
    """A file: the uses of its top-level names, its imports, and the names that it dispatches on."""

    definitions: dict[str, Uses] = field(default_factory=lambda: defaultdict(Uses))
    imports: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    pairs: list[tuple[str, str]] = field(default_factory=list)  # a row's key, and its value: "verify", "wheelproof.cli"
    own: set[str] = field(default_factory=set)  # names in decorators: the ids of rules


def read(path: Path, module: str, *, by_name: bool) -> Source:
    """The file's source. ``by_name`` keeps its top-level names apart."""
    source = Source()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        uses = Uses()
        for name in _names_of(statement) if by_name else [""]:
            known = source.definitions.setdefault(name, uses)
            uses = known
        for part in ast.walk(statement):
            _note(part, uses, source, module, package)
    return source


def _names_of(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [part.id for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)] or [""]


def _note(part: ast.AST, uses: Uses, source: Source, module: str, package: str) -> None:
    match part:
        case ast.Name(id=name) | ast.arg(arg=name):
            uses.names.add(name)
        case ast.Constant(value=str(text)) if len(text) < 100 and "\n" not in text:
            uses.strings.add(text)
        case ast.Import() | ast.ImportFrom():
            _note_import(part, source, package)
        case ast.BinOp(op=ast.Div()):
            constants = [leaf.value for leaf in _leaves(part) if isinstance(leaf, ast.Constant)]
            uses.strings.add("/".join(str(value) for value in constants))
        case ast.Dict(keys=keys, values=values):
            source.pairs += [pair for key, value in zip(keys, values, strict=True) if (pair := _pair(key, value))]
        case ast.Call():
            _note_call(part, uses, source, module)
        case ast.FunctionDef(decorator_list=decorators):
            calls = [one for one in decorators if isinstance(one, ast.Call) and one.args]
            source.own |= {_text(one.args[0]) for one in calls} - {""}


def _note_import(statement: ast.Import | ast.ImportFrom, source: Source, package: str) -> None:
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            source.imports[alias.asname or alias.name.partition(".")[0]].add(alias.name)
        return
    parts = package.split(".")
    base = parts[: len(parts) - statement.level + 1] if statement.level else []
    for alias in statement.names:
        origin = [*base, *filter(None, [statement.module]), alias.name]
        source.imports[alias.asname or alias.name].add(".".join(origin))


def _note_call(call: ast.Call, uses: Uses, source: Source, module: str) -> None:
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called in DYNAMIC and call.args:
        uses.dynamic |= not isinstance(call.args[0], ast.Constant)
        uses.templates |= {_template(argument, module) for argument in call.args} - {""}
    elif len(call.args) > 1 and (pair := _pair(*call.args[:2])):
        source.pairs.append(pair)


def _leaves(division: ast.expr) -> Iterator[ast.expr]:
    if isinstance(division, ast.BinOp):
        yield from _leaves(division.left)
        yield from _leaves(division.right)
    else:
        yield division


def _text(part: ast.expr | None) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


def _pair(key: ast.expr | None, value: ast.expr) -> tuple[str, str] | None:
    first = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
    return (_text(key), _text(first)) if _text(key) and _text(first) else None


def _template(argument: ast.expr, module: str) -> str:
    """``f"{__name__}.{name}"`` as ``package.{}``; "" for anything else."""
    if not isinstance(argument, ast.JoinedStr):
        return ""
    parts = []
    for value in argument.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        else:
            own = isinstance(value, ast.FormattedValue) and getattr(value.value, "id", "") == "__name__"
            parts.append(module if own else "{}")
    return "".join(parts)
