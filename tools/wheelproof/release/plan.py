"""From what the user typed to the files of a release: folders, files, URLs, and a requirement on the indexes."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import NotFoundError, UsageError
from wheel_checks.facts.release import version_of
from wheel_checks.facts.release_expectation import ReleaseExpectation
from wheel_checks.formats.file_names import SDIST_SUFFIXES, WHEEL_SUFFIX, is_file_of
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.sources.file_urls import is_file_url, path_of

_URL_SCHEMES = ("http://", "https://", "file://")
_SUFFIXES = (WHEEL_SUFFIX, *SDIST_SUFFIXES)

Listing = Callable[[str], Sequence[IndexFile]]
"""The files that the configured indexes and find-links places list for a project; raises SourceError."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that was found: ``place`` is its path or URL, ``listings`` what indexes say of it, ``paths`` its copies.

    A file on disk is read from there, although indexes list it as well.
    """

    file_name: str
    paths: tuple[Path, ...] = ()
    url: str = ""
    listings: tuple[IndexFile, ...] = ()

    @property
    def place(self) -> Path | str:
        """Where to read it."""
        return self.paths[0] if self.paths else self.url

    @property
    def is_wheel(self) -> bool:
        """True when the name ends as a wheel's does."""
        return self.file_name.endswith(WHEEL_SUFFIX)


def find_files(
    targets: Iterable[str], expectation: ReleaseExpectation, listing: Listing, *, pre: bool = False
) -> tuple[Candidate, ...]:
    """Every file that the targets name, each file name once, ordered by name; ``other-files`` are omitted.

    Raises UsageError for a target that means nothing or is a requirement of another project, NotFoundError when a
    target contains no file of a release, and SourceError when an index cannot be read.
    """
    found: dict[str, Candidate] = {}
    for target in dict.fromkeys(targets):
        for candidate in _of_target(target, expectation.project, listing, pre=pre):
            known = found.get(candidate.file_name)
            found[candidate.file_name] = _merged(known, candidate) if known else candidate
    chosen = [name for name in sorted(found) if not any(fnmatchcase(name, p) for p in expectation.other_files)]
    return tuple(found[name] for name in chosen)


def release_files(requirement: Requirement, files: Sequence[IndexFile], *, pre: bool = False) -> list[IndexFile]:
    """The files of the versions that the requirement matches, yanked ones and source archives among them.

    Without a version, those of the latest that is not a pre-release (unless ``pre``).
    """
    versions = {file.file_name: version_of(file.file_name, requirement.name) for file in files}
    known = {version for version in versions.values() if version is not None}
    allowed = set(requirement.specifier.filter(known, prereleases=True if pre else None))
    if not requirement.specifier and allowed:
        allowed = {max(allowed)}
    return [file for file in files if versions[file.file_name] in allowed]


def _of_target(text: str, project: str, listing: Listing, *, pre: bool) -> Iterator[Candidate]:
    if text.lower().startswith(_URL_SCHEMES) and not (is_file_url(text) and path_of(text).exists()):
        yield _of_link(text)
        return
    path = path_of(text) if is_file_url(text) else Path(text)
    exists = os.path.exists(path)
    if exists and path.is_dir():
        yield from _of_folder(path)
    elif exists or text.endswith(_SUFFIXES) or "/" in text:
        yield _of_file(path)
    else:
        yield from _of_requirement(text, project, listing, pre=pre)


def _of_link(url: str) -> Candidate:
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    if not name.endswith(_SUFFIXES):
        raise UsageError(
            f"{url!r} is not a link to a wheel or source archive",
            hint="use --find-links for a page of links, --index-url for an index, and a TARGET such as torch==2.11.0",
        )
    return Candidate(name, url=url)


def _of_file(path: Path) -> Candidate:
    if not path.exists():
        raise NotFoundError(f"there is no file {path}", hint="a requirement on an index has no slash or .whl")
    return Candidate(path.name, (path,))


def _of_folder(folder: Path) -> list[Candidate]:
    files = [path for path in sorted(folder.iterdir()) if path.name.endswith(_SUFFIXES) and path.is_file()]
    if not files:
        raise NotFoundError(f"the folder {folder} contains no wheel or source archive")
    return [Candidate(path.name, (path,)) for path in files]


def _of_requirement(text: str, project: str, listing: Listing, *, pre: bool) -> Iterator[Candidate]:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(
            f"{text!r} is not a folder, file, URL or requirement: {str(error).splitlines()[0]}",
            expected=f"for example dist/ or {project}==1.2.3",
        ) from None
    if canonicalize_name(requirement.name) != canonicalize_name(project):
        raise UsageError(f"{text!r} is not a file of {project}, the project of the expectation")
    if requirement.url or requirement.marker or requirement.extras:
        raise UsageError(
            f"{text!r} names more than a project and versions", expected=f"a form such as {project}==1.2.3"
        )
    files = release_files(requirement, listing(requirement.name), pre=pre)
    if not files:
        raise NotFoundError(f"the index has no file of {requirement}", hint="--pre takes pre-releases")
    for file in files:
        if is_file_of(file.file_name, project):
            local = (path_of(file.url),) if is_file_url(file.url) else ()
            yield Candidate(file.file_name, local, "" if local else file.url, (file,))


def _merged(one: Candidate, other: Candidate) -> Candidate:
    """Two places of one file name."""
    paths = tuple(dict.fromkeys((*one.paths, *other.paths)))
    return replace(one, paths=paths, url=one.url or other.url, listings=(*one.listings, *other.listings))
