"""Shared by the pages and files of one run: connections, deadline, retries, credentials, cache, the count of costs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from wheel_checks.errors import OfflineError, SourceError
from wheel_checks.formats.secrets import redact
from wheel_checks.sources.http.cache import ByteCache
from wheel_checks.sources.http.credentials import Credentials, origin_of, split_login
from wheel_checks.sources.http.options import SessionOptions
from wheel_checks.sources.http.retry import Deadline, RetryPolicy
from wheel_checks.sources.meter import Meter

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from wheel_checks.sources.http.transport import Response, Transport

S = TypeVar("S")
T = TypeVar("T")


class Session:
    """Safe for many threads. Nothing of the network is imported before the first request."""

    def __init__(
        self, options: SessionOptions, cache: ByteCache | None, deadline: Deadline, retry: RetryPolicy
    ) -> None:
        self.options = options
        self.cache = cache
        self.deadline = deadline
        self.retry = retry
        self.meter = Meter()
        self._credentials = Credentials()
        self._slots = threading.BoundedSemaphore(options.max_connections)
        self._lock = threading.Lock()
        self._transport: Transport | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._requested: set[tuple[str, str]] = set()

    def adopt(self, url: str) -> str:
        """``url`` without its credentials, which are stored for its origin. Raises SourceError if it is not http."""
        try:
            clean, login = split_login(url)
            scheme, host, _ = origin_of(clean)
        except ValueError as error:
            raise SourceError(f"{redact(url)!r} is not a valid URL") from error
        if scheme not in ("http", "https") or not host:
            raise SourceError(f"{redact(url)!r} cannot be read", expected="an https, http or file URL")
        if login is not None:
            self._credentials.remember(clean, login)
        return clean

    def has_login(self, url: str) -> bool:
        """Whether a login is known for ``url``, without asking a keyring."""
        return self._credentials.find(url) is not None

    def must_ask(self, url: str, accept: str) -> bool:
        """True when a cached page is to be requested again: once in a run that refreshes."""
        with self._lock:
            first = (url, accept) not in self._requested
            self._requested.add((url, accept))
        return first and self.options.refresh

    def fetch(
        self,
        url: str,
        headers: Mapping[str, str],
        meter: Meter,
        read: Callable[[Response], T],
        accept: Set[int] = frozenset(),
    ) -> T:
        """What ``read`` makes of the answer to a GET, tried again as the retry policy allows.

        Takes one of the ``max_connections`` places. ``accept`` names statuses next to 2xx that ``read`` understands.
        """

        def attempt() -> T:
            if not self._slots.acquire(timeout=self.deadline.remaining(threading.TIMEOUT_MAX)):
                raise self.deadline.error()
            try:
                with self.exchange(url, headers, meter, accept) as response:
                    return read(response)
            finally:
                self._slots.release()

        return self.retry.run(attempt, self.deadline)

    def exchange(
        self, url: str, headers: Mapping[str, str], meter: Meter, accept: Set[int] = frozenset()
    ) -> AbstractContextManager[Response]:
        """One GET without a second try and outside the places; see :meth:`Transport.exchange`. Raises OfflineError."""
        if self.options.offline:
            raise OfflineError(f"{redact(url)} is needed, but not in the cache", hint="run once without --offline")
        return self._connected().exchange(url, headers, meter, accept)

    def in_parallel(self, function: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """``function`` of every item, in order. The first exception ends it; pending items are not started."""
        if len(items) <= 1:
            return [function(item) for item in items]
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(self.options.max_connections, thread_name_prefix="ranges")
            futures = [self._workers.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """Close the connections. The cache stays open: it belongs to its creator."""
        with self._lock:
            workers, self._workers = self._workers, None
            transport, self._transport = self._transport, None
        if workers is not None:
            workers.shutdown(cancel_futures=True)
        if transport is not None:
            transport.close()

    def _connected(self) -> Transport:
        with self._lock:
            if self._transport is None:
                from wheel_checks.sources.http.transport import Transport  # imports urllib3 and ssl

                self._transport = Transport(self.options, self.deadline, self._credentials)
            return self._transport
