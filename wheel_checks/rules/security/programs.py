"""Does a wheel install programs in the place of others, or entry points that are code?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from wheel_checks.facts.security.known import program_owners
from wheel_checks.facts.security.places import place_of
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import shortened
from wheel_checks.registry import rules_of
from wheel_checks.rules.security.startup import project_of, unknown_entry_points

rule = rules_of("wheel", decides=False)

_SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
_REFERENCE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:\s*:\s*[^\W\d]\w*(?:\.[^\W\d]\w*)*)?(?:\s*\[[\w\s,.-]*\])?")
_LONGEST = 160  # characters that a message shows


def _scripts(wheel: WheelFacts) -> Iterator[tuple[str, Location]]:
    """The names that the wheel installs among the programs of the environment."""
    for member in need(wheel.archive).members:
        if ".data/" in member.name and not member.is_directory:
            place = place_of(member.name)
            if place.area == "scripts":
                yield place.path, Location(member.name)
    points = need(wheel.startup).entry_points
    for point in () if isinstance(points, Unavailable) else points.entries:
        if point.group in _SCRIPT_GROUPS:
            yield point.name, Location("entry_points.txt", line=point.line)


@rule(
    "SEC008",
    "no script has the name of an interpreter, an installer or a system program",
    why="Programs of an environment come first on PATH. A script named python3, pip or sudo is then what people, "
    "shebangs and build scripts start. Compilers and cluster tools installed by known projects are intended; other "
    "scripts with such names are a warning.",
    example="`pip = demo:main` in console_scripts",
    fix="Name the script after the project.",
)
def shadowing(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No script or entry point bears such a name, but in the project that it belongs to."""
    yield from unknown_entry_points(wheel)
    project = project_of(wheel)
    for name, place in _scripts(wheel):
        known = program_owners(name)
        if known is None or project in known[2]:
            continue
        _stem, kind, owners = known
        severity = Severity.WARNING if kind == "tool" else None
        evidence = (Evidence("belongs to", ", ".join(owners) or "the system", "wheel_checks/data/startup_code.toml"),)
        article = "an" if kind[0] in "aeiou" else "a"
        message = f"the script {name} has the name of {article} {kind}"
        yield Finding(message, evidence, Fix("Name the script after the project."), place, severity)


@rule(
    "SEC009",
    "entry points are plain file names that refer to objects",
    why="Installers write a script's entry point into Python source, and its name into a path: uv and pip reject some "
    "invalid names, older versions do not.",
    example="`../../evil = demo:main`, or `tool = os:system('id')`",
    fix="Write `name = package.module:object`.",
)
def entry_points(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Values are ``module`` or ``module:object``; names of scripts are plain file names."""
    points = need(wheel.startup).entry_points
    yield from unknown_entry_points(wheel)
    for point in () if isinstance(points, Unavailable) else points.entries:
        place = Location("entry_points.txt", line=point.line)
        fix = Fix("Write it as name = package.module:object.")
        scripts = point.group in _SCRIPT_GROUPS
        if scripts and (re.search(r"[/\\\x00-\x1f]", point.name) or point.name in (".", "..")):
            yield Finding(f"the script name {point.name!a} is not a plain file name", fix=fix, location=place)
        if not _REFERENCE.fullmatch(point.value):
            shown = ascii(shortened(point.value, _LONGEST))
            holds_code = bool(re.search(r"[()=;\n`$]|import\s", point.value))
            if holds_code:
                yield Finding(f"the entry point {point.name} contains code: {shown}", fix=fix, location=place)
            else:
                message = f"the entry point {point.name} does not refer to an object: {shown}"
                severity = None if scripts else Severity.WARNING
                by_reader = None if scripts else (Audience.INSTALLER, Severity.NOTE)
                yield Finding(message, fix=fix, location=place, severity=severity, by_reader=by_reader)
