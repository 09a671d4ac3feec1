"""Does a wheel write to the files of other projects, or of Python itself? Is its name like another's?"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable

from wheel_checks.facts.security.known import is_owner, may_write, owners_of, resembled
from wheel_checks.facts.security.places import package_of, place_of
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.security.startup import project_of

rule = rules_of("wheel", decides=False)

_SHOWN = 5
_STANDARD_LIBRARY = re.compile(
    r"(?:lib(?:64)?/python\d[^/]*|Lib|DLLs)/(?!(?:site|dist)-packages)|(?:lib(?:64)?/)?python\d+\.zip$"
)
_OF_ENVIRONMENT = re.compile(
    r"(?:(?:.*/)?(?:pyvenv\.cfg|python\d*\._pth)|etc/(?:pip\.conf|xdg/.*|ld\.so\..*|profile.*)|pip\.(?:conf|ini)|conda-meta/.*)"
)
_REBUILD = Fix("Find out where the wheel comes from before you install it; build it with only its own packages.")


@rule(
    "SEC005",
    "the wheel installs no files into a package of another project",
    why="Installers silently overwrite existing files with a wheel's files, and delete them with either project. If "
    "another wheel contains torch/__init__.py, `import torch` runs that file. In a stack that has the other "
    "project's package it is an error: the two overwrite each other.",
    example="`torch/_tensor.py` in demo-1.0-py3-none-any.whl",
    fix="Install into a package named after the project; extend others through their entry points.",
)
def foreign_packages(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No member is in a regular package that is known to be another project's (``data/import_names.toml``)."""
    project = project_of(wheel)
    found: dict[str, list[str]] = defaultdict(list)
    for member in need(wheel.archive).members:
        package = "" if member.is_directory else package_of(member.name)
        top = package.rstrip("/")
        owners = owners_of(top) if top else ()
        if owners and not is_owner(project, owners) and not may_write(project, top, place_of(member.name).path):
            found[package].append(member.name)
    for package, names in sorted(found.items()):
        top = package.rstrip("/")
        owners = owners_of(top)
        message = f"the wheel installs {plural(len(names), 'file')} into {top}, which is a package of {owners[0]}"
        source = "wheel_checks/data/import_names.toml"
        evidence = (
            Evidence("members", summarised(names, _SHOWN, grouping=""), "central directory"),
            Evidence("projects", ", ".join(owners[:_SHOWN]), source),
        )
        yield Finding(message, evidence, _REBUILD, Location(names[0]))


@rule(
    "SEC006",
    "no file of the wheel is installed outside site-packages into Python itself",
    why="The data scheme of a wheel unpacks into the root of the environment: over the standard library, pyvenv.cfg, "
    "or pip's configuration. Files that reach site-packages this way are missed by tools that read RECORD by its "
    "schemes; that is a warning for the wheel's publisher and a note for its users.",
    example="`demo-1.0.data/data/lib/python3.12/json/__init__.py`",
    fix="Install modules from the wheel's root, and data below share/.",
)
def environment_files(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Nothing of the data scheme is in the standard library, in site-packages, or among configuration."""
    for member in need(wheel.archive).members:
        if ".data/" not in member.name or member.is_directory:
            continue
        place = place_of(member.name)
        if place.by_data and place.area == "site":
            message = f"{member.name} is installed into site-packages through the root of the environment"
            by_reader = (Audience.INSTALLER, Severity.NOTE)
            place_in_wheel = Location(member.name)
            yield Finding(
                message, fix=_REBUILD, location=place_in_wheel, severity=Severity.WARNING, by_reader=by_reader
            )
        elif place.area == "data" and _STANDARD_LIBRARY.match(place.path):
            message = f"{member.name} is installed into Python's standard library"
            yield Finding(message, fix=_REBUILD, location=Location(member.name))
        elif place.area in ("data", "scripts") and _OF_ENVIRONMENT.fullmatch(place.path):
            message = f"{member.name} replaces {posixpath.basename(place.path)} of the environment"
            yield Finding(message, fix=_REBUILD, location=Location(member.name))


@rule(
    "SEC007",
    "the project's name does not resemble that of a known project",
    Severity.WARNING,
    why="A name one typing error away from a known one is installed by mistake, which is why such names are "
    "registered. The project's publisher gets a note.",
    example="`torchvison-0.26.0-py3-none-any.whl`",
    fix="Compare the name with the documentation of the project that you want.",
)
def look_alike(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No known project's name is one letter away, or looks the same."""
    project = project_of(wheel)
    if other := resembled(project):
        evidence = (Evidence("known project", other, "wheel_checks/data/import_names.toml"),)
        fix = Fix(f"If you want {other}, install that; compare the name with the project's documentation.")
        message = f"the project is named {project}, which resembles {other}"
        yield Finding(message, evidence, fix, by_reader=(Audience.PUBLISHER, Severity.NOTE))
