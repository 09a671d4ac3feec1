"""What several indexes offer of a project, and from which of them an installer takes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.formats.index_page import IndexFile, OtherListing
from wheel_checks.formats.remote_links import Refused
from wheel_checks.sources.simple_index import Listing, Place
from wheel_checks.targets.selection import choose, release_wheels, releases
from wheel_checks.targets.target import Target


@dataclass(frozen=True, slots=True)
class Offer:
    """What one place would give an installer if there were no other.

    ``version`` is None when it has nothing for the requirement on the target.
    """

    place: Place
    version: Version | None = None
    file_name: str = ""

    @property
    def index(self) -> str:
        """The address of the place, without credentials."""
        return self.place.index

    @property
    def has_project(self) -> bool:
        """True for an index that lists a file of the project."""
        return self.place.is_index and bool(self.place.files)


@dataclass(frozen=True, slots=True)
class ProjectOffers:
    """A requirement on a target: what is taken, from which place, and what every place offers, in the order to ask.

    ``version`` and ``file_name`` are of what is taken, None and "" for nothing. ``is_pinned`` is True when a
    requirement names the one version.
    """

    name: str
    version: Version | None
    file_name: str
    taken_from: str
    offers: tuple[Offer, ...]
    is_pinned: bool = False
    target: str = ""

    @property
    def refused(self) -> tuple[Refused, ...]:
        """The files that places may not lead to."""
        return tuple(link for offer in self.offers for link in offer.place.refused)


@dataclass(frozen=True, slots=True)
class IndexUse:
    """The projects of one run, and how several indexes count: "merge" (pip) or "first-index" (uv)."""

    strategy: str
    projects: tuple[ProjectOffers, ...]


class Higher(NamedTuple):
    """A project of which an index after the first that has it offers a version that only it has, and a higher one.

    ``best`` is what the first has for the requirement, else the latest version that it has.
    """

    project: ProjectOffers
    first: Offer
    extra: Offer
    best: Version

    @property
    def is_taken(self) -> bool:
        """True when that version is what an installer takes."""
        return self.project.taken_from == self.extra.index and self.project.version == self.extra.version


def find_offers(
    listing: Listing,
    requirement: Requirement,
    target: Target | None,
    taken: IndexFile | None,
    version: Version | None,
    *,
    pre: bool = False,
    is_pinned: bool = False,
) -> ProjectOffers:
    """What every place of ``listing`` offers for a requirement; None as the target stands for all of them.

    ``taken`` and its ``version`` are what an installer takes of all places together.
    """
    place = "" if taken is None else taken.index
    several = sum(bool(place.files) for place in listing.places) > 1
    offers = tuple(
        Offer(one, version, taken.file_name)
        if taken is not None and one.index == place
        else _offer(one, requirement, target, pre=pre)
        if several
        else Offer(one)
        for one in listing.places
    )
    file_name = "" if taken is None else taken.file_name
    label = target.label if target else ""
    return ProjectOffers(requirement.name, version, file_name, place, offers, is_pinned, label)


def _offer(place: Place, requirement: Requirement, target: Target | None, *, pre: bool) -> Offer:
    if target is None:
        newest = release_wheels(requirement, place.files, pre=pre)[-1:]
        return Offer(place, max(releases(requirement.name, newest), default=None), *(file.file_name for file in newest))
    choice = choose(requirement, place.files, target, pre=pre)
    file = choice.chosen or choice.sdist
    return Offer(place, choice.version, file.file_name if file else "")


def find_higher(project: ProjectOffers) -> Iterator[Higher]:
    """The indexes that offer a version that only they have, and that is higher than that of the first.

    A local version (2.11.0+cu130) is another build of the same version. Who names a version wants it from wherever it
    is.
    """
    knowing = [offer for offer in project.offers if offer.has_project]
    if project.is_pinned or not knowing:
        return
    first, *extras = knowing
    extras = [extra for extra in extras if extra.version and (not first.version or _is_above(extra, first.version))]
    listed = releases(project.name, first.place.files) if extras else frozenset()
    best = first.version or max(listed, default=None)
    public = {version.public for version in listed}
    for extra in extras:
        if best and extra.version and extra.version.public not in public and _is_above(extra, best):
            if extra.version.is_prerelease and not (project.version and project.version.is_prerelease):
                continue  # taken only where there is no stable release (PEP 440)
            yield Higher(project, first, extra, best)


def _is_above(extra: Offer, version: Version) -> bool:
    """Whether an offer is higher without its local part."""
    return extra.version is not None and Version(extra.version.public) > Version(version.public)


def described(project: ProjectOffers) -> str:
    """For people: "from A; B offers 2.12.0"; "" where no other place offers something for the target."""
    others = [
        f"{offer.index} offers {offer.version}"
        for offer in project.offers
        if offer.version and offer.index != project.taken_from
    ]
    return f"from {project.taken_from}; {', '.join(others)}" if others and project.taken_from else ""


def summarised_offers(project: ProjectOffers) -> list[dict[str, Any]]:
    """The offers, JSON-ready, where several places have files of the project or one could not be read; else []."""
    known = [offer for offer in project.offers if offer.place.files or offer.place.unread]
    if len(known) < 2:
        return []
    return [
        {
            "index": offer.index,
            "taken": offer.index == project.taken_from,
            "version": str(offer.version) if offer.version else None,
            "file": offer.file_name,
            "files": len(offer.place.files) + offer.place.left_out,
            "counts": offer.place.counts,
            "unread": offer.place.unread,
        }
        for offer in known
    ]


def same_named(listing: Listing, file: IndexFile) -> tuple[OtherListing, ...]:
    """Every other entry with the name of ``file``."""
    of_index = next((place.is_index for place in listing.places if file in place.files), False)
    return tuple(
        OtherListing(other, place.counts and place.is_index and of_index)
        for place in listing.places
        for other in place.files
        if other.file_name == file.file_name and other != file
    )
