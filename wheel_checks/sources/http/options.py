"""How the pages and files of one run are fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of :class:`wheel_checks.sources.client.HttpClient`, documented there."""

    offline: bool
    refresh: bool
    allow_download: bool
    max_download: int
    timeout: float
    max_connections: int
    user_agent: str
    on_bytes: Callable[[int], object] | None
