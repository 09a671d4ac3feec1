"""Wheels with one thing changed, of every kind and always the same ones: ``mutants(2000)``.

A kind is a family of changes ("local header: flags", "RECORD"); the first few hundred wheels hold some of every kind.
What installers make of them is unknown here: ``ci/mutants.py`` asks pip, uv and wheelproof.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, islice, zip_longest

from tests.support.mutants import bytes_level, headers, metadata_lines, names, wheel_files
from tests.support.mutants.base import Mutant

__all__ = ["Mutant", "mutants"]


def mutants(count: int) -> list[Mutant]:
    """The first ``count`` wheels; kinds take turns, so that few wheels are of many kinds."""
    kinds: dict[str, list[Mutant]] = {}
    for mutant in chain(*(module.mutants() for module in (headers, names, wheel_files, metadata_lines, bytes_level))):
        kinds.setdefault(mutant.kind, []).append(mutant)
    for kind, members in kinds.items():
        random.Random(kind).shuffle(members)
    return list(islice(_in_turn(list(kinds.values())), count))


def _in_turn(kinds: list[list[Mutant]]) -> Iterator[Mutant]:
    for row in zip_longest(*kinds):
        yield from (mutant for mutant in row if mutant is not None)
