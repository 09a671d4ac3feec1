"""Finds the attestations of a file where its index says, or by the file on disk, and has them judged (PEP 740)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.provenance.attestations import (
    LARGEST,
    Attested,
    FileProvenance,
    require_library,
    verify_provenance,
)
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.secrets import redact
from wheel_checks.model import Subject, Unavailable
from wheel_checks.phrases import joined
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.local import LocalFile
from wheel_checks.sources.regular_file import read_whole
from wheelproof.reporting import Selection

BESIDE = (".publish.attestation", ".slsa.attestation")
"""What follows the name of a file in the names of its attestations, as pypi-attestations and twine write them."""

WITH_PUBLISHER = ".provenance"
"""The same for the object that an index serves, which contains all of them."""

NOT_WHOLE = Unavailable("not all of its bytes were read")

_ACCEPT = {"Accept": "application/vnd.pypi.integrity.v1+json, application/json;q=0.5"}


@dataclass(frozen=True, slots=True)
class AttestableFile:
    """A file that was judged. ``place`` is its path or URL, ``listings`` what indexes say of it.

    ``sha256`` is that of all its bytes, or why not all were read.
    """

    name: str
    place: Path | str
    listings: tuple[IndexFile, ...]
    sha256: str | Unavailable


@dataclass(frozen=True, slots=True)
class Attesting:
    """Judges the attestations of files; ``is_required``: a file without any is an error. Raises MissingExtraError."""

    client: HttpClient
    selection: Selection
    is_required: bool = False

    def __post_init__(self) -> None:
        require_library()

    def judge(self, subject: Subject, file: AttestableFile) -> Subject:
        """The subject with the results about its attestations, and who made those that hold."""
        place, documents = self._documents(file)
        found = documents if isinstance(documents, Unavailable) else _verified(documents, file)
        sha256 = "" if isinstance(file.sha256, Unavailable) else file.sha256
        facts = FileProvenance(file.name, sha256, place, found, self.is_required)
        results = run_rules(self.selection.rules("file-provenance"), facts, Expectations())
        attested = () if isinstance(found, Unavailable) else found
        holding = list(dict.fromkeys(one.who for one in attested if not one.problem))
        by = f", attested by {joined(holding)}" if holding else ""
        return replace(
            subject,
            headline=subject.headline + by,
            facts={**subject.facts, "provenance": [_told(one) for one in attested]},
            results=(*subject.results, *results),
        )

    def sha256_of(self, place: Path | str, size: int | None = None) -> str | Unavailable:
        """The sha256 of a file, which is read whole; why it cannot be read."""
        source = LocalFile(place) if isinstance(place, Path) else self.client.open(place, size=size)
        digest = hashlib.sha256()
        try:
            length, _ = source.read_tail(0)
            for piece in source.stream(0, length):
                digest.update(piece)
        except SourceError as error:
            return Unavailable(str(error))
        finally:
            source.close()
        return digest.hexdigest()

    def _documents(self, file: AttestableFile) -> tuple[str, list[bytes] | Unavailable]:
        """Where the attestations are from, and what is there: by a file on disk, else where its indexes say."""
        try:
            if isinstance(file.place, Path) and (attestations := _beside(file.place)):
                return str(file.place), attestations
            urls = list(dict.fromkeys(listing.provenance for listing in file.listings if listing.provenance))
            if urls and self.client.offline:
                return urls[0], Unavailable("attestations are not fetched with --offline", "run it without --offline")
            pages = [self.client.get_page(url, _ACCEPT, LARGEST).body for url in urls]
        except SourceError as error:
            return "", Unavailable(f"its attestations cannot be read: {error}")
        if not pages and not file.listings and not isinstance(file.place, Path):
            return "", Unavailable("no index was queried for it", "give the project and version, such as demo==1.0")
        return ", ".join(map(redact, urls)), pages


def _beside(path: Path) -> list[bytes]:
    """The attestations that lie by a file. Raises SourceError."""
    return _read(path, WITH_PUBLISHER) or [found for ending in BESIDE for found in _read(path, ending)]


def _read(path: Path, ending: str) -> list[bytes]:
    place = path.with_name(path.name + ending)
    try:
        return [read_whole(place, LARGEST)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SourceError(f"{place} cannot be read: {error.strerror}") from error


def _verified(documents: Sequence[bytes], file: AttestableFile) -> tuple[Attested, ...] | Unavailable:
    if documents and isinstance(file.sha256, Unavailable):
        return file.sha256
    found: list[Attested] = []
    for document in documents:
        try:
            found += verify_provenance(document, file.name, str(file.sha256))
        except FormatError as error:
            found.append(Attested("an unknown publisher", "", problem=str(error)))
    return tuple(found)


def _told(attested: Attested) -> dict[str, object]:
    return {
        "publisher": attested.publisher,
        "source": attested.source,
        "workflow": attested.workflow,
        "predicate": attested.predicate,
        "holds": not attested.problem,
    }
