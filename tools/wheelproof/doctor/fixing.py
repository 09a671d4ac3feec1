"""``--fix``: which commands of a fix may be run for the user, and running them.

Only installs into the virtual environment under diagnosis are run: what they change can be thrown away with the
environment. Everything else (drivers, services, containers, variables of a shell) stays advice, with the reason.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.commands import Command, Export, NoCommand, Options, Pipe, Step, Unset, WriteFile, in_words
from wheel_checks.facts.host.commands import check_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Interpreter
from wheel_checks.model import Fix, Severity, Unavailable
from wheel_checks.process import StartError, run
from wheel_checks.report.wording import neutral, write
from wheel_checks.sources.uv_binary import find_uv
from wheelproof.doctor.diagnosis import Diagnosis

# What would write elsewhere, or take away a guard that the user's system has set up.
_ELSEWHERE = (
    "--user",
    "--target",
    "-t",
    "--prefix",
    "--root",
    "--system",
    "--break-system-packages",
    "--managed-python",
)
GRACE = 10.0  # seconds that an interrupted installer has to put back what it moved away
_ACTIONS = ("install", "uninstall")
_CHOICE = "it asks for a choice"
_OTHER: dict[type, str] = {  # what no vector is, and why it is not run
    Export: "it sets something in your shell",
    Unset: "it sets something in your shell",
    Pipe: "it needs a shell",
    WriteFile: "it writes a file",
    Options: "it is for a command of yours",
    NoCommand: "there is no command that is safe to run",
}


@dataclass(frozen=True, slots=True)
class Planned:
    """One step of a fix: as it is shown, as it is run, and why it is not run for the user ("" when it may be)."""

    command: str
    arguments: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that was run, and its exit code."""

    command: str
    status: int


def plan(fix: Fix | None, facts: HostFacts) -> tuple[Planned, ...]:
    """The commands of a fix, each with whether it may be run. The one that only checks torch is left out: what is
    diagnosed again need not be checked.
    """
    steps = () if fix is None else fix.commands
    return tuple(_planned(step, facts.interpreter) for step in steps if step != check_torch(facts))


def refusal(steps: Sequence[Planned]) -> str:
    """Why a fix is not run, "" when it may be: as a whole or not at all, since its commands build on one another."""
    if not steps:
        return "it has no command"
    if any(step.refusal == _CHOICE for step in steps):
        return _CHOICE
    return next((f"{step.refusal}: {step.command}" for step in steps if step.refusal), "")


def what_to_run(diagnosis: Diagnosis, facts: HostFacts) -> tuple[tuple[Planned, ...], list[str]]:
    """The steps that mend the root (or, without one, whatever was found), and sentences about the fixes that are
    not.
    """
    worth = [result for result in diagnosis.others if result.severity is not Severity.NOTE]
    chosen: list[Planned] = []
    notes: list[str] = []
    for result in [diagnosis.root] if diagnosis.root else worth:
        steps = plan(result.fix, facts)
        if reason := refusal(steps):
            notes.append(f"--fix does not run the fix of {result.rule}: {reason}")
        else:
            chosen += steps
    if not diagnosis.root and not worth:
        notes.append("--fix has nothing to do")
    return tuple(dict.fromkeys(chosen)), notes


def difference(before: Diagnosis, after: Diagnosis) -> str:
    """What became of the diagnosis, as a sentence."""
    gone, new = (_rules(one) - _rules(other) for one, other in ((before, after), (after, before)))
    told = [f"{rule} is gone" for rule in sorted(gone)] + [f"{rule} is new" for rule in sorted(new)]
    return f"After the fix: {', '.join(told) or 'nothing has changed'}."


def _rules(diagnosis: Diagnosis) -> set[str]:
    found = (*((diagnosis.root,) if diagnosis.root else ()), *diagnosis.consequences, *diagnosis.others)
    return {result.rule for result in found}


def run_steps(steps: Sequence[Planned]) -> tuple[Ran, ...]:
    """Run the commands one after the other, until one fails; what they say goes to standard error."""
    done: list[Ran] = []
    for step in steps:
        try:
            status = run(
                step.arguments, stdout=sys.stderr, stderr=None, cwd="/", first=signal.SIGINT, grace=GRACE
            ).status
        except StartError as error:
            write(sys.stderr, neutral(f"{step.arguments[0]} cannot be started: {error}") + "\n")
            status = 127
        done.append(Ran(step.command, status))
        if status:
            break
    return tuple(done)


def _planned(step: Step, interpreter: Interpreter | Unavailable) -> Planned:
    shown = in_words(step)
    if isinstance(interpreter, Unavailable):
        return Planned(shown, refusal="the interpreter is unknown")
    arguments: tuple[str, ...] = ()
    if isinstance(step, Command) and not step.folder:
        arguments = _pip(step.argv, interpreter) or _uv(step.argv, interpreter)
    refusal = _refusal(step, arguments, interpreter)
    return Planned(shown, () if refusal else arguments, refusal)


def _refusal(step: Step, arguments: Sequence[str], interpreter: Interpreter) -> str:
    if not isinstance(step, Command):
        return _OTHER[type(step)]
    if step.note:
        return _CHOICE
    if step.argv[0] == "sudo":
        return "it needs root"
    if not arguments:
        return "it changes more than this environment"
    outside = next((word for word in arguments if word.partition("=")[0] in _ELSEWHERE), "")
    if outside:
        return f"{outside} leads outside of the environment"
    return "" if interpreter.is_virtual else f"{interpreter.prefix} is no virtual environment"


def _pip(words: Sequence[str], interpreter: Interpreter) -> tuple[str, ...]:
    """``PYTHON -m pip install ...`` of this interpreter; () for anything else."""
    if (
        len(words) < 4
        or tuple(words[1:3]) != ("-m", "pip")
        or words[3] not in _ACTIONS
        or not _is(words[0], interpreter)
    ):
        return ()
    return (interpreter.path, *words[1:])


def _uv(words: Sequence[str], interpreter: Interpreter) -> tuple[str, ...]:
    """``uv pip install --python PYTHON ...`` of this interpreter; () for anything else."""
    if len(words) < 3 or tuple(words[:2]) != ("uv", "pip") or words[2] not in _ACTIONS:
        return ()
    named = [word.partition("=")[2] for word in words if word.startswith("--python=")]
    named += [after for word, after in itertools.pairwise(words) if word in {"--python", "-p"}]
    if len(named) != 1 or not _is(named[0], interpreter):
        return ()
    return (find_uv(), *words[1:])


def _is(path: str, interpreter: Interpreter) -> bool:
    """Whether a command means this interpreter, by its path or by the folder of its environment.

    Two environments share one binary behind their links, so links are not followed.
    """
    return os.path.abspath(path) in {interpreter.path, str(Path(interpreter.prefix))}  # noqa: PTH100  # see above
