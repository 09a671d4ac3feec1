"""A whole remote file in a temporary file, for servers without range requests."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from typing import IO, TYPE_CHECKING

from wheel_checks.errors import ChangedFileError, SourceError
from wheel_checks.formats.secrets import redact
from wheel_checks.phrases import human_bytes
from wheel_checks.sources.http.ranges import content_length
from wheel_checks.sources.http.session import Session
from wheel_checks.sources.local import LocalFile
from wheel_checks.sources.meter import Meter

if TYPE_CHECKING:
    from wheel_checks.sources.http.transport import Response

LARGEST_DOWNLOAD = 6_000_000_000
"""The size limit of one download without ``--max-download``, in bytes. The largest torch wheels have 4 to 5 GB."""

_SPARE = 256 << 20  # bytes that stay free in the folder of temporary files: other programs write there
_LOOK_EVERY = 64 << 20  # bytes between two looks at the free space
_MORE = "--max-download SIZE sets another limit"


def download(session: Session, url: str, meter: Meter, expected_hash: str = "", size: int | None = None) -> LocalFile:
    """The file at ``url``, whole, in a temporary file without a name: it is gone when the LocalFile is closed, or the
    process ends.

    ``expected_hash`` ("sha256=...") and ``size`` are the index's values. Raises ChangedFileError for another hash or
    size, SourceError for a file that is larger than the session allows, or than the free space.
    """
    with tempfile.TemporaryFile(prefix="wheelproof-") as file:
        spool = _Spool(file, redact(url), size, session.options.max_download)
        spool.check(size)
        session.fetch(url, {"Accept-Encoding": "identity"}, meter, lambda r: spool.fill(r, expected_hash))
        return LocalFile(redact(url), os.dup(file.fileno()))


class _Spool:
    """A temporary file that takes one download within its bounds."""

    def __init__(self, file: IO[bytes], where: str, listed: int | None, largest: int) -> None:
        self._file = file
        self._where = where
        self._listed = listed
        self._largest = largest

    def check(self, size: int | None) -> None:
        """Raise SourceError when a file of this size, if it is known, is too large for the limit or the disk."""
        if size is not None and size > self._largest:
            what = f"{self._where} has {human_bytes(size)}"
            raise SourceError(what, expected=f"at most {human_bytes(self._largest)} to download", hint=_MORE)
        self._check_space(size or 0)

    def fill(self, response: Response, expected_hash: str) -> None:
        """Write the body, from the start. Raises as :func:`download`."""
        if response.status != 200:
            raise SourceError(f"{self._where} answers HTTP {response.status}", expected="200 with the whole file")
        length = content_length(response.headers)
        if length >= 0:
            self._check_listed(length)
            self.check(length)
        algorithm, _, digest = expected_hash.partition("=")
        hasher = hashlib.new(algorithm, usedforsecurity=False) if algorithm in hashlib.algorithms_guaranteed else None
        self._file.seek(0)
        self._file.truncate()
        received = looked = 0
        for chunk in response.chunks():
            received += len(chunk)
            self._check_received(received)
            if received - looked >= _LOOK_EVERY:
                self._check_space(len(chunk))
                looked = received
            self._write(chunk)
            if hasher is not None:
                hasher.update(chunk)
        self._check_listed(received)
        if hasher is not None and digest and not algorithm.startswith("shake") and hasher.hexdigest() != digest.lower():
            raise ChangedFileError(f"{self._where} does not match the hash on the index", expected=expected_hash)

    def _check_listed(self, size: int) -> None:
        if self._listed is not None and size != self._listed:
            raise ChangedFileError(f"{self._where} has {size} bytes", expected=f"{self._listed}, as listed")

    def _check_received(self, received: int) -> None:
        if self._listed is not None and received > self._listed:
            what = f"{self._where} sends more than the {self._listed} bytes that the index lists"
            raise ChangedFileError(what, hint="the file was replaced, or the server is faulty")
        if received > self._largest:
            what = f"{self._where} sends more than {human_bytes(self._largest)} without stating the size"
            raise SourceError(what, expected=f"at most {human_bytes(self._largest)} to download", hint=_MORE)

    def _check_space(self, needed: int) -> None:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if needed + _SPARE > free:
            what = f"{self._where} cannot be stored in {folder}, which has {human_bytes(free)} free"
            expected = f"{human_bytes(needed)} for the file, plus {human_bytes(_SPARE)}"
            raise SourceError(what, expected=expected, hint="set $TMPDIR to a folder with enough space")

    def _write(self, chunk: bytes) -> None:
        try:
            self._file.write(chunk)
            self._file.flush()
        except OSError as error:
            what = f"{self._where} cannot be stored in {tempfile.gettempdir()}: {error.strerror}"
            raise SourceError(what, hint="set $TMPDIR to a folder with enough space") from error
