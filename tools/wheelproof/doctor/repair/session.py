"""Repair a diagnosed fault: the goal, the plan, and whether it helped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.fixes.goal import Goal
from wheel_checks.model import CheckResult, Severity, Unavailable
from wheel_checks.phrases import joined
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.installers.files import flag
from wheelproof.doctor.diagnosis import Diagnosis
from wheelproof.doctor.repair.carrying_out import Repair
from wheelproof.doctor.repair.graph import Graph
from wheelproof.doctor.repair.installed import read_contents
from wheelproof.doctor.repair.offers import Offers
from wheelproof.doctor.repair.permission import refusal
from wheelproof.doctor.repair.planner import Planner
from wheelproof.doctor.repair.project_files import bring_it_back
from wheelproof.doctor.repair.snapshot import without_new_lock
from wheelproof.doctor.repair.solving import NoPlanError, Solver, environment_of
from wheelproof.doctor.repair.why_not import why_not

# Rules whose finding is about one distribution; the next one may follow.
_OF_ONE_DISTRIBUTION = {"DOC201", "DOC202", "DOC206", "DOC227", "DOC229"}
# The stages of torch on its way to a GPU: a diagnosis that fails at an earlier one than before is worse.
_STAGES = (
    ("torch:missing",),
    ("torch:import", "torch:signal", "torch:hang"),
    ("torch:cpu-build", "torch:unavailable", "torch:init", "cuda:*"),
    ("torch:compute",),
    ("triton:*", "kernel:*"),
)


@dataclass(frozen=True)
class Goals:
    """A goal, the rules that require it, and sentences about fixes that --fix does not run."""

    goal: Goal | None = None
    rules: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass
class Session:
    """The repair of one host. ``folder`` is the working directory, ``environ`` the user's variables."""

    facts: HostFacts
    diagnosis: Diagnosis
    environ: Mapping[str, str]
    folder: Path
    offline: bool = False
    notes: list[str] = field(default_factory=list)

    def plan(self) -> Repair | None:
        """The repair; None if none exists, and ``notes`` then say why."""
        goals = self._goals()
        self.notes += goals.notes
        if goals.goal is None:
            return None
        if reason := refusal(self.facts):
            self.notes.append(f"--fix changes nothing: {reason}")
            return None
        try:
            return self._plan(goals.goal)
        except NoPlanError as error:
            self._say_why_not(error)
            self.notes += self.reminders()
        except WheelproofError as error:
            self.notes.append(f"--fix has no plan: {error}")
        return None

    def judge(self, after: Diagnosis) -> str:
        """Why the host is not better than before, "" when it is."""
        goals = self._goals()
        mended = [one for one in _found(self.diagnosis) if one.rule in goals.rules]
        left = {
            one.rule
            for one in _found(after)
            if one.severity is not Severity.NOTE and any(_is_same(one, before) for before in mended)
        }
        if left:
            return f"{joined(sorted(left))} is still found"
        if _stage(after) < _stage(self.diagnosis):
            return f"torch now fails earlier: {joined(after.symptoms[:3])}"
        return ""

    def reminders(self) -> Iterator[str]:
        """Warnings about causes that would bring the fault back."""
        goal = self._goals().goal
        if goal is not None and (goal.fitting_torch or goal.companions):
            yield from bring_it_back(self.facts, self.folder)

    def _plan(self, goal: Goal) -> Repair:
        interpreter = self.facts.interpreter
        if isinstance(interpreter, Unavailable):
            raise NoPlanError("the interpreter is unknown")
        contents = read_contents(interpreter)
        environ = environment_of(self.environ, contents.prefix)
        config = configured_indexes(environ, self.folder)
        for address in config.refused:
            self.notes.append(f"not contacted: {address.url}, which only {address.where} names")
        own = contents.own
        with (
            without_new_lock(Path(contents.prefix)),
            HttpClient(offline=self.offline or bool(flag(self.environ, "UV_OFFLINE"))) as client,
        ):
            offers = Offers(client, replace(config, refused=()), interpreter)  # indexes only the tree names: not asked
            graph = Graph(own, offers.target.markers())
            plan = Planner(self.facts, contents, graph, offers, environ).plan(goal)
            return Repair(plan, Solver(contents, graph, offers.config, environ), self.facts)

    def _say_why_not(self, error: NoPlanError) -> None:
        self.notes.append(f"--fix changed nothing, since it found no plan: {error}")
        self.notes += [f"what stops it: {reason}" for reason in error.reasons]

    def _goals(self) -> Goals:
        """The goal of the root (or, without one, of all findings), with the goals of other errors about packages."""
        root = self.diagnosis.root
        worth = [result for result in _found(self.diagnosis) if result.severity is not Severity.NOTE]
        if root is None and not worth:
            return Goals(notes=("nothing to fix",))
        first = [root] if root else worth
        notes = [why_not(result, self.facts) for result in first if result.fix is None or result.fix.goal is None]
        if root is not None and notes:
            return Goals(notes=tuple(notes))
        mended = [one for one in (*first, *worth) if one.fix and one.fix.goal and (one in first or _is_error(one))]
        goal: Goal | None = None
        for one in mended:
            if one.fix and one.fix.goal:
                goal = one.fix.goal if goal is None else goal | one.fix.goal
        return Goals(goal, frozenset(one.rule for one in mended), tuple(dict.fromkeys(notes)))


def _is_same(one: CheckResult, before: CheckResult) -> bool:
    """Whether a finding is unchanged; findings about several distributions count separately."""
    return one.rule == before.rule and (one.rule not in _OF_ONE_DISTRIBUTION or one.message == before.message)


def _is_error(result: CheckResult) -> bool:
    return result.severity is Severity.ERROR


def _found(diagnosis: Diagnosis) -> tuple[CheckResult, ...]:
    return (*((diagnosis.root,) if diagnosis.root else ()), *diagnosis.consequences, *diagnosis.others)


def _stage(diagnosis: Diagnosis) -> int:
    """How far torch comes: the number of the first stage that fails."""
    failing = (
        number
        for number, names in enumerate(_STAGES)
        if any(fnmatchcase(one, n) for one in diagnosis.symptoms for n in names)
    )
    return next(failing, len(_STAGES))
