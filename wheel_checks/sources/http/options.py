"""How the pages and files of one run are fetched."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The choices of :class:`wheel_checks.sources.client.HttpClient`, where they are explained."""

    offline: bool
    refresh: bool
    allow_download: bool
    max_download: int
    timeout: float
    max_connections: int
    user_agent: str
    on_bytes: Callable[[int], object] | None
