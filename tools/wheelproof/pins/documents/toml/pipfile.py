"""Pipfile: the packages of pipenv, by category."""

from __future__ import annotations

from wheelproof.pins.documents.toml.requirements import Where, parse_toml, read_toml
from wheelproof.pins.model import Document, Form, Role, Source

_OTHER = {"source", "requires", "scripts", "pipenv", "pipfile"}


def read(source: Source) -> Document:
    """The requirements of a Pipfile. Raises FormatError when it is not valid TOML."""
    tables = [key for key, value in parse_toml(source, source.text).items() if isinstance(value, dict)]
    places = [
        Where(name, Role.RUNTIME if name == "packages" else Role.GROUP, Form.VERSION)
        for name in tables
        if name not in _OTHER
    ]
    return read_toml(source, places, "pipfile")
