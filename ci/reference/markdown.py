"""Text as Markdown that means itself."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

NOTICE = "<!-- Made by ci/update_reference.py: change what it is made from. -->\n\n"


def page(title: str, *parts: str) -> str:
    """A page of blocks, with the notice that it is generated."""
    return NOTICE + "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts if part)]) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already."""
    lines = [" | ".join(columns), " | ".join(["---"] * len(columns)), *(" | ".join(row) for row in rows)]
    return "".join(f"| {line} |\n" for line in lines)


def text(value: str) -> str:
    """Plain text: nothing in it is markup, and `code` in backticks stays code."""
    parts = re.split(r"`+([^`]+)`+", " ".join(value.split()))
    return "".join(code(part) if index % 2 else _escaped(part) for index, part in enumerate(parts))


def code(value: str) -> str:
    """Something to be typed or matched, in a cell as well, where a bar would end it."""
    if re.search(r"[`|\\]", value):
        return f"<code>{_escaped(value)}</code>"
    return f"`{value}`"


def _escaped(value: str) -> str:
    safe = html.escape(value, quote=False)
    # An underscore within a word means nothing to Markdown.
    return re.sub(r"[\\`*\[\]|{}~]|(?<!\w)_|_(?!\w)", lambda match: f"&#{ord(match[0])};", safe)
