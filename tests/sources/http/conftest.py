"""Databases that a test opens are closed after it, as the command line closes its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wheel_checks.sources.http.cache_database import CacheDatabase


@pytest.fixture(autouse=True)
def _no_database_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Since Python 3.13 an open database that is forgotten gives a warning, in whatever test runs by then."""
    opened: list[CacheDatabase] = []
    initialize = CacheDatabase.__init__

    def note(self: CacheDatabase, *arguments: Any, **options: Any) -> None:
        initialize(self, *arguments, **options)
        opened.append(self)

    monkeypatch.setattr(CacheDatabase, "__init__", note)
    yield
    for database in opened:
        database.close()
