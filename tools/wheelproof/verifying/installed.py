"""Judge an environment as a whole, and each of its distributions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from wheel_checks.answers.installed import answer_installed
from wheel_checks.facts.installed.facts import InstalledDistribution, InstalledEnvironment
from wheel_checks.facts.installed.reading import Reading, read_installed
from wheel_checks.facts.installed.summary import headline, summarize, summarize_distribution
from wheel_checks.facts.pins.receipt import InstalledGuard, read_installed_guard
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.formats.secrets import redact_text
from wheel_checks.model import Audience, Report, Rule, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.environment import Environment, find_environment
from wheel_checks.targets.target import this_machine
from wheelproof.reporting import OpenReport
from wheelproof.verifying.question import question_of
from wheelproof.wheels.model import Judgement


@dataclass(frozen=True, slots=True)
class Place:
    """An environment: ``python`` is an interpreter, environment or folder ("" for the active one), ``root`` its file
    system; ``library_path`` overrides LD_LIBRARY_PATH, which otherwise applies on this host's own file system.
    """

    python: str = ""
    root: str = "/"
    library_path: Sequence[str] = ()


def verify_installed(
    place: Place,
    judgement: Judgement,
    variables: Mapping[str, str],
    *,
    on_found: Callable[[Environment], None] = lambda _: None,
    advance: Callable[[int], None] = lambda _: None,
) -> Report:
    """Judge one environment; files are hashed at depth full, GPU code is read from depth gpu on or for given GPUs.

    ``on_found`` is called with it, before it is read.

    Raises UsageError for a rule prefix that means nothing, NotFoundError when there is no environment, and SourceError
    when it cannot be read.
    """
    opened = OpenReport("verify")
    rules = judgement.selection.rules_by_kind(("environment", "distribution"))
    environment = find_environment(place.python, variables=variables, root=place.root)
    on_found(environment)
    own = environment.tree.is_this_machine
    inherited = variables.get("LD_LIBRARY_PATH", "").split(os.pathsep) if own else []
    reading = Reading(
        full=judgement.depth is Depth.FULL,
        library_path=tuple(filter(None, place.library_path or inherited)),
        host_machine=this_machine().target.machine,
        gpu_code=judgement.depth.includes(Depth.GPU) or bool(judgement.expectations.gpus),
        advance=advance,
    )
    inside = _with_guard(read_installed(environment, reading))
    subjects = [subject.read_by(Audience.INSTALLER) for subject in _judge(inside, rules, judgement)]
    answer = answer_installed(question_of(judgement.expectations), subjects[0], subjects[1:])
    return opened.close(subjects, judgement.selection, local=inside.bytes_read, answers=[answer])


def _with_guard(inside: InstalledEnvironment) -> InstalledEnvironment:
    """With the paths of unchanged files of a torch guard."""
    guard = read_installed_guard(inside.environment.tree, inside.environment.path)
    return replace(inside, recognised=guard.recognised) if isinstance(guard, InstalledGuard) else inside


def _judge(inside: InstalledEnvironment, rules: Mapping[str, Sequence[Rule]], judgement: Judgement) -> list[Subject]:
    """The environment first; then its distributions, torch and its requirements before the others."""
    results = run_rules(rules["environment"], inside, judgement.expectations)
    subjects = [Subject(inside.environment.path, "environment", headline(inside), summarize(inside), results)]
    for distribution in inside.distributions:
        facts = InstalledDistribution(distribution, inside)
        subjects.append(
            Subject(
                f"{distribution.name} {distribution.version}",
                "distribution",
                redact_text(distribution.url),
                summarize_distribution(facts, judgement.expectations.gpus),
                run_rules(rules["distribution"], facts, judgement.expectations),
            )
        )
    return subjects
