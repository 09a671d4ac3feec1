"""What does an environment run without being asked, and what stands where pip and uv should be?

Files that a guard of torch (``wheelproof pins guard``) has written are left out, where they are exactly what it writes.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.installed.facts import InstalledEnvironment
from wheel_checks.facts.installed.startup import Program
from wheel_checks.facts.security.known import is_editable, is_of_environment, known_startup
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, need
from wheel_checks.phrases import shortened
from wheel_checks.registry import rules_of

rule = rules_of("environment", Audience.INSTALLER)
_LONGEST = 160  # characters of a line that a message shows
_LOOK = Fix("Read the code before anything is started in the environment; remove the file if it is not meant.")


@rule(
    "SEC013",
    "no unknown code runs whenever the environment's Python starts",
    Severity.WARNING,
    why="Python executes the lines of .pth files that begin with `import` in every process of the environment, also in "
    "pip. A wheel that brings them is SEC001; others are written by what a package runs, or by the administrator of "
    "the machine, who alone knows whether they are meant: so this is never an error.",
    example="`import os, base64; exec(base64.b64decode('...'))` in site-packages/init.pth, which no RECORD lists",
    fix="Remove the file if it is not meant.",
)
def startup_code(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Each line of code is one that is known of its distribution, of an editable install or of virtualenv."""
    startup = need(inside.startup)
    for path, reason in startup.unread:
        yield Finding(f"whether {inside.relative(path)} runs code is not known: {reason}", fix=_LOOK, undecided=True)
    for file in startup.files:
        name, owner = posixpath.basename(file.member), inside.owner_of(file.member)
        project = owner.name if owner else ""
        for line in file.code:
            is_known = known_startup(project, name, line.text) or is_editable(name, line.text)
            if is_known or is_of_environment(name, line.text) or file.member in inside.recognised:
                continue
            evidence = [Evidence("code", shortened(line.text, _LONGEST), name)]
            evidence += [Evidence("suspect", ", ".join(line.suspect))] if line.suspect else []
            message = f"{name} of {project or 'no distribution'} runs code whenever Python starts"
            yield Finding(message, tuple(evidence), _LOOK, Location(path=file.member, line=line.number))
    for path in startup.customize:
        message = f"{posixpath.basename(path)} runs whenever Python starts, in place of the machine's own"
        yield Finding(message, fix=_LOOK, location=Location(path=path))


@rule(
    "SEC014",
    "pip, uv and the interpreters of a virtual environment are what their names say",
    Severity.WARNING,
    why="These come first on PATH in an active environment: what stands in their place sees and changes every "
    "installation. RECORD does not show it, since whoever replaces a file can write its hash there.",
    example="bin/pip that calls another program; bin/uv that is a script and belongs to no distribution",
    fix="Install pip or uv again; `wheelproof pins guard --check` judges front programs of a guard.",
)
def programs(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Scripts of installers call their own package and do nothing else; interpreters and uv are native programs.

    Front programs of the guard are taken where they are what it writes, whatever a receipt says of others.
    """
    for program in need(inside.startup).programs:
        if program.path in inside.recognised or _is_genuine(program):
            continue
        name, owner = posixpath.basename(program.path), inside.owner_of(program.path)
        what = f"calls {program.module}" if program.module else "is a script that no installer writes"
        what = f"is a native program ({program.native})" if program.native else what
        evidence = (Evidence("the name of", ", ".join(program.projects) or f"a {program.kind}"),)
        again = Fix(f"Find out what wrote it, then install {program.projects[0] if program.projects else name} again.")
        message = f"bin/{name} of {owner.name if owner else 'no distribution'} {what}"
        yield Finding(message, evidence, again, Location(path=program.path))


def _is_genuine(program: Program) -> bool:
    if program.native:
        return program.kind in ("interpreter", "shell") or "uv" in program.projects
    top = program.module.partition(".")[0].replace("_", "-")
    return bool(top) and top in program.projects
