"""What the indexes of a run offer besides what is taken: kept while files are chosen, judged when all are."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.tags import parse_tag
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
from wheel_checks.formats.file_names import WHEEL_SUFFIX, sdist_version
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.wheel.variant_label import is_variant
from wheel_checks.model import Outcome, Subject
from wheel_checks.parsing import version_or_none
from wheel_checks.runner import run_rules
from wheel_checks.sources.simple_index import Listing, Place, SimpleIndex
from wheel_checks.targets.selection import releases
from wheel_checks.targets.target import Target
from wheelproof.wheels.model import JudgedWheel, Judgement, PlannedWheel

KIND = "indexes"


class KnownIndexes:
    """Asks the indexes, and remembers what each of them lists; any thread may ask. ``listings`` are known before."""

    def __init__(self, index: SimpleIndex, listings: Mapping[str, Listing] | None = None) -> None:
        self._index = index
        self._listings: dict[str, Listing] = dict(listings or {})

    @property
    def listings(self) -> Mapping[str, Listing]:
        """What was listed until now, by the normalised name of the project."""
        return self._listings

    def only(self, taken: Mapping[str, IndexFile], target: Target) -> dict[str, Listing] | None:
        """The listings of these projects with what counts once a file of each is ``taken``: those of its release, and,
        where several places have files, all that fit the ``target`` and one of each other release. None when more
        counts: variants, links that were refused, and places that did not answer.
        """
        found = {}
        for name, listing in self._listings.items():
            if any(place.refused or place.unread for place in listing.places):
                return None
            if any(is_variant(file.file_name) for place in listing.places for file in place.files):
                return None
            if name in taken:
                several = sum(bool(place.files) for place in listing.places) > 1
                places = (_shortened(p, name, taken[name], target if several else None) for p in listing.places)
                found[name] = Listing(tuple(places))
        return found

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


def _shortened(place: Place, project: str, taken: IndexFile, target: Target | None) -> Place:
    """The place with its files of the release of ``taken``; with a ``target`` also what :func:`find_offers` looks at:
    what fits it, and one file of each other release.
    """
    release = _release_of(taken, project)
    fitting: dict[str, bool] = {}
    seen = set()
    kept = []
    for file in place.files:
        text = _release_of(file, project)
        if text == release or (target and (text not in seen or _fits(file, target, fitting))):
            kept.append(file)
        seen.add(text)
    return replace(place, files=tuple(kept), left_out=place.left_out + len(place.files) - len(kept))


def _fits(file: IndexFile, target: Target, known: dict[str, bool]) -> bool:
    """Whether a file may be installed on a target, by its tags; there are few different ones."""
    if not file.file_name.endswith(WHEEL_SUFFIX):
        return True
    tags = "-".join(file.file_name.removesuffix(WHEEL_SUFFIX).split("-")[-3:])
    if tags not in known:
        try:
            known[tags] = not target.supported_tags().keys().isdisjoint(parse_tag(tags))
        except ValueError:
            known[tags] = True
    return known[tags]


def _release_of(file: IndexFile, project: str) -> Version | str:
    """The version that a file is of; its name where that has none."""
    if file.file_name.endswith(WHEEL_SUFFIX):
        text = file.file_name.split("-", 2)[1]
    else:
        text = sdist_version(file.file_name, project) or file.file_name
    return _known_version(text) or text


_known_version = functools.lru_cache(4096)(version_or_none)


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
