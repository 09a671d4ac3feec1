"""Does a wheel run code whenever Python starts, in every program of the environment?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from packaging.utils import canonicalize_name

from wheel_checks.facts.security.known import is_editable, known_startup, plugin_groups
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import shortened
from wheel_checks.registry import rules_of

rule = rules_of("wheel", decides=False)

WORLD_WRITABLE = re.compile(r"/(?:tmp|var/tmp|dev/shm|private/tmp|usr/tmp)(?:/|$)")
"""Folders in which every user of a machine may create files (hier(7), FHS 3.0)."""

_LONGEST = 160  # characters of a line that a message shows
_LOOK = Fix("Read the code before you start anything in an environment with this wheel.")

_EDITABLE = Fix("Publish a wheel that was not made by an editable install: its code is only on its author's host.")


def project_of(wheel: WheelFacts) -> str:
    """The normalised name of the project, from the file name."""
    return canonicalize_name(need(wheel.name).distribution)


def unknown_entry_points(wheel: WheelFacts) -> Iterable[Finding]:
    """Undecided, if the entry points cannot be read."""
    points = need(wheel.startup).entry_points
    if isinstance(points, Unavailable):
        yield Finding(f"the entry points of the wheel are unknown: {points.reason}", undecided=True)


@rule(
    "SEC001",
    "no unknown code runs whenever Python starts",
    Severity.WARNING,
    why="Python executes the lines of a .pth file that begin with `import`, and since 3.15 the entry points of a "
    ".start file, in every process of the environment, whether or not the package is imported: also in pip, in builds, "
    "and in each worker of a training job. The start-up code of setuptools, coverage and others is known. Code that "
    "unpacks, downloads or runs other code is an error. The finder of an editable install is a note in a local file, "
    "and a warning in a file of an index.",
    example="`import os, base64; exec(base64.b64decode('...'))` in demo-init.pth",
    fix="Run the code when the package is imported; use .pth files only for paths.",
)
def startup_code(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No line of a .pth or .start file runs code, but those in the table for this project."""
    facts = need(wheel.startup)
    project = project_of(wheel)
    for file in facts.files:
        for line in file.code:
            if known_startup(project, posixpath.basename(file.member), line.text):
                continue
            where = Location(file.member, line=line.number)
            if is_editable(posixpath.basename(file.member), line.text):
                message = f"{posixpath.basename(file.member)} starts the finder of an editable install"
                by_reader = (Audience.INSTALLER, Severity.WARNING)
                yield Finding(message, (), _EDITABLE, where, Severity.NOTE, by_reader=by_reader)
                continue
            evidence: tuple[Evidence, ...] = (Evidence("code", shortened(line.text, _LONGEST), file.member),)
            name = posixpath.basename(file.member)
            if line.suspect:
                evidence += (Evidence("suspect", ", ".join(line.suspect)),)
                message = f"{name} runs code whenever Python starts, using {', '.join(line.suspect[:3])}"
                yield Finding(message, evidence, _LOOK, where, Severity.ERROR)
            else:
                yield Finding(f"{name} runs code whenever Python starts", evidence, _LOOK, where)
    for member, reason in facts.unread:
        yield Finding(f"not known whether {member} runs code: {reason}", location=Location(member), undecided=True)


@rule(
    "SEC002",
    "no module replaces sitecustomize or usercustomize",
    why="Python imports both by name whenever it starts. They belong to the host's administrator and its user: Debian "
    "and Ubuntu install a sitecustomize, and only the first one found is run.",
    example="`sitecustomize.py` at the top level of a wheel",
    fix="Run the code when the package is imported.",
)
def customize(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Neither is installed into site-packages, as module or as package, in source or compiled."""
    for member in need(wheel.startup).customize:
        message = f"{member} runs whenever Python starts, instead of the host's own"
        yield Finding(message, fix=_LOOK, location=Location(member))


@rule(
    "SEC003",
    "no .pth file adds folders outside the environment",
    why="A path in a .pth file is added to the search path of every process. A path outside the environment belongs to "
    "another host: such a wheel must not be published. From a world-writable path, any user's modules are imported.",
    example="`/tmp/build/src` in demo.pth",
    fix="Install the modules; keep editable installs on the host where they were made.",
)
def added_paths(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Paths are relative, and do not climb out of site-packages."""
    for file in need(wheel.startup).files:
        for line in file.lines:
            path = line.text.strip()
            outside = posixpath.isabs(path) or re.match(r"[A-Za-z]:|\\\\", path) or ".." in re.split(r"[/\\]", path)
            if line.runs or not outside:
                continue
            message = f"{posixpath.basename(file.member)} adds {shortened(path, _LONGEST)} to the search path"
            if WORLD_WRITABLE.match(posixpath.normpath(path)):
                message += ", which every user of the host can write to"
            fix = Fix("Rebuild the wheel without an editable install, and check its contents.")
            place = Location(file.member, line=line.number)
            yield Finding(message, fix=fix, location=place)


@rule(
    "SEC004",
    "no entry point runs when another project is imported",
    Severity.NOTE,
    why="Some programs load what other packages register: `import torch` runs every entry point of the group "
    "torch.backends. Backends for other accelerators work this way, but no program refers to the code.",
    example="`torch_demo = torch_demo:_autoload` in the group torch.backends",
    fix="Set TORCH_DEVICE_BACKEND_AUTOLOAD=0 to stop torch from loading it.",
)
def plugins(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """None of the groups of the table is used."""
    points = need(wheel.startup).entry_points
    yield from unknown_entry_points(wheel)
    groups = plugin_groups()
    for point in () if isinstance(points, Unavailable) else points.entries:
        if point.group in groups:
            message = f"{point.value} is an entry point of {point.group}: {groups[point.group]}"
            yield Finding(message, location=Location("entry_points.txt", line=point.line))
