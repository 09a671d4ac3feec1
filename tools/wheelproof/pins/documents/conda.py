"""environment.yml: packages of conda, and of the list under ``pip:``."""

from __future__ import annotations

import re

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.names import normalized, project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.yaml_scan import scan
from wheelproof.pins.model import Document, Form, FoundRequirement, Notice, Place, Role, Source, Span

_CONDA_NAME = re.compile(r"(?:[\w.-]+(?:/[\w-]+)?::)?([A-Za-z0-9._-]+)")  # channel::name


def read(source: Source) -> Document:
    """The requirements of a conda environment. Raises FormatError when it is not YAML that can be read."""
    found: list[FoundRequirement] = []
    seen: set[Span] = set()  # an alias may repeat a requirement
    try:
        items = scan(source.text)
    except FormatError as error:
        raise FormatError(f"{source.path}: {error.what}", expected=error.expected) from None
    for item in items:
        if item.keys not in (("dependencies",), ("dependencies", "pip")) or item.span in seen:
            continue
        seen.add(item.span)
        text = item.text.strip()
        pip = len(item.keys) > 1
        name = project_of(text) if pip else conda_name(text)
        found.append(
            FoundRequirement(
                name,
                text,
                Role.RUNTIME if pip else Role.CONDA,
                Place(source.path, *source.position(item.span[0]), ".".join(item.keys)),
                spans=(item.line,) if item.line else (),
                values=(item.inner,) if item.inner else (),
                form=Form.PEP508 if pip else Form.CONDA,
                items=item.items,
                index=item.index,
            )
        )
    notices: list[Notice] = [notice for requirement in found for notice in of_requirement(requirement)]
    return Document("conda", source, tuple(found), tuple(notices))


def conda_name(text: str) -> str:
    """The name of the package that conda's ``channel::name version build`` is for."""
    match = _CONDA_NAME.match(text)
    return normalized(match[1]) if match else ""
