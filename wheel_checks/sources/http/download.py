"""A whole remote file in a temporary file, for servers that cannot send ranges."""

from __future__ import annotations

import hashlib
import tempfile
from typing import IO, TYPE_CHECKING

from wheel_checks.errors import ChangedFileError, SourceError
from wheel_checks.sources.http.credentials import redact
from wheel_checks.sources.http.session import Session
from wheel_checks.sources.local import LocalFile
from wheel_checks.sources.meter import Meter

if TYPE_CHECKING:
    from wheel_checks.sources.http.transport import Response

LARGEST_DOWNLOAD = 16 << 30
"""Bytes, when neither the index nor the server says how long the file is."""


def download(session: Session, url: str, meter: Meter, expected_hash: str = "", size: int | None = None) -> LocalFile:
    """The file at ``url``, whole, in a temporary file that is gone when the LocalFile is closed.

    ``expected_hash`` ("sha256=...") and ``size`` are what an index says. Raises ChangedFileError for another hash.
    """
    largest = LARGEST_DOWNLOAD if size is None else size
    # the name is removed with the block; the open file lives on in LocalFile
    with tempfile.NamedTemporaryFile(prefix="wheelproof-") as file:
        session.fetch(url, {"Accept-Encoding": "identity"}, meter, lambda r: _write(r, file, largest, expected_hash))
        return LocalFile(file.name)


def _write(response: Response, file: IO[bytes], largest: int, expected_hash: str) -> None:
    where = redact(response.url)
    if response.status != 200:
        raise SourceError(f"{where} answers HTTP {response.status}", expected="200 with the whole file")
    algorithm, _, digest = expected_hash.partition("=")
    hasher = hashlib.new(algorithm, usedforsecurity=False) if algorithm in hashlib.algorithms_guaranteed else None
    received = 0
    file.seek(0)
    file.truncate()
    for chunk in response.chunks():
        received += len(chunk)
        if received > largest:
            raise SourceError(f"{where} is longer than it should be", expected=f"at most {largest} bytes")
        try:
            file.write(chunk)
            file.flush()
        except OSError as error:
            what = f"{where} cannot be stored in {tempfile.gettempdir()}: {error.strerror}"
            raise SourceError(what, hint="name a folder with room in $TMPDIR") from error
        if hasher is not None:
            hasher.update(chunk)
    if hasher is not None and digest and not algorithm.startswith("shake") and hasher.hexdigest() != digest.lower():
        raise ChangedFileError(f"{where} does not have the hash that the index gives", expected=expected_hash)
