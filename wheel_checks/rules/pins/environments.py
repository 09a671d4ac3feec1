"""Is the guard of an environment whole, and is what it holds still as it was? PIN210 to PIN213 judge an environment."""

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
    "every command that can replace a guarded package is blocked, where that is possible",
    why="Environment variables apply to one shell, and not to `uv sync`, `uv run`, `-c` or `--isolated`: a script, a "
    "Makefile or another shell uses an unguarded pip. An installed guard applies to every caller.",
    example="UV_CONSTRAINT and PIP_CONSTRAINT are set, and `uv sync` installs the torch of the lock file",
    fix="Install the guard: `wheelproof pins guard --install`.",
)
def closed(facts: EnvironmentGuard, _: Expectations) -> Iterable[Finding]:
    """Each open way that could be closed fails."""
    for way in facts.open_ways:
        yield Finding(f"{way.command} is not guarded: {way.why}", fix=_install(facts))


@rule(
    "PIN211",
    "the files of the installed guard are unchanged",
    why="An installer that is upgraded without the guard writes its own program over the guard's front program, and "
    "nothing is guarded from then on.",
    example="`bin/pip` after an upgrade of pip by another uv",
    fix="Reinstall the guard.",
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
            fix = _install(facts, "Reinstall the guard.")
            yield Finding(f"{file.path} {what}", fix=fix, location=Location(path=file.path))


@rule(
    "PIN212",
    "the guarded packages are unchanged since the guard was installed",
    why="Some commands bypass the guard. The packages that they replaced, removed or overwrote are found through "
    "RECORD and the files themselves.",
    example="torch 2.8.0 where 2.7.0+cu128 is guarded, after an absolute `uv --no-config pip install`",
    fix="Restore the guarded version, or reinstall the guard to guard the current one.",
)
def undamaged(facts: EnvironmentGuard, _: Expectations) -> Iterable[Finding]:
    """A held package that was replaced, removed, hidden or changed fails; one that was not recorded is undecided."""
    for held in facts.unknown:
        what = f"the guarded state of {held} is unknown: the guard's record is missing or broken"
        yield Finding(what, fix=_install(facts, "Check the package, and reinstall the guard."), undecided=True)
    versions = dict(facts.versions)
    for name, what in facts.damages:
        reinstall = ("-m", "pip", "install", "--no-deps", "--force-reinstall", package(name, versions.get(name, "")))
        back = run("env", "WHEELPROOF_GUARD=off", path(facts.python), *reinstall, note="from the index of its build")
        accept = run(
            "wheelproof",
            "pins",
            "guard",
            "--install",
            "--python",
            path(facts.python),
            note="guards the current version",
        )
        evidence = (Evidence("held", versions.get(name, "unknown"), "the receipt of the guard"),)
        yield Finding(what, evidence, Fix("Restore it, or guard the current version.", (back, accept)))


@rule(
    "PIN213",
    "no command can bypass the guard",
    Severity.NOTE,
    why="Nothing in an environment can stop a program outside from writing into it. Such a command is not a fault of "
    "the setup: its effects are found by the next check.",
    example="an absolute path of a uv outside the environment, with --no-config",
    fix="Use the pip and uv of the environment.",
)
def around(facts: EnvironmentGuard, _: Expectations) -> Iterable[Finding]:
    """Each way that cannot be closed is a note, where a guard is installed."""
    if isinstance(facts.guard, InstalledGuard):
        for way in facts.outside:
            yield Finding(f"cannot be blocked: {way}")
