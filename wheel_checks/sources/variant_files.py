"""The documents ``{name}-{version}-variants.json`` of an index, each fetched once per run."""

import hashlib
from threading import Lock

from wheel_checks.data import load
from wheel_checks.errors import FormatError, SourceError, WheelproofError
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.wheel.variant_metadata import VariantMetadata, parse_variant_metadata
from wheel_checks.sources.client import HttpClient


class VariantFiles:
    """Reads documents whole: they are mutable (PEP 825), so that the server is asked whether one changed.

    Wheels of one release are read at once and share a document: any thread may ask.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._lock = Lock()
        self._known: dict[str, tuple[VariantMetadata, int] | WheelproofError] = {}

    def read(self, file: IndexFile) -> tuple[VariantMetadata, int]:
        """What the document says, and its size in bytes.

        Raises FormatError for what is not a variant metadata or does not match the hash of the index, and SourceError.
        """
        with self._lock:
            if file.url not in self._known:
                try:
                    self._known[file.url] = self._fetch(file)
                except (FormatError, SourceError) as error:
                    self._known[file.url] = error
            known = self._known[file.url]
        if isinstance(known, WheelproofError):
            raise known
        return known

    def _fetch(self, file: IndexFile) -> tuple[VariantMetadata, int]:
        largest = load("variants")["bounds"]["bytes"]
        if file.size is not None and file.size > largest:
            raise FormatError(f"{file.file_name} has {file.size:,} bytes", expected=f"at most {largest:,}")
        body = self._client.get_page(file.url, largest=largest).body
        digest, wanted = hashlib.sha256(body).hexdigest(), file.hashes.get("sha256", "")
        if wanted and digest != wanted:
            raise FormatError(
                f"{file.file_name} has the SHA-256 {digest}",
                expected=f"{wanted}, as stated by the index",
                hint="the index page must be regenerated when the document changes",
            )
        return parse_variant_metadata(body, file.file_name), len(body)
