"""Reads the two sides, compares them pair by pair, judges the differences, and makes the report."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.answers.difference import answer_difference
from wheel_checks.answers.questions import GPU_CODE, LIBRARIES
from wheel_checks.errors import FormatError, WheelproofError
from wheel_checks.facts.difference.pairing import Pairing, pair_files
from wheel_checks.facts.difference.wheels import Difference, compare_wheels
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Report, Rule, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheelproof.diff.sides import Planner, Side, wheels_of
from wheelproof.diff.summary import headline, pair_facts, pair_id, pairing_facts
from wheelproof.reporting import OpenReport
from wheelproof.wheels.judging import read_planned, unreadable
from wheelproof.wheels.model import Judgement, PlannedWheel, Progress, Silent

KINDS = ("pair", "comparison")  # subject kinds of this command's rules
_DEEPER = {LIBRARIES: Depth.LINKS, GPU_CODE: Depth.GPU}  # parts that are compared from a depth on
PAIRS_AT_ONCE = 2  # more take no less time and more memory, for heads and tails of ELF files of both wheels


@dataclass(frozen=True, slots=True)
class Comparison:
    """The report, and for its tables the difference of each pair that could be read, by the id of its subject."""

    report: Report
    differences: dict[str, Difference]


@dataclass(frozen=True, slots=True)
class _ComparedPair:
    subject: Subject
    difference: Difference | None = None
    local_bytes: int = 0


def diff(
    sides: tuple[Side, Side],
    planner: Planner,
    judgement: Judgement,
    client: HttpClient,
    progress: Progress | None = None,
) -> Comparison:
    """Compare the two sides. A pair of which a wheel cannot be read is a subject with an error; the others continue.

    Raises UsageError for an unknown rule prefix, and SourceError when a side has no wheel, or its index or folder
    cannot be read.
    """
    progress, at = progress or Silent(), judgement.depth
    opened = OpenReport("diff")
    rules = judgement.selection.rules_by_kind(KINDS)
    a, b = ({wheel.file_name: wheel for wheel in wheels_of(side, planner)} for side in sides)
    pairing = _pair(list(a), list(b))
    progress.planned(2 * len(pairing.pairs), alike=True)

    def compare(names: tuple[str, str]) -> _ComparedPair:
        return _compare(a[names[0]], b[names[1]], judgement, rules["pair"], client, progress)

    with ThreadPoolExecutor(PAIRS_AT_ONCE, "pair") as pool:
        try:
            compared = list(pool.map(compare, pairing.pairs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    subjects = [item.subject for item in compared]
    if max(len(a), len(b)) > 1:
        results = run_rules(rules["comparison"], pairing, judgement.expectations)
        name = f"{sides[0].text} against {sides[1].text}"
        lone = len(pairing.only_a) + len(pairing.only_b)
        counts = f"{len(pairing.pairs)} pairs, {lone} wheels without counterpart"
        subjects.insert(0, Subject(name, "comparison", counts, pairing_facts(pairing), results))
    report = opened.close(
        subjects,
        judgement.selection,
        cost=client.cost,
        local=sum(item.local_bytes for item in compared),
        answers=[answer_difference(subjects, [part for part, depth in _DEEPER.items() if not at.includes(depth)])],
    )
    return Comparison(report, {item.subject.id: item.difference for item in compared if item.difference})


def _pair(a: Sequence[str], b: Sequence[str]) -> Pairing:
    """Two single wheels are always a pair; sets are paired by name."""
    return Pairing(((a[0], b[0]),)) if len(a) == len(b) == 1 else pair_files(a, b)


def _compare(
    a: PlannedWheel,
    b: PlannedWheel,
    judgement: Judgement,
    rules: Sequence[Rule],
    client: HttpClient,
    progress: Progress,
) -> _ComparedPair:
    def read(planned: PlannedWheel) -> WheelFacts:
        try:
            facts = read_planned(planned, judgement.depth, client)
        finally:
            progress.done()
        if facts.broken:
            raise FormatError(f"{facts.file_name}: {facts.broken}", hint="`wheelproof verify` says more")
        return facts

    try:
        with ThreadPoolExecutor(2, "side") as pool:
            facts = list(pool.map(read, (a, b)))
    except WheelproofError as error:
        return _ComparedPair(unreadable(f"{a.file_name} against {b.file_name}", "pair", error))
    difference = compare_wheels(*facts)
    results = run_rules(rules, difference, judgement.expectations)
    subject = Subject(pair_id(difference), "pair", headline(difference), pair_facts(difference, *facts), results)
    local = sum(
        item.bytes_read for item, planned in zip(facts, (a, b), strict=True) if isinstance(planned.location, Path)
    )
    return _ComparedPair(subject, difference, local)
