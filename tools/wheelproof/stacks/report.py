"""Resolves what was requested, for each target; reads and judges every wheel of it; and makes the report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.answers.stack import StackQuestion, answer_stack
from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.facts.stack.facts import DECLARED, StackFacts, StackPackage, Unhashed
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.formats.digests import WrongMetadataError
from wheel_checks.formats.secrets import redact_text
from wheel_checks.formats.wheel.variant_label import is_variant
from wheel_checks.model import Answer, Audience, Report, Rule, Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installer_config import IndexConfig
from wheel_checks.sources.uv.resolver import NoSolutionError
from wheel_checks.targets.target import Target
from wheelproof.reporting import OpenReport
from wheelproof.stacks.facts import build_facts, conflict_of
from wheelproof.stacks.fronts import asked_through
from wheelproof.stacks.locked import LockedStack, read_locked
from wheelproof.stacks.locked_facts import with_lock
from wheelproof.stacks.packages import Pick, offers_of, take_variant
from wheelproof.stacks.places import at_place, place_of
from wheelproof.stacks.request import StackRequest
from wheelproof.stacks.resolution import resolve_stack
from wheelproof.stacks.table import ShownStack, headline, is_asked_for, overview, package_facts, table
from wheelproof.wheels.indexes import KnownIndexes, with_offers
from wheelproof.wheels.judging import (
    compare_siblings,
    index_subjects,
    judge_wheels,
    local_bytes,
    machine_subjects,
    read_siblings,
    unreadable,
    variant_files,
)
from wheelproof.wheels.model import JudgedWheel, Judgement, PlannedWheel, Progress, Silent, drivers_asked
from wheelproof.wheels.resolving import Settled, UndecidedConflictError

if TYPE_CHECKING:  # few packages have variants, and few runs follow links
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.facts.wheel.dependencies import Dependencies
    from wheel_checks.sources.variant_files import VariantFiles
    from wheel_checks.targets.variant_choice import MachineChoice
    from wheel_checks.targets.variant_machine import Machine
    from wheelproof.wheels.machine_choice import ReleaseVariants

KINDS = ("wheel", "release", "package", "stack", "indexes")  # what rules of this command judge


@dataclass(frozen=True, slots=True)
class _Resolved:
    """The resolution for one target, with the wheel of each package. ``left_out`` are packages that were not looked at.

    Where packages have variants there is one for each ``machine``, with what it gets of them, and what was
    ``read`` of them on the indexes.
    """

    target: Target
    asked: tuple[Requirement, ...]
    settled: Settled
    picks: tuple[Pick, ...]
    indexes: KnownIndexes
    left_out: Mapping[str, WheelproofError]
    unhashed: tuple[Unhashed, ...] | None = None
    machine: Machine | None = None
    choices: tuple[MachineChoice, ...] = ()
    read: tuple[ReleaseVariants, ...] = ()
    locked: LockedStack | None = None


def judge_stack(
    request: StackRequest,
    judgement: Judgement,
    client: HttpClient,
    config: IndexConfig,
    progress: Progress | None = None,
    dependencies: Dependencies | None = None,
) -> Report:
    """Judge the stack on every target. A target that could not be resolved for lack of an answer is undecided.

    ``dependencies`` reads what wheels link to, from depth links on.

    Raises UsageError for requirements or a rule prefix that mean nothing, and SourceError when uv is missing.
    """
    progress = progress or Silent()
    judgement = replace(judgement, expectations=replace(judgement.expectations, in_stack=True))
    opened = OpenReport("stack")
    rules = judgement.selection.rules_by_kind(KINDS)
    variants = variant_files(client) if request.machines else None
    subjects: list[Subject] = []
    answers: list[Answer] = []
    shown: list[ShownStack] = []
    resolved: list[_Resolved] = []
    for target in request.targets:
        try:
            resolved += _for_machines(request, _resolved(request, target, config, client), variants)
        except UsageError:
            raise
        except NoSolutionError as error:
            computed = error.computed if isinstance(error, UndecidedConflictError) else ()
            facts = StackFacts(request.asked.names, target, conflicts=(conflict_of(error.explanation, computed),))
            subjects.append(_stack_subject(request, facts, rules["stack"], judgement, []))
        except WrongMetadataError as error:
            facts = StackFacts(request.asked.names, target, wrong_metadata=(error.wrong,))
            subjects.append(_stack_subject(request, facts, rules["stack"], judgement, []))
        except WheelproofError as error:
            subjects.append(unreadable(_stack_id(request, target), "stack", error))
        else:
            continue
        answers += answer_stack(_question(judgement, target), subjects[-1], ())
        shown.append(ShownStack(subjects[-1]))
    wheels = _wheels_of(resolved, judgement, client)
    progress.planned(len(wheels))
    judged = _judge(wheels, judgement, rules, client, progress, variants, dependencies)
    by_wheel = {(item.planned.file_name, item.planned.target): item for item in judged}
    for item in resolved:
        own = {p.package.name: by_wheel[p.wheel.file_name, p.wheel.target] for p in item.picks if p.wheel}
        gpus = request.gpus if item.machine is None else tuple(filter(None, [item.machine.gpu]))
        facts = _facts_of(request, item, own, gpus, judgement)
        offers = {
            p.name: offers_of(p, own[p.name].planned, item.indexes, pre=request.pre)
            for p in facts.packages
            if p.name in own and item.locked is None  # a lock leaves no choice between indexes
        }
        own = {name: with_offers(wheel, offers.get(name)) for name, wheel in own.items()}
        packages = [_package_subject(p, own.get(p.name), rules["package"], judgement) for p in facts.packages]
        packages += [_not_looked_at(name, item.target, error) for name, error in sorted(item.left_out.items())]
        packages.sort(key=lambda subject: not is_asked_for(subject))
        told = {subject.id for subject in subjects} if item.machine else set()
        stack = _stack_subject(request, facts, rules["stack"], judgement, packages, item.machine)
        beside = [] if item.locked else item.indexes.judge(offers.values(), judgement, f" for {item.target.label}")
        beside += machine_subjects(item.choices, judgement)
        subjects += [stack, *beside]
        shown.append(ShownStack(stack, packages, facts))
        answers += answer_stack(_question(judgement, item.target, item.machine), stack, packages, beside)
        subjects += [subject for subject in packages if subject.id not in told]
    read = [index for item in resolved for reader in item.read for index in reader.read]
    subjects += index_subjects(judged, read, judgement) if read else []
    return opened.close(
        [subject.read_by(Audience.INSTALLER) for subject in subjects],
        judgement.selection,
        cost=client.cost,
        local=local_bytes(judged),
        overview=overview(shown, judgement.selection.fail_on),
        answers=answers,
    )


def _facts_of(
    request: StackRequest,
    item: _Resolved,
    judged: Mapping[str, JudgedWheel],
    gpus: Sequence[str],
    judgement: Judgement,
) -> StackFacts:
    expected = judgement.expectations.of_torch
    facts = build_facts(
        request.asked,
        item.target,
        item.settled,
        item.picks,
        judged,
        item.indexes,
        gpus,
        expected=expected.accelerator if expected else "",
        unhashed=item.unhashed,
        left_out=item.left_out,
    )
    locked = item.locked
    if locked is None:
        return facts
    path = os.path.normpath(request.asked.files[0])
    return with_lock(facts, locked.lock, locked.entries, item.picks, path)


def _resolved(request: StackRequest, target: Target, config: IndexConfig, client: HttpClient) -> _Resolved:
    if request.lock is not None:
        locked = read_locked(request.lock, target, config, client, offline=request.offline)
        return _Resolved(target, request.asked.known, locked.settled, locked.picks, locked.indexes, {}, locked=locked)
    found = resolve_stack(request, target, config, client)
    asked = request.asked.known
    return _Resolved(target, asked, found.settled, found.picks, found.indexes, found.left_out, found.unhashed)


def _question(judgement: Judgement, target: Target, machine: Machine | None = None) -> StackQuestion:
    """What is asked about one target, or about one machine of it."""
    gpus, driver = _gpus_there(judgement.expectations.gpus, target.machine), drivers_asked(judgement.expectations)
    names = tuple(gpu.name for gpu in gpus)
    if machine is not None:
        names, driver = tuple(filter(None, [machine.gpu])), machine.driver if driver else ""
    python = f"{target.python[0]}.{target.python[1]}{'t' if target.free_threaded else ''}"
    where = f"{target.machine}, Python {python}"
    return StackQuestion(where, names, driver, f"{where}, {machine.label}" if machine else where)


def _for_machines(request: StackRequest, item: _Resolved, variants: VariantFiles | None) -> list[_Resolved]:
    """The resolution with the wheels of each machine of its target; as it is where no package has variants."""
    machines = [machine for machine in request.machines if machine.machine == item.target.machine]
    concerned = [pick for pick in item.picks if pick.wheel and any(is_variant(f.file_name) for f in pick.wheel.listed)]
    if not machines or not concerned or variants is None or item.locked is not None:
        return [item]
    from wheel_checks.targets.variant_choice import choose_for_machines
    from wheelproof.wheels.machine_choice import ReleaseVariants

    chosen: dict[str, tuple[MachineChoice, ...]] = {}
    readers: list[ReleaseVariants] = []
    for pick in concerned:
        listed = pick.wheel.listed if pick.wheel else ()
        requirement = Requirement(f"{pick.package.name}=={pick.package.version}")
        read = ReleaseVariants(listed, variants)
        chosen[pick.package.name] = choose_for_machines(requirement, listed, item.target, machines, read, pre=True)
        readers.append(read)
    found = []
    for number, machine in enumerate(machines):
        own = {name: made[number] for name, made in chosen.items()}
        picks = tuple(take_variant(p, own[p.package.name]) if p.package.name in own else p for p in item.picks)
        found.append(replace(item, picks=picks, machine=machine, choices=tuple(own.values()), read=tuple(readers)))
    return found


def _judge(
    wheels: Sequence[PlannedWheel],
    judgement: Judgement,
    rules: Mapping[str, Sequence[Rule]],
    client: HttpClient,
    progress: Progress,
    variants: VariantFiles | None,
    dependencies: Dependencies | None,
) -> list[JudgedWheel]:
    """Judge the wheels, in order; where one shows no GPU, look at a wheel of the same release for another machine."""
    judged = judge_wheels(wheels, judgement, rules["wheel"], client, progress, dependencies, variants)
    beside = read_siblings(judged, client, judgement.expectations)
    return list(compare_siblings(judged, rules["release"], judgement.expectations, beside))


def _wheels_of(resolved: Iterable[_Resolved], judgement: Judgement, client: HttpClient) -> list[PlannedWheel]:
    """The wheels to judge, each once for a target: machines share most of them."""
    every: list[PlannedWheel] = []
    for item in resolved:
        asked = {canonicalize_name(requirement.name) for requirement in item.asked}
        if judgement.depth is Depth.LINKS:  # deeper, every wheel is read as if it had been requested
            asked |= asked_through(item.asked, item.picks, client)
        own = [replace(p.wheel, asked=p.package.name in asked) for p in item.picks if p.wheel]
        full = [wheel if item.locked else item.indexes.with_others(wheel) for wheel in own]
        every += [replace(wheel, beside=tuple(own)) for wheel in full]
    unique = {(wheel.file_name, wheel.target): wheel for wheel in every}
    return [_for_gpus_there(wheel, judgement.expectations.gpus) for wheel in unique.values()]


def _for_gpus_there(wheel: PlannedWheel, gpus: tuple[Product, ...]) -> PlannedWheel:
    """The wheel, to be judged for the GPUs of its machine."""
    there = _gpus_there(gpus, wheel.target.machine if wheel.target else "")
    return replace(wheel, gpus=there) if there and wheel.gpus is None else wheel


def _gpus_there(gpus: tuple[Product, ...], machine: str) -> tuple[Product, ...]:
    """The GPUs that are found in machines with this CPU; all when there aren't any."""
    return tuple(gpu for gpu in gpus if gpu.machine in ("", machine)) or gpus


