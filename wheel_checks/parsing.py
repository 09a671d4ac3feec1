"""Versions, specifiers and requirements in text that others wrote."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version


def version_or_none(text: str) -> Version | None:
    """The version (PEP 440), None for any other text."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def specifiers_or_none(text: str) -> SpecifierSet | None:
    """The specifiers (PEP 440), None for any other text."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def requirement_or_none(text: str) -> Requirement | None:
    """The requirement (PEP 508), None for any other text."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def requirements_in(texts: Iterable[str]) -> list[Requirement]:
    """The requirements among ``texts``, in order."""
    return [requirement for requirement in map(requirement_or_none, texts) if requirement is not None]


def numbers(text: str) -> tuple[int, ...]:
    """The numbers between the dots, as drivers and kernels count: (580, 95, 5) of "580.95.05"."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())
