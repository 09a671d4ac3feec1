"""Judge planned wheels, with the other wheels of their release, and make the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from wheel_checks.answers.wheels import answer_wheels
from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.facts.provenance.indexes import ProjectOffers
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.formats.secrets import redact_text
from wheel_checks.model import Audience, Outcome, Report, Rule, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import Choice
from wheelproof.reporting import OpenReport
from wheelproof.verifying.question import question_of
from wheelproof.wheels.indexes import KnownIndexes, version_of, with_offers
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
from wheelproof.wheels.model import JudgedWheel, Judgement, Progress, Silent
from wheelproof.wheels.planning import Plan, Wanted, plan

if TYPE_CHECKING:  # most runs load neither the reader of links nor that of records
    from wheel_checks.facts.wheel.dependencies import Dependencies
    from wheel_checks.sources.variant_files import VariantFiles
    from wheelproof.verifying.recording import Recording
    from wheelproof.wheels.provenance import Attesting

KINDS = ("wheel", "release", "requirement", "indexes")  # subject kinds of this command's rules


def verify(
    texts: Sequence[str],
    wanted: Wanted,
    judgement: Judgement,
    client: HttpClient,
    index: SimpleIndex,
    progress: Progress | None = None,
    dependencies: Dependencies | None = None,
    recording: Recording | None = None,
    *,
    attesting: Attesting | None = None,
) -> Report:
    """Judge every TARGET. A target that cannot be read is a subject with an error; the others continue.

    ``dependencies`` reads linked libraries, from depth links on. ``recording`` writes and compares records;
    ``attesting`` judges the attestations of the files.

    Raises UsageError for a target, a platform or a rule prefix that means nothing.
    """
    progress = progress or Silent()
    opened = OpenReport("verify")
    rules = judgement.selection.rules_by_kind(KINDS)
    wanted.targets  # noqa: B018  # a misspelt platform must fail before anything is read
    variants = variant_files(client) if wanted.machines else None
    indexes = KnownIndexes(index)
    plans, offers, subjects = _planned(texts, wanted, indexes, variants)
    unread = len(subjects)
    for choice in (choice for made in plans for choice in made.choices):
        subjects += _judge_choice(choice, rules["requirement"], judgement.expectations)
    subjects += machine_subjects([choice for made in plans for choice in made.machine_choices], judgement)
    wheels = [indexes.with_others(planned) for made in plans for planned in made.wheels]
    subjects += indexes.judge(offers, judgement)
    alike = len({wheel.file_name.partition("-")[0] for wheel in wheels}) == 1
    progress.planned(len(wheels), alike=alike)
    judged = judge_wheels(wheels, judgement, rules["wheel"], client, progress, dependencies, variants)
    by_file = {(o.file_name, o.target): o for o in offers if o}
    siblings = read_siblings(judged, client, judgement.expectations) if rules["release"] else {}
    finished = list(compare_siblings(judged, rules["release"], judgement.expectations, siblings))
    for item in finished:
        label = item.planned.target.label if item.planned.target else ""
        subject = with_offers(item, by_file.get((item.planned.file_name, label))).subject
        # who names a package, or a target, installs it; who names a file or a folder alone may be about to publish it
        installs = item.planned.listing or (item.facts and item.facts.is_target_requested)
        reader = Audience.INSTALLER if installs else Audience.BOTH
        if attesting is not None:
            subject = _attested(attesting, item, subject)
        subjects.append(subject.read_by(reader))
    subjects += index_subjects(judged, [index for made in plans for index in made.variant_indexes], judgement)
    if recording is not None:
        subjects += recording.compare(finished, is_complete=not unread)
    answers = answer_wheels(question_of(judgement.expectations, provenance=attesting is not None), subjects)
    return opened.close(subjects, judgement.selection, cost=client.cost, local=local_bytes(judged), answers=answers)


def _planned(
    texts: Iterable[str], wanted: Wanted, indexes: KnownIndexes, variants: VariantFiles | None
) -> tuple[list[Plan], list[ProjectOffers | None], list[Subject]]:
    """The plan of each target, what indexes offer of it, and a subject for each that cannot be read."""
    plans: list[Plan] = []
    offers: list[ProjectOffers | None] = []
    subjects: list[Subject] = []
    for text in dict.fromkeys(texts):
        try:
            plans.append(plan(text, wanted, indexes.files, variants))
            offers += _offers(text, plans[-1], indexes, wanted)
        except UsageError:
            raise
        except WheelproofError as error:
            subjects.append(unreadable(redact_text(text), "target", error))
    return plans, offers, subjects


def _attested(attesting: Attesting, item: JudgedWheel, subject: Subject) -> Subject:
    from wheelproof.wheels.provenance import NOT_WHOLE, AttestableFile

    planned = item.planned
    listings = (planned.listing,) if planned.listing else ()
    sha256 = (item.facts.content_sha256 if item.facts else "") or NOT_WHOLE
    return attesting.judge(subject, AttestableFile(planned.file_name, planned.location, listings, sha256))


def _offers(text: str, made: Plan, indexes: KnownIndexes, wanted: Wanted) -> list[ProjectOffers | None]:
    """The offers of all indexes for a requirement, for every target and machine, or with all its files."""
    choices = [*made.choices, *(choice.choice for choice in made.machine_choices)]
    if wanted.all_files and not choices and made.wheels and made.wheels[-1].listing:
        newest = made.wheels[-1].listing
        return [indexes.offers([Requirement(text)], None, newest, version_of(newest), pre=wanted.pre)]
    return [
        indexes.offers(
            [choice.requirement], choice.target, choice.chosen or choice.sdist, choice.version, pre=wanted.pre
        )
        for choice in choices
        if choice.applies and not choice.requirement.url
    ]


def _judge_choice(choice: Choice, rules: Iterable[Rule], expectations: Expectations) -> list[Subject]:
    """A subject only where the choice itself is worth a word; a chosen wheel is its own subject."""
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
    explanation = "" if choice.applies and choice.chosen is None else choice.explanation
    return [
        Subject(
            f"{redact_text(str(choice.requirement))} for {choice.target.label}",
            "requirement",
            explanation,
            facts,
            results,
        )
    ]