def _package_subject(
    package: StackPackage, wheel: JudgedWheel | None, rules: Iterable[Rule], judgement: Judgement
) -> Subject:
    """The wheel as ``verify`` judges it, and what the rules about packages say of it; or a package without a wheel."""
    facts = package_facts(package)
    if wheel is None:
        results = at_place(run_rules(rules, package, judgement.expectations), package.place)
        name = f"{package.label} for {package.target.label}"
        return Subject(name, "package", package.explanation, facts, results)
    results = () if wheel.facts is None else run_rules(rules, package, judgement.expectations)
    results = at_place((*results, *wheel.subject.results), package.place)
    subject = replace(wheel.subject, facts={**wheel.subject.facts, **facts}, results=results)
    return subject.read_by(Audience.INSTALLER)


def _not_looked_at(name: str, target: Target, error: WheelproofError) -> Subject:
    """A package that only an address of the tree would give: declared, and undecided."""
    facts = package_facts(StackPackage(name, "", target, DECLARED, Unavailable(error.what)))
    subject = unreadable(f"{name} for {target.label}", "package", error)
    return replace(subject, headline="declared, not looked at", facts=facts)


def _stack_subject(
    request: StackRequest,
    facts: StackFacts,
    rules: Iterable[Rule],
    judgement: Judgement,
    packages: Sequence[Subject],
    machine: Machine | None = None,
) -> Subject:
    results = at_place(run_rules(rules, facts, judgement.expectations), place_of("", (), request.asked))
    rows = table(packages, judgement.selection.fail_on)
    told: dict[str, Any] = {
        "requested": list(facts.requested),
        "target": facts.target.label,
        "machine": facts.target.machine,
        "gpus": list(request.gpus) if machine is None else [machine.gpu] if machine.gpu else [],
        "packages": rows,
        "refused": [asdict(refused) for refused in facts.refused],
        "pre_releases": [asdict(release) for release in facts.pre_releases],
    }
    if facts.lock is not None:
        told["lock"] = {"name": facts.lock.name, "format": facts.lock.format, "outside": facts.lock.outside}
    return Subject(_stack_id(request, facts.target, machine), "stack", headline(facts, rows), told, results)


def _stack_id(request: StackRequest, target: Target, machine: Machine | None = None) -> str:
    where = f"{target.label}, {machine.label}" if machine else target.label
    return f"{redact_text(request.asked.label)} on {where}"
