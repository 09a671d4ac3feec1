"""Is the guard of an environment whole, and is what it holds still as it was? PIN210 to PIN213 judge an environment."""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.commands import package, path, run
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.pins.environment_guard import EnvironmentGuard
from wheel_checks.facts.pins.receipt import FileState, InstalledGuard
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable
from wheel_checks.registry import rules_of

KIND = "pin-environment"
rule = rules_of(KIND, Audience.INSTALLER)


def _install(facts: EnvironmentGuard, summary: str = "Install the guard.") -> Fix:
    return Fix(summary, (run("wheelproof", "pins", "guard", "--install", "--python", path(facts.python)),))


@rule(
    "PIN210",
    "no way to replace what is held is open that could be closed",
    why="Variables hold in one shell, and not for `uv sync`, `uv run`, `-c` or `--isolated`: a script, a Makefile or "
    "another shell meets an unguarded pip. An installed guard is met by every caller.",
    example="UV_CONSTRAINT and PIP_CONSTRAINT are set, and `uv sync` installs the torch of the lock file",
    fix="Install the guard: `wheelproof pins guard --install`.",
)
def closed(facts: EnvironmentGuard, _: Expectations) -> Iterable[Finding]:
    """Each open way that could be closed fails."""
    for way in facts.open_ways:
        yield Finding(f"{way.command} is not guarded: {way.why}", fix=_install(facts))


@rule(
    "PIN211",
    "the files of the guard are those that it wrote",
    why="An installer that is upgraded around the guard puts its own program in the place of the front program, and "
    "nothing is guarded from then on.",
    example="`bin/pip` after an upgrade of pip by another uv",
    fix="Install the guard again.",
)
def whole(facts: EnvironmentGuard, _: Expectations) -> Iterable[Finding]:
    """A file that is missing or holds something else fails, and so does a receipt that cannot be read."""
    if isinstance(facts.guard, Unavailable):
        yield Finding(facts.guard.reason, fix=_install(facts))
    if not isinstance(facts.guard, InstalledGuard):
        return
    for file in facts.guard.files:
        if file.state is not FileState.INTACT:
            what = "is missing" if file.state is FileState.MISSING else "is not what the guard wrote"
            fix = _install(facts, "Install the guard again.")
            yield Finding(f"{file.path} {what}", fix=fix, location=Location(path=file.path))


@rule(
    "PIN212",
    "what is held is as it was when it was guarded",
    why="Ways that cannot be closed lead around the guard. What they replaced, removed or wrote over is found by "
    "RECORD and by the files.",
    example="torch 2.8.0 where the guard holds 2.7.0+cu128, after an absolute `uv --no-config pip install`",
    fix="Put back the version that is held, or install the guard again to hold what is there now.",
)
def undamaged(facts: EnvironmentGuard, _: Expectations) -> Iterable[Finding]:
    """A held package that was replaced, removed, hidden or changed fails; one that was not recorded is undecided."""
    for held in facts.unknown:
        what = f"how {held} was when it was guarded is not known: the record of the guard is missing or broken"
        yield Finding(what, fix=_install(facts, "Look at it, and install the guard again."), undecided=True)
    versions = dict(facts.versions)
    for name, what in facts.damages:
        reinstall = ("-m", "pip", "install", "--no-deps", "--force-reinstall", package(name, versions.get(name, "")))
        back = run("env", "WHEELPROOF_GUARD=off", path(facts.python), *reinstall, note="from the index of its build")
        accept = run(
            "wheelproof", "pins", "guard", "--install", "--python", path(facts.python), note="holds what is there"
        )
        evidence = (Evidence("held", versions.get(name, "unknown"), "the receipt of the guard"),)
        yield Finding(what, evidence, Fix("Put it back, or hold what is there now.", (back, accept)))


@rule(
    "PIN213",
    "ways around the guard are known",
    Severity.NOTE,
    why="Nothing in an environment reaches a program outside that writes into it. Such a way is no fault of the setup: "
    "what it does is found at the next check.",
    example="an absolute path of a uv outside the environment, with --no-config",
    fix="Call the pip and uv of the environment.",
)
def around(facts: EnvironmentGuard, _: Expectations) -> Iterable[Finding]:
    """Each way that cannot be closed is a note, where a guard is installed."""
    if isinstance(facts.guard, InstalledGuard):
        for way in facts.outside:
            yield Finding(f"cannot be closed: {way}")
