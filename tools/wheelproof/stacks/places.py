"""The line of a file of the user that a package of a stack comes from, and findings that are present."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.utils import canonicalize_name

from wheel_checks.facts.stack.facts import Demand
from wheel_checks.model import CheckResult, Location, Outcome
from wheelproof.wheels.asked import Asked


def place_of(name: str, chain: Sequence[Demand], asked: Asked) -> Location | None:
    """The line that asks for the package ``name``, else the one that leads to it; None when no file asks for it.

    ``chain`` leads from what was requested to the package. What a line includes (a project) is at that line.
    """
    lines = [line for line in asked.declared.lines if line.file and not line.constraint]
    first = chain[0].requirement if chain else None
    own = [line for line in lines if line.name == name]
    exact = [line for line in lines if first is not None and line.requirement == first]
    by_name = [line for line in lines if first is not None and line.name == canonicalize_name(first.name)]
    ranked = [line for line in own if line in exact] or own or exact or by_name
    if ranked:
        return Location(file=ranked[0].file, line=ranked[0].number or None)
    if chain or not asked.files:
        return None  # what the command line asks for
    return Location(file=os.path.normpath(asked.files[0]))


def at_place(results: Iterable[CheckResult], place: Location | None) -> tuple[CheckResult, ...]:
    """The results; those that are no pass are at ``place``, where a rule states no other file."""
    if place is None:
        return tuple(results)
    return tuple(
        replace(r, location=(r.location or Location()).within(place))
        if r.outcome in (Outcome.FAIL, Outcome.ERROR) and not (r.location and r.location.file)
        else r
        for r in results
    )
