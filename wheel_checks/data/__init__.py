"""Dated tables. Every row names its source; ``load`` reads a table once."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def lines(name: str) -> frozenset[str]:
    """The lines of the list ``name`` (without ``.txt``), but those that start with ``#``."""
    text = resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="ascii")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


@cache
def load(name: str) -> dict[str, Any]:
    """The table ``name`` (without ``.toml``) as parsed TOML. Treat it as read-only: it is shared."""
    return tomllib.loads(resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
