"""What the indexes of a run offer besides what is taken: kept while files are chosen, judged when all are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.facts.provenance.indexes import (
    IndexUse,
    ProjectOffers,
    described,
    find_offers,
    same_named,
    summarised_offers,
)
from wheel_checks.facts.wheel.resolution import exact_pin
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.model import Outcome, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.simple_index import Listing, SimpleIndex
from wheel_checks.targets.selection import releases
from wheel_checks.targets.target import Target
from wheelproof.wheels.model import JudgedWheel, Judgement, PlannedWheel

KIND = "indexes"


class KnownIndexes:
    """Asks the indexes, and remembers what each of them lists; any thread may ask."""

    def __init__(self, index: SimpleIndex) -> None:
        self._index = index
        self._listings: dict[str, Listing] = {}

    def files(self, project: str) -> tuple[IndexFile, ...]:
        """The candidate files of a project. Raises what :meth:`SimpleIndex.files` raises."""
        name = canonicalize_name(project)
        listing = self._listings.get(name)
        if listing is None:
            listing = self._listings[name] = self._index.files(project, every=True)
        return listing.files

    def refused(self, project: str) -> frozenset[str]:
        """The names of files of a project to which only pages lead that may not."""
        listing = self._listings.get(canonicalize_name(project), Listing(()))
        links = {link.file_name for place in listing.places for link in place.refused}
        return frozenset(links - {file.file_name for file in listing.files})

    def with_others(self, wheel: PlannedWheel) -> PlannedWheel:
        """The wheel with what other indexes list under its name."""
        project = canonicalize_name(wheel.file_name.partition("-")[0])
        listing = self._listings.get(project)
        if listing is None or wheel.listing is None:
            return wheel
        return replace(wheel, other_listings=same_named(listing, wheel.listing))

    def offers(
        self,
        requirements: Sequence[Requirement],
        target: Target | None,
        taken: IndexFile | None,
        version: Version | None,
        *,
        pre: bool = False,
    ) -> ProjectOffers | None:
        """What every place offers for the requirements on one project together; None when no index was asked for it."""
        name = canonicalize_name(requirements[0].name)
        listing = self._listings.get(name)
        if listing is None:
            return None
        together = Requirement(name)
        for requirement in requirements:
            together.specifier &= requirement.specifier
        pinned = any(exact_pin(requirement) for requirement in requirements)
        return find_offers(listing, together, target, taken, version, pre=pre, is_pinned=pinned)

    def _with_refused(self, name: str) -> ProjectOffers:
        """A project of which nothing is taken: only what its pages may not lead to counts."""
        return find_offers(self._listings[name], Requirement(name), None, None, None, is_pinned=True)

    def judge(self, projects: Iterable[ProjectOffers | None], judgement: Judgement, where: str = "") -> list[Subject]:
        """A subject for all indexes where one of them is worth a word; what passes is a fact of the wheels."""
        known = [project for project in projects if project is not None]
        others = self._listings.keys() - {canonicalize_name(project.name) for project in known}
        known += [self._with_refused(name) for name in sorted(others)]
        known = [project for project in known if project.refused or summarised_offers(project)]
        if not known:
            return []
        use = IndexUse(self._index.strategy, tuple(known))
        results = run_rules(judgement.selection.rules(KIND), use, judgement.expectations)
        if all(result.outcome is Outcome.PASS for result in results):
            return []
        facts = {
            "strategy": use.strategy,
            "projects": [
                {"name": p.name, "version": str(p.version or ""), "target": p.target, "offers": summarised_offers(p)}
                for p in known
            ],
        }
        return [Subject(f"the indexes{where}", KIND, results=results, facts=facts)]


def version_of(file: IndexFile) -> Version | None:
    """The version that a file's name says, None when it says none."""
    return max(releases(file.file_name.partition("-")[0], [file]), default=None)


def with_offers(judged: JudgedWheel, project: ProjectOffers | None) -> JudgedWheel:
    """The wheel with what other indexes offer, among its facts and for people, where several have its project."""
    offers = summarised_offers(project) if project else []
    if project is None or not offers:
        return judged
    subject = judged.subject
    headline = ", ".join(filter(None, [subject.headline, described(project)]))
    return replace(judged, subject=replace(subject, headline=headline, facts={**subject.facts, "offers": offers}))
