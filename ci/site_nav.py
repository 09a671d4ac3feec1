"""A hook of mkdocs: an entry of ``nav`` that is a folder means its pages, so that a new one needs no entry.

The pages of rules are not in ``nav``, where 425 of them would hide all others: they have no empty column for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """The configuration with every folder in ``nav`` replaced by its pages, ``index.md`` first."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as it is, with its navigation hidden when it has none."""
    if page.file.src_uri.startswith("rules/") and page.file.name != "index":
        page.meta.setdefault("hide", ["navigation", "toc"])
    return markdown


def _expanded(entry: Any, docs: Path) -> Any:
    if isinstance(entry, list):
        return [_expanded(item, docs) for item in entry]
    if isinstance(entry, dict):
        return {title: _expanded(item, docs) for title, item in entry.items()}
    if not entry.endswith("/"):
        return entry
    pages = sorted((docs / entry).glob("*.md"), key=lambda page: (page.name != "index.md", page.name))
    return [
        f"{entry}{page.name}" if page.name == "index.md" else {_title(page): f"{entry}{page.name}"} for page in pages
    ]


def _title(page: Path) -> str:
    return page.stem.replace("_", " ")
