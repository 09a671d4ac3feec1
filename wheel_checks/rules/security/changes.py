"""Does a release newly run code when Python starts?"""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.difference.wheels import Difference, name_sides
from wheel_checks.facts.expectations import Expectations
from wheel_checks.model import Evidence, Finding, Fix, Severity, need
from wheel_checks.parsing import version_or_none
from wheel_checks.phrases import plural, shortened
from wheel_checks.registry import rule

_SHOWN = 5
_LONGEST = 160  # characters of a line


@rule(
    "SEC012",
    "the release runs nothing new when Python starts",
    Severity.WARNING,
    kind="pair",
    why="Code that a release adds to the start of every process was reviewed with no earlier one. Taken-over projects "
    "have been used this way. What is known of the project counts here, too.",
    example="demo 1.1 has demo-init.pth, demo 1.0 has none",
    fix="Read the code before the release is taken, or published.",
)
def newly_runs(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """Of two versions the newer one, of two wheels of one release neither, starts code that the other does not."""
    changes = need(pair.startup).differences
    names = name_sides(pair.a, pair.b)
    older = _older(pair)
    for number, side in enumerate(names):
        lines = [change.name for change in changes if (change.a, change.b)[number]]
        if not lines or number == older:
            continue
        shown = tuple(Evidence("runs", shortened(line, _LONGEST)) for line in lines[:_SHOWN])
        does = "alone runs" if older is None else "newly runs"
        message = f"{side} {does} {plural(len(lines), 'line')} of code whenever Python starts"
        yield Finding(message, shown, Fix("Read the code before the release is taken, or published."))


def _older(pair: Difference) -> int | None:
    """Which side is the older release: 0 or 1; None where both are of one, or a version is not known."""
    a, b = version_or_none(pair.a.version), version_or_none(pair.b.version)
    return None if a is None or b is None or a == b else int(a > b)
