"""The imports of authors of external kernels are a promise: a change needs this test and the changelog."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path
from typing import Any

from kernels_smoke.suite import model

SUITE = Path(inspect.getfile(model)).parent

# Arguments in their order, with their defaults.
PROMISED = {
    "Function": "call, inputs, reference, cases, name='', tolerance=None, modifies=(), scratch=(), gradients=(), "
    "precise=True, timed={}, bar=0.0, flops=None, peer=None, triton=True, mutants=(), repeatable=False",
    "Case": "name, shape, level='full', where=('cuda',), checked=True, far=False",
    "Mutant": "name, old, new, module='', where=('cuda', 'interpret'), why=''",
    "case": "name, level='full', where=('cuda',), **shape",
    "here": "name, level='full', **shape",
    "big": "name, **shape",
}
DRAW = {
    "normal": "*shape, dtype, scale=1.0, row_stride=0, offset=0, name=''",
    "uniform": "*shape, low, high, dtype, row_stride=0, name=''",
    "integers": "*shape, low, high, dtype, name=''",
    "permutation": "size, *, dtype, name=''",
    "rows": "rows, width, *, dtype, scale=1.0, largest=0.0, row_stride=0, name",
    "place": "values, *, row_stride=0, offset=0, name=''",
    "empty": "*shape, dtype, row_stride=0, offset=0, name=''",
}
CHECKS = {
    "Near": "bfloat16=0.0025, float16=0.0005, float32=1e-06, floor=0.0, faint=0.0",
    "Rounded": "differing=0.01",
    "Relative": "tolerance=1e-06",
    "Absolute": "tolerance=1e-06",
    "Exact": "",
}


def test_a_description_takes_what_it_took() -> None:
    assert {name: arguments(getattr(model, name)) for name in PROMISED} == PROMISED


def arguments(described: Any) -> str:
    if dataclasses.is_dataclass(described):
        return ", ".join(f"{field.name}{default(field)}" for field in dataclasses.fields(described))
    return ", ".join(str(p.replace(annotation=p.empty)) for p in inspect.signature(described).parameters.values())


def default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"={field.default_factory()!r}"
    return "" if field.default is dataclasses.MISSING else f"={field.default!r}"


def test_tensors_are_drawn_as_they_were() -> None:
    """Read from the source, since drawing needs torch."""
    found = classes("correctness/draw.py")["Draw"].body
    drawing = {each.name: each.args for each in found if isinstance(each, ast.FunctionDef) and each.name in DRAW}
    for taken in drawing.values():
        taken.args = taken.args[1:]
        for argument in (*taken.args, *taken.kwonlyargs, *([taken.vararg] if taken.vararg else [])):
            argument.annotation = None
    assert {name: ast.unparse(taken) for name, taken in drawing.items()} == DRAW


def test_checks_have_the_tolerances_that_they_had() -> None:
    found = classes("correctness/compare.py")
    assert {name: ", ".join(fields(found[name])) for name in CHECKS} == CHECKS


def classes(path: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse((SUITE / path).read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def fields(node: ast.ClassDef) -> list[str]:
    fields = (each for each in node.body if isinstance(each, ast.AnnAssign))
    return [f"{ast.unparse(each.target)}={ast.literal_eval(each.value) if each.value else ''}" for each in fields]
