"""Judges what was planned, beside the other wheels of its release, and makes the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.facts.expectations import Expectations
from wheel_checks.model import Outcome, Report, Rule, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.http.credentials import redact_text
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import Choice
from wheelproof.reporting import OpenReport
from wheelproof.wheels.judging import (
    compare_siblings,
    index_subjects,
    judge_wheels,
    local_bytes,
    machine_subjects,
    unreadable,
    variant_files,
)
from wheelproof.wheels.model import Judgement, Progress, Silent
from wheelproof.wheels.planning import Plan, Wanted, plan

if TYPE_CHECKING:  # depth quick need not load what follows links
    from wheel_checks.facts.wheel.dependencies import Dependencies

KINDS = ("wheel", "release", "requirement")  # what rules of this command judge


def verify(
    texts: Sequence[str],
    wanted: Wanted,
    judgement: Judgement,
    client: HttpClient,
    index: SimpleIndex,
    progress: Progress | None = None,
    dependencies: Dependencies | None = None,
) -> Report:
    """Judge every TARGET. A target that cannot be read is a subject with an error; the others go on.

    ``dependencies`` reads what wheels link to, from depth links on.

    Raises UsageError for a target, a platform or a rule prefix that means nothing.
    """
    progress = progress or Silent()
    opened = OpenReport("verify")
    rules = judgement.selection.rules_by_kind(KINDS)
    wanted.targets  # noqa: B018  # a misspelt platform must fail before anything is read
    subjects: list[Subject] = []
    plans: list[Plan] = []
    variants = variant_files(client) if wanted.machines else None
    for text in dict.fromkeys(texts):
        try:
            plans.append(plan(text, wanted, lambda project: index.files(project).files, variants))
        except UsageError:
            raise
        except WheelproofError as error:
            subjects.append(unreadable(redact_text(text), "target", error))
    for choice in (choice for made in plans for choice in made.choices):
        subjects += _judge_choice(choice, rules["requirement"], judgement.expectations)
    subjects += machine_subjects([choice for made in plans for choice in made.machine_choices], judgement)
    wheels = [planned for made in plans for planned in made.wheels]
    progress.planned(len(wheels))
    judged = judge_wheels(wheels, judgement, rules["wheel"], client, progress, dependencies, variants)
    subjects += [item.subject for item in compare_siblings(judged, rules["release"], judgement.expectations)]
    subjects += index_subjects(judged, [index for made in plans for index in made.variant_indexes], judgement)
    return opened.close(subjects, judgement.selection, cost=client.cost, local=local_bytes(judged))


def _judge_choice(choice: Choice, rules: Iterable[Rule], expectations: Expectations) -> list[Subject]:
    """A subject only where the choice itself is worth a word; a chosen wheel is a subject of its own."""
    results = run_rules(rules, choice, expectations)
    if choice.applies and all(result.outcome is Outcome.PASS for result in results):
        return []
    facts = {
        "requirement": redact_text(str(choice.requirement)),
        "target": choice.target.label,
        "machine": choice.target.machine,
        "python": choice.target.interpreter,
    }
    if choice.version is not None:
        facts["version"] = str(choice.version)
    told = "" if choice.applies and choice.chosen is None else choice.explanation
    return [
        Subject(
            f"{redact_text(str(choice.requirement))} for {choice.target.label}", "requirement", told, facts, results
        )
    ]
