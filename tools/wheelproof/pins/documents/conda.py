"""environment.yml: conda's own packages, and those of the list under ``pip:``."""

from __future__ import annotations

import re

from wheelproof.pins.documents.names import normalized, project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.source import Source
from wheelproof.pins.documents.yaml_scan import scan
from wheelproof.pins.model import Document, Form, FoundRequirement, Notice, Place, Role

_CONDA_NAME = re.compile(r"(?:[\w.-]+(?:/[\w-]+)?::)?([A-Za-z0-9._-]+)")  # channel::name


def read(source: Source) -> Document:
    """The requirements of a conda environment."""
    found: list[FoundRequirement] = []
    for item in scan(source.text):
        if item.keys not in (("dependencies",), ("dependencies", "pip")):
            continue
        text = item.text.strip()
        pip = len(item.keys) > 1
        match = _CONDA_NAME.match(text)
        name = project_of(text) if pip else normalized(match[1]) if match else ""
        found.append(
            FoundRequirement(
                name,
                text,
                Role.RUNTIME if pip else Role.CONDA,
                Place(source.path, *source.position(item.span[0]), ".".join(item.keys)),
                spans=(item.line,) if item.line else (),
                values=(item.inner,),
                form=Form.PEP508 if pip else Form.CONDA,
                items=item.items,
                index=item.index,
            )
        )
    notices: list[Notice] = [notice for requirement in found for notice in of_requirement(requirement)]
    return Document("conda", source, tuple(found), tuple(notices))
