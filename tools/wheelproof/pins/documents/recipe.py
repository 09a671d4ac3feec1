"""Recipes of conda (meta.yaml, recipe.yaml): the packages of ``requirements``, and of all outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.conda import conda_name
from wheelproof.pins.documents.yaml_scan import Item, scan
from wheelproof.pins.model import Document, Form, FoundRequirement, Notice, Place, Role, Source

_SECTIONS = {"build", "host", "run", "run_constrained", "run_constraints"}
_CODE = re.compile(r"\{[{%]|\$\{\{")
_ITEM = re.compile(r"^[ \t]*-[ \t]+([A-Za-z0-9][\w.-]*)(.*)$", re.MULTILINE)


def read(source: Source) -> Document:
    """The packages of a recipe. One with templates is code: it is read as far as it is written, and never rewritten."""
    code = _CODE.search(source.text) is not None
    try:
        items = scan(source.text)
    except FormatError:
        place = Place(source.path, 1, 1)
        found = tuple(_by_lines(source))
        message = "the recipe is not YAML until its templates are rendered: read line by line"
        return Document("recipe", source, found, (Notice("reads-file", message, place),), rewritable=False)
    requirements = tuple(_found(source, item) for item in items if _is_requirement(item))
    return Document("recipe", source, requirements, rewritable=not code)


def _is_requirement(item: Item) -> bool:
    keys = [key for key in item.keys if key not in ("then", "else", "if")]
    return keys[-2:-1] == ["requirements"] and keys[-1] in _SECTIONS


def _found(source: Source, item: Item) -> FoundRequirement:
    text = item.text.strip()
    return FoundRequirement(
        conda_name(text),
        text,
        Role.CONDA,
        Place(source.path, *source.position(item.span[0]), ".".join(item.keys)),
        spans=(item.line,) if item.line else (),
        values=(item.inner,) if item.inner else (),
        form=Form.CONDA,
        items=item.items,
        index=item.index,
    )


def _by_lines(source: Source) -> Iterator[FoundRequirement]:
    for match in _ITEM.finditer(source.text):
        text = (match[1] + match[2]).partition(" #")[0].strip()
        yield FoundRequirement(
            conda_name(text), text, Role.CONDA, Place(source.path, *source.position(match.start(1))), form=Form.CONDA
        )
