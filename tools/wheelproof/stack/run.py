"""Resolves what was asked for, for each target; reads and judges every wheel of it; and makes the report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from wheel_checks.catalogue import select_rules
from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.facts.stack import StackFacts, StackPackage
from wheel_checks.model import CheckResult, Report, Rule, Severity, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.credentials import redact_text
from wheel_checks.sources.http import HttpClient
from wheel_checks.sources.installer_config import IndexConfig
from wheel_checks.sources.resolver import DEFAULT_TIMEOUT, NoSolutionError, Resolution, resolve
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.target import Target
from wheelproof import __version__
from wheelproof.judging import (
    JudgedWheel,
    Judgement,
    PlannedWheel,
    Progress,
    Silent,
    compare_siblings,
    judge_wheels,
    local_bytes,
    unreadable,
)
from wheelproof.stack.inputs import Asked
from wheelproof.stack.packages import Pick, build_facts, conflict_of, pick_wheels, sibling_wheels
from wheelproof.stack.table import headline, package_facts, table

FORM = "WHL1"  # rules about the form of metadata, which matter to who publishes the wheel
KINDS = ("wheel", "release", "package", "stack")  # what rules of this command judge


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What is resolved, for which targets and GPUs (product names), and how the resolver is to be run.

    ``timeout`` is in seconds, for each run of the resolver.
    """

    asked: Asked
    targets: tuple[Target, ...]
    gpus: tuple[str, ...] = ()
    pre: bool = False
    offline: bool = False
    timeout: float = DEFAULT_TIMEOUT


@dataclass(frozen=True, slots=True)
class _Resolved:
    """The resolution for one target, with the wheel of each package."""

    target: Target
    resolution: Resolution
    picks: tuple[Pick, ...]


def judge_stack(
    request: StackRequest,
    judgement: Judgement,
    client: HttpClient,
    config: IndexConfig,
    progress: Progress | None = None,
) -> Report:
    """Judge the stack on every target. A target that could not be resolved for lack of an answer is undecided.

    Raises UsageError for requirements or a rule prefix that mean nothing, and SourceError when uv is missing.
    """
    progress = progress or Silent()
    started, clock = datetime.now(UTC), time.perf_counter()
    rules = {kind: select_rules(kind, judgement.select, judgement.ignore) for kind in KINDS}
    index = SimpleIndex(client, config)
    subjects: list[Subject] = []
    resolved: list[_Resolved] = []
    for target in request.targets:
        try:
            resolved.append(_resolve(request, target, config, index))
        except UsageError:
            raise
        except NoSolutionError as error:
            facts = StackFacts(request.asked.names, target, conflicts=(conflict_of(error.explanation),))
            subjects.append(_stack_subject(request, facts, rules["stack"], judgement, []))
        except WheelproofError as error:
            subjects.append(unreadable(_stack_id(request, target), "stack", error))
    wheels = [pick.wheel for item in resolved for pick in item.picks if pick.wheel]
    progress.planned(len(wheels))
    judged = _judge(wheels, judgement, rules, client, progress)
    remaining = iter(judged)
    for item in resolved:
        own = {pick.package.name: next(remaining) for pick in item.picks if pick.wheel}
        facts = build_facts(request.asked, item.target, item.resolution, item.picks, own, index, request.gpus)
        packages = [_package_subject(p, own.get(p.name), rules["package"], judgement) for p in facts.packages]
        subjects += [_stack_subject(request, facts, rules["stack"], judgement, packages), *packages]
    return Report(
        command="stack",
        version=__version__,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=time.perf_counter() - clock,
        subjects=tuple(subjects),
        fail_on=judgement.fail_on,
        bytes_read=client.cost.bytes_read + local_bytes(judged),
        requests=client.cost.requests,
    )


def _resolve(request: StackRequest, target: Target, config: IndexConfig, index: SimpleIndex) -> _Resolved:
    resolution = resolve(
        request.asked.requirements,
        target,
        config,
        files=request.asked.files,
        pre=request.pre,
        offline=request.offline,
        timeout=request.timeout,
        leave_out_unusable=True,
    )
    return _Resolved(target, resolution, tuple(pick_wheels(resolution, target, index)))


def _judge(
    wheels: Sequence[PlannedWheel],
    judgement: Judgement,
    rules: Mapping[str, Sequence[Rule]],
    client: HttpClient,
    progress: Progress,
) -> list[JudgedWheel]:
    """Judge the wheels, in order; beside a CPU build, look at a wheel of the same release for another machine."""
    judged = judge_wheels(wheels, judgement, rules["wheel"], client, progress)
    others = sibling_wheels(judged)
    progress.planned(len(wheels) + len(others))
    beside = judge_wheels(others, judgement, (), client, progress)
    return list(compare_siblings([*judged, *beside], rules["release"], judgement.expectations))[: len(judged)]


def _package_subject(
    package: StackPackage, wheel: JudgedWheel | None, rules: Iterable[Rule], judgement: Judgement
) -> Subject:
    """The wheel as ``verify`` judges it, and what the rules about packages say of it; or a package without a wheel."""
    facts = package_facts(package)
    if wheel is None:
        results = run_rules(rules, package, judgement.expectations)
        name = f"{package.label} for {package.target.label}"
        return Subject(name, "package", package.explanation, facts, results)
    results = () if wheel.facts is None else run_rules(rules, package, judgement.expectations)
    results += tuple(map(_as_advice, wheel.subject.results))
    return replace(wheel.subject, facts={**wheel.subject.facts, **facts}, results=results)


def _as_advice(result: CheckResult) -> CheckResult:
    """An error about the form of a wheel's metadata is a warning in a stack.

    The resolver has accepted the wheel, and who asks about a stack cannot mend the wheels of others.
    """
    if result.rule.startswith(FORM) and result.severity is Severity.ERROR:
        return replace(result, severity=Severity.WARNING)
    return result


def _stack_subject(
    request: StackRequest,
    facts: StackFacts,
    rules: Iterable[Rule],
    judgement: Judgement,
    packages: Sequence[Subject],
) -> Subject:
    results = run_rules(rules, facts, judgement.expectations)
    rows = table(packages, judgement.fail_on)
    told = {
        "requested": list(facts.requested),
        "target": facts.target.label,
        "machine": facts.target.machine,
        "gpus": list(request.gpus),
        "packages": rows,
    }
    return Subject(_stack_id(request, facts.target), "stack", headline(facts, rows), told, results)


def _stack_id(request: StackRequest, target: Target) -> str:
    return f"{redact_text(request.asked.label)} on {target.label}"
