"""Resolve the request for each target, judge every wheel, and make the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.facts.accelerator.meaning import is_known_by_name
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.resolution import active_with_extras
from wheel_checks.model import Audience, Report, Subject, Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.targets.target import Target
from wheelproof.reporting import OpenReport
from wheelproof.stacks.judging import StackJudge, gpus_there
from wheelproof.stacks.locked import read_locked
from wheelproof.stacks.packages import Pick, ResolvedStack
from wheelproof.stacks.request import StackRequest
from wheelproof.stacks.resolution import resolve_stacks
from wheelproof.stacks.table import JudgedStack, overview
from wheelproof.wheels.judging import (
    compare_siblings,
    index_subjects,
    judge_wheels,
    local_bytes,
    read_planned,
    read_siblings,
    variant_files,
)
from wheelproof.wheels.model import JudgedWheel, Judgement, PlannedWheel, Progress, Silent

if TYPE_CHECKING:  # few runs follow links
    from wheel_checks.facts.wheel.dependencies import Dependencies

KINDS = ("wheel", "release", "package", "stack", "indexes")  # subject kinds of this command's rules


def judge_stack(
    request: StackRequest,
    judgement: Judgement,
    client: HttpClient,
    config: IndexConfig,
    progress: Progress | None = None,
    dependencies: Dependencies | None = None,
) -> Report:
    """Judge the stack on every target. A target that could not be resolved for lack of an answer is undecided.

    ``dependencies`` reads linked libraries, from depth links on.

    Raises UsageError for requirements or a rule prefix that mean nothing, and SourceError when uv is missing.
    """
    opened = OpenReport("stack")
    judgement = replace(judgement, expectations=replace(judgement.expectations, in_stack=True))
    judge = StackJudge(request, judgement, judgement.selection.rules_by_kind(KINDS))
    run = _Run(_resolver(request, config, client), judge, client, progress or Silent(), dependencies)
    stacks, failed = run.resolve()
    wheels = run.read(stacks)
    judged = [*failed, *(judge.judge(stack, wheels) for stack in stacks)]
    read = [index for stack in stacks for index in stack.read]
    subjects = [*_subjects(judged), *(index_subjects(wheels, read, judgement) if read else ())]
    return opened.close(
        [subject.read_by(Audience.INSTALLER, request.installer) for subject in subjects],
        judgement.selection,
        cost=client.cost,
        local=local_bytes(wheels),
        overview=overview(judged, judgement.selection.fail_on),
        answers=[answer for stack in judged for answer in stack.answers],
    )


def _resolver(
    request: StackRequest, config: IndexConfig, client: HttpClient
) -> Callable[[Target], list[ResolvedStack]]:
    """The function that makes the stacks of a target: from the lock, or from indexes."""
    if request.lock is not None:
        return partial(read_locked, request.lock, config, client, offline=request.offline)
    return partial(resolve_stacks, request, config, client, variant_files(client) if request.machines else None)


@dataclass(frozen=True, slots=True)
class _Run:
    """Resolves a request and reads its wheels. ``dependencies`` are as in :func:`judge_stack`."""

    resolver: Callable[[Target], list[ResolvedStack]]
    judge: StackJudge
    client: HttpClient
    progress: Progress
    dependencies: Dependencies | None

    def resolve(self) -> tuple[list[ResolvedStack], list[JudgedStack]]:
        """The stacks of all targets, and the targets that have none."""
        stacks: list[ResolvedStack] = []
        failed = []
        for target in self.judge.request.targets:
            try:
                stacks += self.resolver(target)
            except UsageError:
                raise
            except WheelproofError as error:
                failed.append(self.judge.unresolved(target, error))
        return stacks, failed

    def read(self, stacks: Sequence[ResolvedStack]) -> list[JudgedWheel]:
        """Judge the wheels; where one shows no GPU, look at a wheel of the same release for another machine."""
        judgement, rules = self.judge.judgement, self.judge.rules
        wheels = self._wheels(stacks)
        self.progress.planned(len(wheels))
        variants = next((stack.variants for stack in stacks if stack.variants), None)
        judged = judge_wheels(
            wheels, judgement, rules["wheel"], self.client, self.progress, self.dependencies, variants
        )
        siblings = read_siblings(judged, self.client, judgement.expectations)
        return list(compare_siblings(judged, rules["release"], judgement.expectations, siblings))

    def _wheels(self, stacks: Iterable[ResolvedStack]) -> list[PlannedWheel]:
        """The wheels to judge, each once for a target: machines share most of them."""
        judgement, requirements = self.judge.judgement, self.judge.request.requested.known
        names: set[str] = {canonicalize_name(requirement.name) for requirement in requirements}
        every: list[PlannedWheel] = []
        for stack in stacks:
            requested = set(names)
            if judgement.depth is Depth.LINKS:  # deeper, every wheel is read as if it had been requested
                requested |= _required_through(requirements, stack.picks, self.client)
            gpus = gpus_there(judgement.expectations.gpus, stack.target.machine)
            own = [replace(p.wheel, requested=p.package.name in requested, gpus=gpus) for p in stack.picks if p.wheel]
            full = [stack.indexes.with_others(wheel) if stack.lock is None else wheel for wheel in own]
            every += [replace(wheel, companions=tuple(own)) for wheel in full]
        return list({(wheel.file_name, wheel.target): wheel for wheel in every}.values())


def _required_through(requested: Iterable[Requirement], picks: Iterable[Pick], client: HttpClient) -> set[str]:
    """The requirements of pure wheels among the ``requested`` (``jax[cuda13]``), except NVIDIA's own libraries.

    The import of such a wheel loads the libraries of these packages, so they are read as if they had been requested. A
    wheel that cannot be read adds nothing: judging it reports why.
    """
    extras: dict[str, set[str]] = {}
    for requirement in requested:
        extras.setdefault(canonicalize_name(requirement.name), set()).update(requirement.extras)
    found: set[str] = set()
    for pick in picks:
        name, wheel = pick.package.name, pick.wheel
        if name not in extras or wheel is None or not wheel.file_name.endswith("-none-any.whl"):
            continue
        try:
            metadata = read_planned(wheel, Depth.QUICK, client).metadata
        except WheelproofError:
            continue
        if wheel.target is not None and not isinstance(metadata, Unavailable):
            active = active_with_extras(metadata.requirements, wheel.target.markers(), extras[name])
            found |= {canonicalize_name(requirement.name) for requirement in active}
    return {name for name in found if not is_known_by_name(name)}


def _subjects(stacks: Iterable[JudgedStack]) -> list[Subject]:
    """The subjects of the report, each once, since machines share packages."""
    subjects: list[Subject] = []
    for judged in stacks:
        known = {subject.id for subject in subjects}
        subjects += [judged.stack, *judged.others, *(p for p in judged.packages if p.id not in known)]
    return subjects
