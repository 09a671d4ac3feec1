"""Reads what was planned, up to eight wheels at once, judges it, and makes the report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from wheel_checks.catalogue import get_rule, select_rules
from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.expectations import Expectations
from wheel_checks.facts.reading import Request, read_wheel
from wheel_checks.facts.siblings import find_siblings
from wheel_checks.facts.summary import headline, summarize
from wheel_checks.facts.wheel import Depth, WheelFacts
from wheel_checks.model import FailOn, Outcome, Report, Rule, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.byte_source import ByteSource
from wheel_checks.sources.credentials import redact_text
from wheel_checks.sources.http import HttpClient
from wheel_checks.sources.local import LocalFile
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import Choice
from wheelproof import __version__
from wheelproof.verify.plan import Plan, PlannedWheel, Wanted, plan

KINDS = ("wheel", "release", "requirement")  # what rules of this command judge
AT_ONCE = 8  # wheels read in parallel; also the client's bound on connections


@dataclass(frozen=True, slots=True)
class Judgement:
    """How to judge: the rules, by prefixes of their ids, what is expected, and the severity that fails the run."""

    expectations: Expectations = field(default_factory=Expectations)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: FailOn = FailOn.ERROR
    depth: Depth = Depth.QUICK


class Progress(Protocol):
    """Who is told how far a run is; any thread may call ``done``."""

    def planned(self, wheels: int) -> None:
        """So many wheels will be read."""

    def done(self) -> None:
        """One more wheel was read."""


class _Silent:
    """Tells nobody."""

    def planned(self, wheels: int) -> None:
        pass

    def done(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Judged:
    """A planned wheel: its subject so far, and its facts, for the comparison with others; None when unreadable."""

    planned: PlannedWheel
    subject: Subject
    facts: WheelFacts | None = None


def verify(
    texts: Sequence[str],
    wanted: Wanted,
    judgement: Judgement,
    client: HttpClient,
    index: SimpleIndex,
    progress: Progress | None = None,
) -> Report:
    """Judge every TARGET. A target that cannot be read is a subject with an error; the others go on.

    Raises UsageError for a target, a platform or a rule prefix that means nothing.
    """
    progress = progress or _Silent()
    started, clock = datetime.now(UTC), time.perf_counter()
    rules = {kind: select_rules(kind, judgement.select, judgement.ignore) for kind in KINDS}
    wanted.targets  # noqa: B018  # a misspelt platform must fail before anything is read
    subjects: list[Subject] = []
    plans: list[Plan] = []
    for text in dict.fromkeys(texts):
        try:
            plans.append(plan(text, wanted, lambda project: index.files(project).files))
        except UsageError:
            raise
        except WheelproofError as error:
            subjects.append(_unreadable(redact_text(text), "target", error))
    for choice in (choice for made in plans for choice in made.choices):
        subjects += _judge_choice(choice, rules["requirement"], judgement.expectations)
    wheels = [planned for made in plans for planned in made.wheels]
    progress.planned(len(wheels))
    judged = _judge_all(wheels, judgement, rules["wheel"], client, progress)
    subjects += _compare(judged, rules["release"], judgement.expectations)
    return Report(
        command="verify",
        version=__version__,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=time.perf_counter() - clock,
        subjects=tuple(subjects),
        fail_on=judgement.fail_on,
        bytes_read=client.cost.bytes_read + _local_bytes(judged),
        requests=client.cost.requests,
    )


def _judge_all(
    wheels: Sequence[PlannedWheel],
    judgement: Judgement,
    rules: Sequence[Rule],
    client: HttpClient,
    progress: Progress,
) -> list[_Judged]:
    """Read and judge each wheel on its own. Its members are dropped at once: a release has a million of them."""
    names = Counter(planned.file_name for planned in wheels)

    def judge(planned: PlannedWheel) -> _Judged:
        name = planned.file_name
        if names[name] > 1 and planned.target:
            name += f" ({planned.target.label})"
        try:
            facts = _read(planned, judgement.depth, client)
        except WheelproofError as error:
            return _Judged(planned, _unreadable(name, "wheel", error))
        finally:
            progress.done()
        results = run_rules(rules, facts, judgement.expectations)
        subject = Subject(name, "wheel", headline(facts), summarize(facts), results)
        return _Judged(planned, subject, facts.without_members())

    with ThreadPoolExecutor(AT_ONCE, "wheel") as pool:
        futures = [pool.submit(judge, planned) for planned in wheels]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _read(planned: PlannedWheel, depth: Depth, client: HttpClient) -> WheelFacts:
    listing = planned.listing
    offered = listing is not None and listing.core_metadata is not None
    request = Request(
        planned.file_name,
        listing,
        planned.target,
        depth,
        _sidecar_reader(client, planned) if offered else None,
    )
    source = _open(planned, client)
    try:
        return read_wheel(source, request)
    finally:
        source.close()


def _open(planned: PlannedWheel, client: HttpClient) -> ByteSource:
    if isinstance(planned.location, Path):
        return LocalFile(planned.location)
    listing = planned.listing
    if listing is None:
        return client.open(planned.location)
    return client.open(planned.location, expected_hash=listing.hashes.get("sha256", ""), size=listing.size)


def _sidecar_reader(client: HttpClient, planned: PlannedWheel) -> Callable[[], bytes]:
    return lambda: client.get_page(f"{planned.location}.metadata", {}).body


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


def _compare(judged: Sequence[_Judged], rules: Sequence[Rule], expectations: Expectations) -> Iterable[Subject]:
    """Judge each wheel beside the others of its release."""
    known = {item.facts.file_name: item.facts for item in judged if item.facts}
    for item in judged:
        if item.facts is None:
            yield item.subject
            continue
        facts = replace(item.facts, siblings=find_siblings(item.facts, item.planned.listed, known))
        results = (*item.subject.results, *run_rules(rules, facts, expectations))
        yield replace(item.subject, results=tuple(sorted(results, key=lambda result: result.rule)))


def _unreadable(name: str, kind: str, error: WheelproofError) -> Subject:
    """A subject that could not be judged, whatever rules were selected: it must not look like a pass."""
    return Subject(name, kind, "could not be read", results=run_rules([get_rule("WHL000")], error, None))


def _local_bytes(judged: Iterable[_Judged]) -> int:
    return sum(item.facts.bytes_read for item in judged if item.facts and isinstance(item.planned.location, Path))
