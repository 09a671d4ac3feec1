"""The page about describing kernels, from the source of the modules that an author imports: torch is not needed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ci.reference.markdown import page

SUITE = Path(__file__).resolve().parents[2] / "kernels_smoke" / "suite"
# Module: names that an author uses.
USED = {
    "model": ("Function", "case", "here", "big", "Case", "Mutant"),
    "correctness.draw": ("Draw",),
    "correctness.compare": ("Near", "Rounded", "Relative", "Absolute", "Exact"),
    "own.tolerances": ("TOLERANCES",),
}
DRAWN = ("normal", "uniform", "integers", "permutation", "rows", "place", "empty")  # methods of Draw for authors
INTRODUCTION = """\
A file for `wheelproof smoke --kernels` imports these from `kernels_smoke.suite`, which is there while the file is read,
whichever interpreter reads it, and lists its functions in `KERNELS`.
[Smoke-test your own kernels](../how-to/your-kernels.md) begins with a template. What this page shows is stable: a
release that changes it says so in its changelog."""


def pages() -> dict[str, str]:
    """The page."""
    return {"kernels.md": page("Describing kernels", INTRODUCTION, *_sections())}


def _sections() -> Iterator[str]:
    for module, names in USED.items():
        yield f"## kernels_smoke.suite.{module}"
        tree = ast.parse((SUITE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        found = {name: node for node in tree.body for name in _names(node)}
        for name in names:
            yield from _described(name, found[name])


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    return [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []


def _described(name: str, node: ast.stmt) -> Iterator[str]:
    yield f"### {name}"
    if isinstance(node, ast.FunctionDef):
        yield f"```text\n{_signature(node)}\n```"
        yield _docstring(node)
    elif isinstance(node, ast.ClassDef):
        if fields := [ast.unparse(each) for each in node.body if isinstance(each, ast.AnnAssign)]:
            yield "```text\n" + "\n".join(fields) + "\n```"
        yield _docstring(node)
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in DRAWN]
        for method in methods:
            yield f"```text\n{_signature(method)}\n```"
            yield _docstring(method)
    else:
        yield f"```text\n{ast.unparse(node)}\n```"


def _signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def _docstring(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The docstring as Markdown: our own names are code, roles of Sphinx are plain."""
    docstring = ast.get_docstring(node) or ""
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", docstring).replace("``", "`")
