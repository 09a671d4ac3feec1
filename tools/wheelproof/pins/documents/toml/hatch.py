"""hatch.toml: the environments of hatch (tool.hatch in a pyproject.toml)."""

from __future__ import annotations

from wheelproof.pins.documents.toml.requirements import Where, read_toml
from wheelproof.pins.documents.toml.scripts import with_scripts
from wheelproof.pins.model import Document, Role, Source

PLACES = (
    Where("envs.*.dependencies", Role.GROUP),
    Where("envs.*.extra-dependencies", Role.GROUP),
)


def read(source: Source) -> Document:
    """The requirements of a hatch.toml. Raises FormatError when it is not valid TOML."""
    return with_scripts(source, read_toml(source, PLACES, "hatch"))
