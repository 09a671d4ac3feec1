"""Versions and requirements in text that others wrote."""

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version


def version_or_none(text: str) -> Version | None:
    """The version (PEP 440), None for any other text."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def requirement_or_none(text: str) -> Requirement | None:
    """The requirement (PEP 508), None for any other text."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def numbers(text: str) -> tuple[int, ...]:
    """The numbers between the dots, as drivers and kernels count: (580, 95, 5) of "580.95.05"."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())
