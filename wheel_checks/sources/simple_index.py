"""A simple repository (PEP 503, PEP 691) and find-links places: every file that they list for a project."""

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from packaging.utils import canonicalize_name

from wheel_checks.errors import NotFoundError, SourceError, UsageError, WheelproofError
from wheel_checks.formats.file_names import is_file_of, is_variants_file_of
from wheel_checks.formats.index_page import IndexFile, IndexPage, file_from_url, parse_index_page
from wheel_checks.formats.remote_links import Refused
from wheel_checks.formats.secrets import redact, redact_text
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.installer_config import FIRST_INDEX, IndexConfig

# PEP 691: JSON has sizes; HTML is what every index speaks.
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"

REUSED = 600.0
"""Seconds that a page is used again where the index does not say how long: as long as the largest index says."""

_MOST_AT_ONCE = 8
_PROJECT = re.compile(
    r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", re.IGNORECASE
)  # the names of the core metadata specification


@dataclass(frozen=True, slots=True)
class Place:
    """What one index or find-links place, without credentials, lists for a project.

    ``known`` is False for an index that does not know the project. ``counts`` is False for an index that an installer
    passes over, since one before it knows the project. ``unread`` says why such an index could not be read. So many
    files were ``left_out`` where these do not count any more.
    """

    index: str
    files: tuple[IndexFile, ...] = ()
    refused: tuple[Refused, ...] = ()
    known: bool = True
    counts: bool = True
    unread: str = ""
    is_index: bool = True
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """What every place lists for a project: find-links places first, then the indexes in the order to ask."""

    places: tuple[Place, ...]

    @property
    def files(self) -> tuple[IndexFile, ...]:
        """Every candidate file: those of find-links places first, then by index."""
        return tuple(file for place in self.places if place.counts for file in place.files)

    @property
    def not_found(self) -> tuple[str, ...]:
        """The indexes, without credentials, that do not know the project."""
        return tuple(place.index for place in self.places if not place.known)


class SimpleIndex:
    """The indexes and find-links places of a configuration, asked at once.

    ``pinned`` maps names of packages to the one index that each comes from.
    """

    def __init__(self, client: HttpClient, config: IndexConfig, pinned: Mapping[str, str] | None = None) -> None:
        self._client = client
        self._config = config
        self._pinned = {canonicalize_name(name): url for name, url in (pinned or {}).items()}
        self._silent: dict[str, str] = {}  # indexes that are passed over and did not answer, and why

    @property
    def config(self) -> IndexConfig:
        """The indexes that are requested what is not pinned."""
        return self._config

    @property
    def strategy(self) -> str:
        """How several indexes count: "merge" or "first-index"."""
        return self._config.strategy

    def files(self, project: str, *, every: bool = False) -> Listing:
        """What is listed for ``project``, whose name need not be normalised.

        ``every`` also reads the indexes that the strategy passes over: their places do not count.

        Raises NotFoundError when no place knows it, SourceError or FormatError when one of those that count does not
        answer as it should: an installer would stop too, since the file to take might be there. Raises
        UntrustedAddressError when one that counts is named by a tree alone, UsageError for a name that no project can
        have, and when there is no place to ask.
        """
        if not _PROJECT.fullmatch(project):
            raise UsageError(
                f"{project!r} cannot be the name of a project", expected="letters, digits, and . _ - between them"
            )
        name, config = canonicalize_name(project), self._config
        if name in self._pinned:
            alone = replace(config, indexes=(self._pinned[name],), find_links=(), refused=())
            return SimpleIndex(self._client, alone).files(project, every=every)
        config.require_trusted(project)
        if not config.indexes and not config.find_links:
            raise UsageError("no index is configured", hint="give --index-url or --find-links")
        with ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="index") as pool:
            links = [pool.submit(self._find_links, place, name) for place in config.find_links]
            asked = [index for index in config.indexes if redact(index) not in self._silent]
            pages = {index: pool.submit(self._index, index, name) for index in asked}
            try:
                return self._combine(
                    project, links, pages, lambda index: pool.submit(self._index, index, name), every=every
                )
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _combine(
        self,
        project: str,
        links: list[Future[Place]],
        pages: Mapping[str, Future[Place]],
        ask: Callable[[str], Future[Place]],
        *,
        every: bool,
    ) -> Listing:
        places = [future.result() for future in links]
        found = False
        for index in self._config.indexes:
            if not found:
                places.append((pages.get(index) or ask(index)).result())
                found = self._config.strategy == FIRST_INDEX and places[-1].known
            elif every:
                places.append(self._passed_over(redact(index), pages.get(index)))
        listing = Listing(tuple(places))
        unknown = len(listing.not_found) == len(self._config.indexes)
        if unknown and not listing.files and not any(place.refused for place in places):
            asked = ", ".join([*listing.not_found, *map(redact, self._config.find_links)])
            raise NotFoundError(
                f"no project {project!r} is known to {asked}",
                hint="check the spelling, or add other locations with --index-url and --find-links",
            )
        return listing

    def _passed_over(self, index: str, page: Future[Place] | None) -> Place:
        """What an index offers that does not count. One that does not answer is asked once."""
        if index not in self._silent and page is not None:
            try:
                return replace(page.result(), counts=False)
            except WheelproofError as error:
                self._silent[index] = redact_text(str(error))
        return Place(index, counts=False, unread=self._silent[index])

    def _index(self, index: str, name: str) -> Place:
        parts = urlsplit(index)
        url = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}/", fragment=""))
        try:
            return Place(redact(index), *self._page(url, redact(index)))
        except NotFoundError:
            return Place(redact(index), known=False)

    def _find_links(self, place: str, name: str) -> Place:
        """The files of ``name`` at a page, in a local folder, or the one file that ``place`` is."""
        files: Iterable[IndexFile] = ()
        refused: tuple[Refused, ...] = ()
        linked = file_from_url(place, redact(place))
        if linked is not None and is_file_of(linked.file_name, name):
            files = (linked,)
        elif is_file_url(place) and path_of(place).is_dir():
            files = _folder(path_of(place), place)
        elif linked is None or not linked.is_wheel:  # for a wheel of another project there is no page to read
            files, refused = self._page(place, redact(place))
        return Place(
            redact(place),
            tuple(file for file in files if _belongs(file.file_name, name)),
            tuple(link for link in refused if _belongs(link.file_name, name)),
            is_index=False,
        )

    def _page(self, url: str, index: str) -> IndexPage:
        page = self._client.get_page(url, {"Accept": ACCEPT}, reuse=REUSED)
        parsed = parse_index_page(page.body, page.content_type, page.final_url, index)
        return parsed._replace(refused=tuple(link._replace(url=redact(link.url)) for link in parsed.refused))


def _belongs(file_name: str, project: str) -> bool:
    """Whether a file is of the project: a wheel, a source archive, or what a release says of its variants."""
    return is_file_of(file_name, project) or is_variants_file_of(file_name, project)


def _folder(path: Path, place: str) -> list[IndexFile]:
    try:
        files = sorted(file for file in path.iterdir() if file.is_file())
        return [IndexFile(file.name, file.absolute().as_uri(), size=file.stat().st_size, index=place) for file in files]
    except OSError as error:
        raise SourceError(f"the folder {path} cannot be read: {error.strerror}") from error
