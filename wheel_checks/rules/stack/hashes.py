"""Is a requirements file with hashes one that pip installs as it is?"""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.stack.facts import StackFacts
from wheel_checks.model import Audience, Evidence, Finding, Fix
from wheel_checks.registry import rules_of

stack_rule = rules_of("stack", Audience.INSTALLER)


@stack_rule(
    "STK120",
    "a requirements file with hashes pins every line to a version and hashes it",
    why="If one line has hashes, pip requires them for all lines and rejects the whole file otherwise.",
    example="a file written by pip-compile --generate-hashes, to which `torch` was added by hand",
    fix="Regenerate the file with hashes: uv pip compile --generate-hashes, or pip-compile --generate-hashes.",
)
def every_line_hashed(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every line whose marker holds on the target has `==` and a hash."""
    fix = Fix("Add it to the source of this file, and compile again with --generate-hashes.")
    for line in stack.unhashed:
        message = f"{line.text} {line.reason}, but other lines have hashes: pip rejects the file"
        yield Finding(message, fix=fix, location=line.place)


@stack_rule(
    "STK121",
    "a requirements file with hashes lists all requirements of its packages",
    why="pip rejects a requirement without a hash, unless it is already installed or --no-deps is given; the result "
    "then depends on the environment. A file compiled for another platform or another Python lacks the requirements "
    "specific to this one.",
    example="a file compiled on x86_64 for Python 3.11, installed with Python 3.12: torch requires setuptools",
    fix="Compile the file for this platform and this Python, or for all (uv pip compile --universal).",
)
def every_requirement_listed(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every demand leads to a package of the file."""
    fix = Fix("Compile the file for this platform and this Python; pip-compile needs --allow-unsafe for setuptools.")
    labels = {package.label: package for package in stack.packages}
    for demand in stack.unlisted:
        by = labels.get(demand.by)
        what = f"{demand}, which the file with hashes does not list: pip rejects it unless it is already installed"
        evidence = (
            (Evidence("marker", str(demand.requirement.marker), "METADATA"),) if demand.requirement.marker else ()
        )
        yield Finding(what, evidence, fix, by.place if by else None, undecided=True)
