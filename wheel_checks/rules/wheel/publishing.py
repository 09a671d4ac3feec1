"""What the index says of the file: yanked, too large."""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.registry import rule


@rule(
    "WHL301",
    "the file is not yanked",
    Severity.WARNING,
    why="Installers pass over a yanked file unless it is pinned exactly: what works today for a pin fails for a range.",
    example='a link with `data-yanked="broken metadata"`',
    fix="Move to a release that is not yanked.",
)
def yanked(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The index does not mark it (PEP 592)."""
    if wheel.listing is None:
        need(Unavailable("the wheel was not read from an index"))
        return
    if wheel.listing.yanked is not None:
        evidence = (Evidence("reason", wheel.listing.yanked or "none given", wheel.listing.index),)
        yield Finding("the file is yanked", evidence, Fix("Pin a release that is not yanked."))


@rule(
    "WHL302",
    "the file is not larger than the limit",
    why="Indexes refuse files above a project's limit, at the very end of an upload.",
    example="`--max-size 1GB` with a wheel of 1.2 GB",
    fix="Split off libraries into packages of their own, drop old architectures, compress fat binaries, or ask for "
    "more.",
)
def size(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """At most `--max-size`."""
    limit = expectations.max_size
    if limit is None:
        need(Unavailable("no limit was given", "--max-size 1GB"))
        return
    if wheel.size > limit:
        evidence = (Evidence("size", f"{wheel.size:,} bytes"), Evidence("limit", f"{limit:,} bytes", "--max-size"))
        fix = Fix("Drop old GPU architectures, compress the fat binaries, or move libraries to packages of their own.")
        yield Finding(f"the wheel is larger than the limit, by {wheel.size - limit:,} bytes", evidence, fix)
