"""A remote file read by HTTP ranges (RFC 9110, 14)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wheel_checks.errors import ChangedFileError, RangesUnsupportedError, SourceError
from wheel_checks.formats.secrets import redact
from wheel_checks.sources.byte_source import Cost
from wheel_checks.sources.http.cache import FileIdentity, name_of
from wheel_checks.sources.http.download import download
from wheel_checks.sources.http.ranges import (
    content_length,
    cut_out,
    identity_of,
    is_encoded,
    join_ranges,
    parse_content_range,
    range_headers,
)
from wheel_checks.sources.http.retry import TransientError
from wheel_checks.sources.http.session import Session
from wheel_checks.sources.local import LocalFile, check_range
from wheel_checks.sources.meter import Meter

if TYPE_CHECKING:
    from wheel_checks.sources.http.transport import Response

_TAIL = 65536  # bytes requested when a file is read before its size is known
_STREAM_PROGRESS = 1 << 20  # bytes after which a broken stream has a new number of retries
# how servers without bytes=-N, but with bytes=a-b, refuse it
_NO_SUFFIX = frozenset({400, 405, 416, 501})


class HttpFile:
    """A :class:`ByteSource` over HTTP ranges; safe for many threads.

    All answers must be about one state of the file: ChangedFileError when the length, the ETag or Last-Modified differ.
    A server without ranges raises RangesUnsupportedError, or with ``allow_download`` the file is fetched whole into a
    temporary file. Made by :meth:`wheel_checks.sources.client.HttpClient.open`.
    """

    remote = True

    def __init__(self, session: Session, url: str, expected_hash: str = "", size: int | None = None) -> None:
        self._session = session
        self._url = session.adopt(url)
        self._hash = expected_hash
        self._listed_size = size
        self._meter = Meter(session.meter)
        self._identity: FileIdentity | None = None
        self._tail = (0, b"")
        self._local: LocalFile | None = None
        self._lock = threading.Lock()

    @property
    def location(self) -> str:
        """The URL without credentials."""
        return redact(self._url)

    @property
    def cost(self) -> Cost:
        """Bytes of bodies and requests of this file so far, and bytes that the cache spared."""
        return self._meter.cost

    @property
    def etag(self) -> str:
        """The strong validator of the state that is read, or was read by an earlier run; "" when that is unknown."""
        cache = self._session.cache
        known = self._identity or (cache.identity(self._url, self._hash) if cache is not None and self._hash else None)
        return known.strong_etag if known else ""

    def read_tail(self, length: int) -> tuple[int, bytes]:
        """``(size of the file, its last min(length, size) bytes)``; one request if the server has suffix ranges."""
        size = self._identify(length).size
        length = min(length, size)
        return size, self.read(size - length, length)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes at ``offset``; raises SourceError when the file ends before."""
        return self.read_many([(offset, length)])[0]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each ``(offset, length)``, in order: near ranges in one request, the requests in parallel."""
        identity = self._identify(_TAIL)
        for offset, length in ranges:
            check_range(self.location, offset, length, identity.size)
        if self._local is not None:
            return self._local.read_many(ranges)
        found = {wanted: self._held(identity, *wanted) for wanted in ranges}
        joined = join_ranges([wanted for wanted, data in found.items() if data is None])
        fetched = self._session.in_parallel(lambda wanted: self._fetch(identity, *wanted), joined)
        transferred = list(zip(joined, fetched, strict=True))
        return [cut_out(transferred, *wanted) if found[wanted] is None else found[wanted] or b"" for wanted in ranges]

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """The bytes of one long range in chunks of at most 1 MiB; a broken connection is resumed at the same offset.

        It is not one of the client's ``max_connections``: its reader may read other ranges meanwhile.
        """
        identity = self._identify(_TAIL)
        check_range(self.location, offset, length, identity.size)
        if self._local is not None:
            return self._local.stream(offset, length)
        return self._stream(identity, offset, offset + length)

    def fingerprint(self) -> str:
        """The URL, the listed size, and the hash or the strong validator.

        The hash is the index's and was not verified: at another URL other bytes may have the same stated hash.
        """
        named = f"{name_of(self._url)}\n{'' if self._listed_size is None else self._listed_size}"
        if self._hash:
            return f"{named}\n{self._hash}"
        identity = self._identify(_TAIL)
        return f"{named}\n{identity.size}\n{identity.strong_etag}" if identity.strong_etag else ""

    def close(self) -> None:
        """Remove the temporary file if there is one. The connections belong to the client."""
        if self._local is not None:
            self._local.close()

    def _identify(self, tail: int) -> FileIdentity:
        """The state of the file, requested with its last ``tail`` bytes when it is unknown yet."""
        with self._lock:
            if self._identity is None:
                cache = self._session.cache
                known = cache.identity(self._url, self._hash) if cache is not None else None
                if known is not None and (self._hash or self._session.options.offline):
                    self._identity = known
                else:
                    self._identity = self._ask(max(tail, 1), known)
                    if cache is not None and self._is_cacheable(self._identity):
                        cache.remember(self._url, self._hash, self._identity)
                if self._listed_size not in (None, self._identity.size):
                    size, self._identity = self._identity.size, None
                    raise ChangedFileError(
                        f"{self.location} has {size} bytes", expected=f"{self._listed_size}, as listed"
                    )
            return self._identity

    def _ask(self, tail: int, known: FileIdentity | None) -> FileIdentity:
        """Learn the state of the file with its tail; ``known`` is the state of the cached pieces."""
        headers = {"Range": f"bytes=-{tail}", "Accept-Encoding": "identity"}
        if known is not None and known.etag:
            headers["If-None-Match"] = known.etag
        elif known is not None and known.last_modified:
            headers["If-Modified-Since"] = known.last_modified

        def read(response: Response) -> FileIdentity | None:
            if response.status == 304:
                return known
            if response.status == 200 and 0 <= content_length(response.headers) <= tail:
                body = response.exactly(content_length(response.headers))  # the whole file is shorter than the tail
                return self._keep_tail(identity_of(response.headers, len(body)), 0, body)
            if response.status != 206:
                return None
            start, end, size = self._content_range(response)
            if size is None or (start, end) != (max(0, size - tail), size - 1):
                raise self._wrong_range(response, f"the last {tail} bytes of the file")
            return self._keep_tail(identity_of(response.headers, size), start, response.exactly(size - start))

        identity = self._session.fetch(self._url, headers, self._meter, read, _NO_SUFFIX | {304})
        return identity if identity is not None else self._ask_size()

    def _ask_size(self) -> FileIdentity:
        """Learn the state of the file from its first byte, for servers that refuse suffix ranges."""

        def read(response: Response) -> FileIdentity | None:
            if response.status == 416:  # no byte is available: the file is empty
                return identity_of(response.headers, 0)
            if response.status != 206:
                return None
            start, end, size = self._content_range(response)
            if size is None or (start, end) != (0, 0):
                raise self._wrong_range(response, "the first byte of the file")
            response.exactly(1)
            return identity_of(response.headers, size)

        headers = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}
        identity = self._session.fetch(self._url, headers, self._meter, read, {416})
        if identity is not None:
            return identity
        if not self._session.options.allow_download:
            raise self._no_ranges()
        self._local = download(self._session, self._url, self._meter, self._hash, self._listed_size)
        return FileIdentity(self._local.read_tail(0)[0])

    def _keep_tail(self, identity: FileIdentity, start: int, data: bytes) -> FileIdentity:
        self._tail = (start, data)
        self._store(identity, start, data)
        return identity

    def _held(self, identity: FileIdentity, offset: int, length: int) -> bytes | None:
        """The bytes if no transfer is needed for them."""
        start, data = self._tail
        if start <= offset and offset + length <= start + len(data):
            return data[offset - start : offset - start + length]
        if length == 0:
            return b""
        if self._session.cache is None or not self._is_cacheable(identity):
            return None
        cached = self._session.cache.read(self._url, self._hash, identity, offset, length)
        if cached is not None:
            self._meter.add(bytes_cached=length)
        return cached

    def _fetch(self, identity: FileIdentity, offset: int, length: int) -> bytes:
        def read(response: Response) -> bytes:
            self._check_partial(response, identity, offset, length)
            return response.exactly(length)

        headers = range_headers(identity, offset, length)
        data = self._session.fetch(self._url, headers, self._meter, read, {412, 416})
        self._store(identity, offset, data)
        return data

    def _stream(self, identity: FileIdentity, position: int, end: int) -> Iterator[bytes]:
        failures, progress = 0, 0
        while position < end:
            try:
                for chunk in self._stream_once(identity, position, end):
                    position, progress = position + len(chunk), progress + len(chunk)
                    yield chunk
            except TransientError as failure:
                if progress >= _STREAM_PROGRESS:
                    failures, progress = 0, 0
                self._session.retry.pause(failure, failures, self._session.deadline)
                failures += 1

    def _stream_once(self, identity: FileIdentity, position: int, end: int) -> Iterator[bytes]:
        """The bytes of the range from one request. Raises TransientError if they are incomplete."""
        headers = range_headers(identity, position, end - position)
        with self._session.exchange(self._url, headers, self._meter, {412, 416}) as response:
            self._check_partial(response, identity, position, end - position)
            for chunk in response.chunks():
                wanted = chunk[: end - position]
                position += len(wanted)
                yield wanted
                if position == end:
                    return
        raise TransientError(SourceError(f"{self.location} ended at byte {position}", expected=f"{end} bytes"))

    def _store(self, identity: FileIdentity, offset: int, data: bytes) -> None:
        if self._session.cache is not None and self._is_cacheable(identity):
            self._session.cache.store(self._url, self._hash, identity, offset, data)

    def _is_cacheable(self, identity: FileIdentity) -> bool:
        """Without a hash and without a validator a changed file of the same length would go unnoticed."""
        return bool(self._hash or identity.etag or identity.last_modified)

    def _check_partial(self, response: Response, identity: FileIdentity, offset: int, length: int) -> None:
        """Raise unless ``response`` is exactly this range of this state of the file."""
        if response.status == 206:
            start, end, size = self._content_range(response)
            if not identity.matches(identity_of(response.headers, identity.size if size is None else size)):
                raise self._changed()
            if (start, end) != (offset, offset + length - 1):
                raise self._wrong_range(response, f"bytes {offset}-{offset + length - 1}/{identity.size}")
        elif response.status == 200:
            size = content_length(response.headers)
            if not identity.matches(identity_of(response.headers, identity.size if size < 0 else size)):
                raise self._changed()
            raise self._no_ranges()
        else:  # 412, 416: the former file is gone
            raise self._changed()

    def _content_range(self, response: Response) -> tuple[int, int, int | None]:
        """First and last byte and the size (None for "*") of a 206 answer."""
        if is_encoded(response.headers):
            raise SourceError(f"{self.location} is sent compressed", expected="ranges of the file as it is")
        found = parse_content_range(response.headers.get("Content-Range", ""))
        if found is None:
            raise self._wrong_range(response, "the requested range")
        return found

    def _wrong_range(self, response: Response, expected: str) -> SourceError:
        sent = response.headers.get("Content-Range", "")
        what = f"{self.location} answered a range request with the wrong Content-Range {sent[:100]!r}"
        return SourceError(what, expected=expected, hint="a proxy or the server is faulty")

    def _changed(self) -> ChangedFileError:
        return ChangedFileError(f"{self.location} changed while it was read", hint="run again")

    def _no_ranges(self) -> RangesUnsupportedError:
        return RangesUnsupportedError(
            f"{self.location} cannot be read in ranges: the server sends the whole file",
            hint="add --allow-download to download it to a temporary file",
        )
