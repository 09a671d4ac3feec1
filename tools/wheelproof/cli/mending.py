"""``wheelproof doctor --fix`` and ``--undo``: the plan, the question, and what became of it."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.commands import in_words, path, run
from wheel_checks.errors import NotFoundError, WheelproofError
from wheel_checks.facts.pins.receipt import read_installed_guard
from wheel_checks.model import Unavailable
from wheel_checks.phrases import plural
from wheel_checks.report.wording import neutral, write
from wheel_checks.sources.file_tree import FileTree
from wheelproof.cli.options import open_output, say
from wheelproof.doctor.probes.python import read_interpreter
from wheelproof.doctor.repair.carrying_out import put_back as undo_repair
from wheelproof.doctor.repair.session import Session
from wheelproof.doctor.report import Examination


@dataclass(frozen=True, slots=True)
class Asking:
    """How a repair is made: without the network, after a question, or not at all but for its plan."""

    offline: bool = False
    ask: bool = True
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Mended:
    """The host after a repair, which is the one of before when nothing was changed, and the repair for programs."""

    examination: Examination
    facts: dict[str, object]


def mend(found: Examination, again: Callable[[], Examination], notes: list[str], asking: Asking = Asking()) -> Mended:
    """Show the plan, carry it out, and examine again."""
    session = Session(found.facts, found.diagnosis, os.environ, Path.cwd(), asking.offline)
    repair = session.plan()
    notes += session.notes
    if repair is None:
        return Mended(found, {"repair": {"outcome": "no plan"}})

    def outcome(word: str, examination: Examination = found) -> Mended:
        return Mended(examination, {"repair": {"outcome": word, **repair.plan.document()}})

    if asking.dry_run:
        notes += [f"The plan for {repair.prefix} (+ added, - removed, ~ replaced):", *repair.plan.lines()]
        notes += session.reminders()
        return outcome("planned")
    say(f"the plan for {repair.prefix} (+ added, - removed, ~ replaced):")
    for line in repair.plan.lines():
        say(line)
    if asking.ask and not _agreed("change it? [y/N] "):
        notes.append("Nothing was changed.")
        return outcome("declined")
    after = [found]

    def judge() -> str:
        after.append(again())
        return session.judge(after[-1].diagnosis)

    try:
        repair.carry_out(judge)
    except WheelproofError as error:
        notes.append(f"--fix failed, and {repair.prefix} was left unchanged: {error}")
        return outcome("put back")
    except (KeyboardInterrupt, SystemExit):
        say(f"interrupted: {repair.prefix} was left unchanged")
        raise
    changed = len(repair.plan.coming) + len(repair.plan.gone)
    undo = run("wheelproof", "doctor", "--python", path(repair.plan.contents.python), "--undo")
    notes.append(f"Repaired: {plural(changed, 'distribution')} changed. {in_words(undo)} puts everything back.")
    notes += session.reminders()
    if read_installed_guard(FileTree(), str(repair.prefix)) is not None:
        notes.append(
            "A guard still holds the previous packages (to hold the current ones: wheelproof pins guard --install)."
        )
    return outcome("repaired", after[-1])


def put_back(python: str, *, quiet: bool) -> int:
    """Put back what the last --fix changed. Raises WheelproofError."""
    interpreter = read_interpreter(python=python, environ=os.environ)
    if isinstance(interpreter, Unavailable):
        raise NotFoundError(interpreter.reason, hint=interpreter.hint)
    prefix = Path(os.path.realpath(interpreter.prefix))
    try:
        done = undo_repair(prefix)
        said = f"{prefix} was restored: {plural(done.restored, 'file')} restored, {done.removed} removed"
    except NotFoundError as error:  # also the second time
        said = error.what
    if not quiet:
        with open_output("-") as stream:
            write(stream, f"{neutral(said)}\n")
    return 0


def _agreed(question: str) -> bool:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
