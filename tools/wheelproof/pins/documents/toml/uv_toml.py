"""uv.toml: the keys of [tool.uv] at its top level. uv reads it before, and instead of, [tool.uv] of the same folder."""

from __future__ import annotations

from dataclasses import replace

from wheelproof.pins.documents.toml.pyproject import UV, uv_notices
from wheelproof.pins.documents.toml.requirements import parse_toml, read_toml
from wheelproof.pins.model import Document, Source

PLACES = tuple(replace(where, path=where.path.removeprefix("tool.uv.")) for where in UV)


def read(source: Source) -> Document:
    """The requirements of a uv.toml. Raises FormatError when it is not valid TOML."""
    document = read_toml(source, PLACES, "uv.toml")
    notices = uv_notices(source, parse_toml(source, source.text))
    return replace(document, notices=(*document.notices, *notices))
