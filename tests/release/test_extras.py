"""A wheel with more extras than are resolved says so."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.release.release_cases import X86
from tests.support.releases import release
from wheel_checks.facts.release.facts import Cell, ReleaseFacts
from wheel_checks.formats.wheel.core_metadata import parse_core_metadata
from wheelproof.release.installable import MOST_EXTRAS, beyond


def with_extras(count: int) -> ReleaseFacts:
    """A release whose wheels have so many extras."""
    extras = "".join(f"Provides-Extra: e{number}\n" for number in range(count))
    metadata = parse_core_metadata(f"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n{extras}".encode())
    facts = release(X86)
    filled = {cell: tuple(replace(file, metadata=metadata) for file in files) for cell, files in facts.filled.items()}
    return replace(facts, filled=filled)


def test_extras_that_are_not_looked_at_are_named() -> None:
    facts = with_extras(MOST_EXTRAS + 3)
    cells: list[Cell] = [cell for cell, files in facts.filled.items() if files]
    found = list(beyond(facts, cells))
    assert [one.cell for one in found] == cells
    assert {(one.extra, one.unproven) for one in found} == {(f"e{MOST_EXTRAS}", "it and 2 others are not looked at")}
    assert not list(beyond(with_extras(MOST_EXTRAS), cells))
