"""Which code does an environment run automatically, and which files, but for our guard's, replace pip and uv?"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from wheel_checks.facts.installed.facts import InstalledEnvironment
from wheel_checks.facts.installed.startup import Program
from wheel_checks.facts.security.known import is_editable, is_of_environment, known_startup
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, need
from wheel_checks.phrases import shortened
from wheel_checks.registry import rules_of

rule = rules_of("environment", Audience.INSTALLER, decides=False)
_LONGEST = 160  # characters of a line that a message shows
_LOOK = Fix("Read the code before starting anything in the environment; remove the file if it should not be there.")


@rule(
    "SEC013",
    "no unknown code runs whenever the environment's Python starts",
    Severity.WARNING,
    why="Python executes the lines of .pth files that begin with `import` in every process of the environment, also in "
    "pip. SEC001 judges those that a wheel contains; others are written by a package when it runs, or by the host's "
    "administrator, who alone knows whether they are intended: so this is never an error.",
    example="`import os, base64; exec(base64.b64decode('...'))` in site-packages/init.pth, which no RECORD lists",
    fix="Remove the file if it should not be there.",
)
def startup_code(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Each line of code is known for its distribution, for editable installs or for virtualenv."""
    startup = need(inside.startup)
    for path, reason in startup.unread:
        yield Finding(f"not known whether {inside.relative(path)} runs code: {reason}", fix=_LOOK, undecided=True)
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
        message = f"{posixpath.basename(path)} runs whenever Python starts, instead of the host's own"
        yield Finding(message, fix=_LOOK, location=Location(path=path))


@rule(
    "SEC014",
    "pip, uv and the interpreters of a virtual environment are the programs that their names promise",
    Severity.WARNING,
    why="They come first on PATH in an active environment: a program in their place sees and changes every "
    "installation. RECORD does not reveal it, since whoever replaces a file can also write its hash there.",
    example="bin/pip that calls another program; bin/uv that is a script and belongs to no distribution",
    fix="Reinstall pip or uv; `wheelproof pins guard --check` checks a guard's replacements of them.",
)
def programs(inside: InstalledEnvironment, _: Expectations) -> Iterable[Finding]:
    """Scripts of installers call their own package and do nothing else; interpreters and uv are native programs.

    Front programs of the guard are accepted if unmodified, regardless of its receipt.
    """
    for program in need(inside.startup).programs:
        if program.path in inside.recognised or _is_genuine(program):
            continue
        name, owner = posixpath.basename(program.path), inside.owner_of(program.path)
        what = f"calls {program.module}" if program.module else "is a script that no installer writes"
        what = f"is a native program ({program.native})" if program.native else what
        evidence = (Evidence("the name of", ", ".join(program.projects) or f"a {program.kind}"),)
        again = Fix(f"Find out what wrote it, then reinstall {program.projects[0] if program.projects else name}.")
        message = f"bin/{name} of {owner.name if owner else 'no distribution'} {what}"
        yield Finding(message, evidence, again, Location(path=program.path))


def _is_genuine(program: Program) -> bool:
    if program.native:
        return program.kind in ("interpreter", "shell") or "uv" in program.projects
    top = program.module.partition(".")[0].replace("_", "-")
    return bool(top) and top in program.projects
