"""Does a release newly run code when Python starts?"""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.difference.wheels import Difference, name_sides
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Evidence, Finding, Fix, Severity, need
from wheel_checks.parsing import version_or_none
from wheel_checks.phrases import plural, shortened
from wheel_checks.registry import rules_of

rule = rules_of("pair", decides=False)

_SHOWN = 5
_LONGEST = 160  # characters of a line


@rule(
    "SEC012",
    "the release adds no code that runs whenever Python starts",
    Severity.WARNING,
    why="Code that a release adds to the start of every process was not reviewed with any earlier release. Projects "
    "that were taken over have been used this way. Start-up code known to be normal for the project counts here, too.",
    example="demo 1.1 has demo-init.pth, but demo 1.0 does not",
    fix="Read the code before you install, or publish, the release.",
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
        yield Finding(message, shown, Fix("Read the code before you install, or publish, the release."))


def _older(pair: Difference) -> int | None:
    """Which side is the older release: 0 or 1; None if both are of one, or a version is unknown."""
    a, b = version_or_none(pair.a.version), version_or_none(pair.b.version)
    return None if a is None or b is None or a == b else int(a > b)
