"""Versions in text that others wrote."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version


def version_or_none(text: str) -> Version | None:
    """The version (PEP 440), None for text that is none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def numbers(text: str) -> tuple[int, ...]:
    """The numbers between the dots, as drivers and kernels count: (580, 95, 5) of "580.95.05"."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())
