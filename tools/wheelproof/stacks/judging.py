"""Judge a stack by its wheels, or report why a target has no stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from wheel_checks.answers.claims import is_requested
from wheel_checks.answers.questions import OF_FOREIGN_FILES
from wheel_checks.answers.stack import StackQuestion, answer_stack
from wheel_checks.errors import WheelproofError
from wheel_checks.facts.security.places import package_of
from wheel_checks.facts.stack.facts import DECLARED, StackFacts, StackPackage
from wheel_checks.facts.stack.needs import stack_needs
from wheel_checks.formats.index.digests import WrongMetadataError
from wheel_checks.formats.secrets import redact_text
from wheel_checks.model import Audience, Rule, Subject, Unavailable
from wheel_checks.phrases import joined
from wheel_checks.runner import run_rules
from wheel_checks.sources.uv.resolver import NoSolutionError
from wheel_checks.targets.target import Target
from wheelproof.stacks.facts import build_facts, conflict_of
from wheelproof.stacks.packages import ResolvedStack, offers_of
from wheelproof.stacks.places import at_place, place_of
from wheelproof.stacks.request import StackRequest
from wheelproof.stacks.table import JudgedStack, headline, package_facts, table
from wheelproof.wheels.indexes import with_offers
from wheelproof.wheels.judging import machine_subjects, unreadable
from wheelproof.wheels.model import JudgedWheel, Judgement
from wheelproof.wheels.resolving import UndecidedConflictError

if TYPE_CHECKING:  # few packages have variants, and few runs name GPUs
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.targets.variant_machine import Machine


@dataclass(frozen=True, slots=True)
class StackJudge:
    """Judges the stacks of a request by the ``rules`` of each kind."""

    request: StackRequest
    judgement: Judgement
    rules: Mapping[str, Sequence[Rule]]

    def judge(self, stack: ResolvedStack, judged: Iterable[JudgedWheel]) -> JudgedStack:
        """The stack, by the ``judged`` wheels, its own among them."""
        request, judgement, machine = self.request, self.judgement, stack.machine
        by_name = {(wheel.planned.file_name, wheel.planned.target): wheel for wheel in judged}
        wheels = {p.package.name: by_name[p.wheel.file_name, p.wheel.target] for p in stack.picks if p.wheel}
        gpus = request.gpus if machine is None else tuple(filter(None, [machine.gpu]))
        torch = judgement.expectations.of_torch
        facts = build_facts(request.requested, stack, wheels, gpus, torch.accelerator if torch else "")
        offers = {
            p.name: offers_of(p, wheels[p.name].planned, stack.indexes, pre=request.pre)
            for p in facts.packages
            if p.name in wheels and stack.lock is None  # a lock leaves no choice between indexes
        }
        wheels = {name: with_offers(wheel, offers.get(name)) for name, wheel in wheels.items()}
        packages = [self._package(p, _in_stack(wheels.get(p.name), wheels.values())) for p in facts.packages]
        packages += [_not_looked_at(name, stack.target, error) for name, error in sorted(stack.left_out.items())]
        packages.sort(key=lambda subject: not is_requested(subject))
        others = machine_subjects(stack.choices, judgement)
        if stack.lock is None:
            others = stack.indexes.judge(offers.values(), judgement, f" for {stack.target.label}") + others
        return self._judged(facts, gpus, machine, packages, others)

    def unresolved(self, target: Target, error: WheelproofError) -> JudgedStack:
        """A target without a stack: its requirements have no solution, or that is not known."""
        facts = StackFacts(self.request.requested.names, target)
        if isinstance(error, NoSolutionError):
            computed = error.computed if isinstance(error, UndecidedConflictError) else ()
            facts = replace(facts, conflicts=(conflict_of(error.explanation, computed),))
        elif isinstance(error, WrongMetadataError):
            facts = replace(facts, wrong_metadata=(error.wrong,))
        else:
            subject = unreadable(self._id(target), "stack", error)
            return JudgedStack(subject, answer_stack(_question(self.judgement, target), subject, ()))
        return replace(self._judged(facts, self.request.gpus), facts=None)

    def _judged(
        self,
        facts: StackFacts,
        gpus: Sequence[str],
        machine: Machine | None = None,
        packages: Sequence[Subject] = (),
        others: Sequence[Subject] = (),
    ) -> JudgedStack:
        requested, judgement = self.request.requested, self.judgement
        results = at_place(run_rules(self.rules["stack"], facts, judgement.expectations), place_of("", (), requested))
        rows = table(packages, judgement.selection.fail_on)
        shown: dict[str, Any] = {
            "requested": list(facts.requested),
            "target": facts.target.label,
            "machine": facts.target.machine,
            "gpus": list(gpus),
            "packages": rows,
            "refused": [asdict(refused) for refused in facts.refused],
            "pre_releases": [asdict(release) for release in facts.pre_releases],
        }
        if facts.lock is not None:
            shown["lock"] = {"name": facts.lock.name, "format": facts.lock.format, "outside": facts.lock.outside}
        stack = Subject(self._id(facts.target, machine), "stack", headline(facts, rows), shown, results)
        question = _question(judgement, facts.target, machine)
        pythons = [package.facts.get("requires_python", "") for package in packages]
        pythons.append(facts.lock.requires_python if facts.lock else "")
        wanted = [gpu for gpu in judgement.expectations.gpus if gpu.name in gpus]
        needs = stack_needs(facts, pythons=pythons, gpus=wanted)
        question = replace(question, needs=needs.condition(with_driver=not question.driver))
        if needs.python:
            question = replace(question, where=f"{facts.target.machine}, Python {needs.python} or newer")
        answers = answer_stack(question, stack, packages, others)
        return JudgedStack(stack, answers, packages, others, facts, needs)

    def _id(self, target: Target, machine: Machine | None = None) -> str:
        where = f"{target.label}, {machine.label}" if machine else target.label
        return f"{redact_text(self.request.requested.label)} on {where}"

    def _package(self, package: StackPackage, wheel: JudgedWheel | None) -> Subject:
        """The wheel as ``verify`` judges it, with the results of package rules; or a package without a wheel."""
        facts = package_facts(package)
        results = run_rules(self.rules["package"], package, self.judgement.expectations)
        if wheel is None:
            name = f"{package.label} for {package.target.label}"
            return Subject(name, "package", package.explanation, facts, at_place(results, package.place))
        results = at_place((*(results if wheel.facts else ()), *wheel.subject.results), package.place)
        subject = replace(wheel.subject, facts={**wheel.subject.facts, **facts}, results=results)
        return subject.read_by(Audience.INSTALLER, self.request.installer)


def _in_stack(wheel: JudgedWheel | None, stack: Iterable[JudgedWheel]) -> JudgedWheel | None:
    """The wheel: that it installs files into a package of another project decides if the stack has that package."""
    if wheel is None:
        return None
    others = {package for other in stack if other is not wheel for package in other.packages}
    results = tuple(
        replace(r, decides=True)
        if r.rule == OF_FOREIGN_FILES and r.location and package_of(r.location.member) in others
        else r
        for r in wheel.subject.results
    )
    return replace(wheel, subject=replace(wheel.subject, results=results))


def _not_looked_at(name: str, target: Target, error: WheelproofError) -> Subject:
    """A package that only an address of the tree would give: declared, and undecided."""
    facts = package_facts(StackPackage(name, "", target, DECLARED, Unavailable(error.what)))
    subject = unreadable(f"{name} for {target.label}", "package", error)
    return replace(subject, headline="declared, not looked at", facts=facts)


def _question(judgement: Judgement, target: Target, machine: Machine | None = None) -> StackQuestion:
    """The question about one target, or one of its machines."""
    expected = judgement.expectations
    gpus, driver, without = (
        gpus_there(expected.gpus, target.machine),
        joined(expected.named_drivers),
        expected.without_driver,
    )
    names = tuple(gpu.name for gpu in gpus)
    if machine is not None:
        names, driver = tuple(filter(None, [machine.gpu])), machine.driver if driver else ""
        without = without and not machine.driver
    python = f"{target.python[0]}.{target.python[1]}{'t' if target.free_threaded else ''}"
    where = f"{target.machine}, Python {python}"
    what = f"{where}, {machine.label}" if machine else where
    return StackQuestion(where, names, driver, what, without_driver=without)


def gpus_there(gpus: tuple[Product, ...], machine: str) -> tuple[Product, ...]:
    """The GPUs that are found in machines with this CPU; all when there aren't any."""
    return tuple(gpu for gpu in gpus if gpu.machine in ("", machine)) or gpus
