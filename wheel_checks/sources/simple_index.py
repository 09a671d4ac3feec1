"""A simple repository (PEP 503, PEP 691) and find-links places: every file that they list for a project."""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from packaging.utils import canonicalize_name

from wheel_checks.errors import NotFoundError, SourceError, UsageError
from wheel_checks.formats.index_page import (
    IndexFile,
    file_from_url,
    is_file_of,
    is_variants_file_of,
    parse_index_page,
)
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.http.credentials import redact
from wheel_checks.sources.installer_config import FIRST_INDEX, IndexConfig

# PEP 691: JSON tells sizes; HTML is what every index speaks.
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"

_MOST_AT_ONCE = 8
_PROJECT = re.compile(
    r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", re.IGNORECASE
)  # the names of the core metadata specification


@dataclass(frozen=True, slots=True)
class Listing:
    """Every candidate file of a project: those of find-links places first, then by index.

    ``not_found`` are the indexes, without credentials, that do not know the project.
    """

    files: tuple[IndexFile, ...]
    not_found: tuple[str, ...] = ()


class SimpleIndex:
    """The indexes and find-links places of a configuration, asked at once."""

    def __init__(self, client: HttpClient, config: IndexConfig) -> None:
        self._client = client
        self._config = config

    def files(self, project: str) -> Listing:
        """What is listed for ``project``, whose name need not be normalised.

        Raises NotFoundError when no place knows it, SourceError or FormatError when one of those that count does not
        answer as it should: an installer would stop too, since the file to take might be there. Raises UsageError for a
        name that no project can have, and when there is no place to ask.
        """
        if not _PROJECT.fullmatch(project):
            raise UsageError(
                f"{project!r} cannot be the name of a project", expected="letters, digits, and . _ - between them"
            )
        config = self._config
        if not config.indexes and not config.find_links:
            raise UsageError("there is no index to ask", hint="give --index-url or --find-links")
        name = canonicalize_name(project)
        with ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="index") as pool:
            links = [pool.submit(self._find_links, place, name) for place in config.find_links]
            pages = [pool.submit(self._index, index, name) for index in config.indexes]
            try:
                return self._combine(project, links, pages)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _combine(self, project: str, links: list[Future[Listing]], pages: list[Future[Listing]]) -> Listing:
        listings = [future.result() for future in links]
        for future in pages:
            listings.append(future.result())
            if self._config.strategy == FIRST_INDEX and not listings[-1].not_found:
                break
        listing = Listing(
            tuple(file for part in listings for file in part.files),
            tuple(index for part in listings for index in part.not_found),
        )
        if not listing.files and len(listing.not_found) == len(pages):
            asked = ", ".join([*listing.not_found, *map(redact, self._config.find_links)])
            raise NotFoundError(
                f"no project {project!r} is known to {asked}",
                hint="check the spelling; --index-url and --find-links name other places",
            )
        return listing

    def _index(self, index: str, name: str) -> Listing:
        parts = urlsplit(index)
        url = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}/", fragment=""))
        try:
            return Listing(self._page(url, redact(index)))
        except NotFoundError:
            return Listing((), not_found=(redact(index),))

    def _find_links(self, place: str, name: str) -> Listing:
        """The files of ``name`` at a page, in a local folder, or the one file that ``place`` is."""
        linked = file_from_url(place, redact(place))
        if linked is not None and is_file_of(linked.file_name, name):
            return Listing((linked,))
        if is_file_url(place) and path_of(place).is_dir():
            return Listing(tuple(file for file in _folder(path_of(place), place) if _belongs(file, name)))
        if linked is not None and linked.is_wheel:  # a wheel of another project: no page to read
            return Listing(())
        return Listing(tuple(file for file in self._page(place, redact(place)) if _belongs(file, name)))

    def _page(self, url: str, index: str) -> tuple[IndexFile, ...]:
        page = self._client.get_page(url, {"Accept": ACCEPT})
        return parse_index_page(page.body, page.content_type, page.final_url, index)


def _belongs(file: IndexFile, project: str) -> bool:
    """Whether a file is of the project: a wheel, a source archive, or what a release says of its variants."""
    return is_file_of(file.file_name, project) or is_variants_file_of(file.file_name, project)


def _folder(path: Path, place: str) -> list[IndexFile]:
    try:
        files = sorted(file for file in path.iterdir() if file.is_file())
        return [IndexFile(file.name, file.absolute().as_uri(), size=file.stat().st_size, index=place) for file in files]
    except OSError as error:
        raise SourceError(f"the folder {path} cannot be read: {error.strerror}") from error
