"""Is a requirements file with hashes one that pip installs as it is?"""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.stack.facts import StackFacts
from wheel_checks.model import Audience, Evidence, Finding, Fix
from wheel_checks.registry import rules_of

stack_rule = rules_of("stack", Audience.INSTALLER)


@stack_rule(
    "STK120",
    "a requirements file with hashes pins every line to a version and has a hash for it",
    why="pip requires hashes of all lines as soon as one line has some, and refuses the whole file otherwise.",
    example="a file that pip-compile wrote with --generate-hashes, to which someone added `torch` by hand",
    fix="Write the file again with hashes: uv pip compile --generate-hashes, or pip-compile --generate-hashes.",
)
def every_line_hashed(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every line whose marker holds on the target has `==` and a hash."""
    fix = Fix("Add it to the file that this one is compiled from, and compile again with --generate-hashes.")
    for line in stack.unhashed:
        message = f"{line.text} {line.reason}, and other lines have: pip refuses the file"
        yield Finding(message, fix=fix, location=line.place)


@stack_rule(
    "STK121",
    "a requirements file with hashes lists all that its packages require",
    why="pip refuses a requirement without a hash, unless it is installed already or --no-deps is given; what is "
    "then installed depends on the environment. A file that was compiled for another platform or another Python "
    "lacks what is required on this one alone.",
    example="a file that was compiled on x86_64 for Python 3.11, installed with Python 3.12: torch requires setuptools",
    fix="Compile the file for this platform and this Python, or for all (uv pip compile --universal).",
)
def every_requirement_listed(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every demand leads to a package of the file."""
    fix = Fix("Compile the file for this platform and this Python; pip-compile needs --allow-unsafe for setuptools.")
    labels = {package.label: package for package in stack.packages}
    for demand in stack.unlisted:
        by = labels.get(demand.by)
        what = (
            f"{demand}, which the file with hashes does not list: pip installs it only where that is installed already"
        )
        evidence = (
            (Evidence("marker", str(demand.requirement.marker), "METADATA"),) if demand.requirement.marker else ()
        )
        yield Finding(what, evidence, fix, by.place if by else None, undecided=True)
