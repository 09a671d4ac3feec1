"""The client through which everything remote is read: index pages, sidecars, and files by ranges."""

import re
from collections.abc import Callable, Mapping
from typing import Self
from urllib.parse import urldefrag

from wheel_checks.sources.byte_source import Cost, NamedBytes
from wheel_checks.sources.file_urls import is_file_url, path_of, read_page
from wheel_checks.sources.http.cache import ByteCache
from wheel_checks.sources.http.download import LARGEST_DOWNLOAD
from wheel_checks.sources.http.file import HttpFile
from wheel_checks.sources.http.options import SessionOptions
from wheel_checks.sources.http.pages import LARGEST_PAGE, Page, fetch_page
from wheel_checks.sources.http.retry import Deadline, RetryPolicy
from wheel_checks.sources.http.session import Session
from wheel_checks.sources.local import LocalFile

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class HttpClient:
    """Reads http, https and file URLs; one client serves many threads. Close it, or use it in a ``with`` block.

    ``cache`` stays open after :meth:`close`: it belongs to who made it. ``offline`` reads only from the cache,
    ``refresh`` asks once again for each page that the cache holds, however fresh it is.
    ``timeout`` is the seconds to wait for a connection and for bytes; ``deadline`` the seconds for everything, from now
    on. ``retries`` more attempts follow a failure that may pass, the first after about ``backoff`` seconds, each later
    one after twice as long. At most ``max_connections`` requests run at once (streams are not counted).
    ``allow_download`` fetches files whole from servers without ranges, each of at most ``max_download`` bytes and of
    the size that an index lists. ``on_bytes`` is called, from any thread, with the size of each piece that arrives.
    ``user_agent`` names the client to servers.
    """

    def __init__(
        self,
        cache: ByteCache | None = None,
        *,
        offline: bool = False,
        refresh: bool = False,
        timeout: float = 20.0,
        deadline: float | None = None,
        retries: int = 3,
        backoff: float = 0.25,
        max_connections: int = 8,
        allow_download: bool = False,
        max_download: int = LARGEST_DOWNLOAD,
        user_agent: str = "wheelproof",
        on_bytes: Callable[[int], object] | None = None,
    ) -> None:
        options = SessionOptions(
            offline, refresh, allow_download, max_download, timeout, max_connections, user_agent, on_bytes
        )
        self._session = Session(options, cache, Deadline(deadline), RetryPolicy(retries, backoff))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def cost(self) -> Cost:
        """What all pages and files of this client have cost; local files are not counted."""
        return self._session.meter.cost

    @property
    def cache(self) -> ByteCache | None:
        """What holds ranges, pages and facts; None for a client without one."""
        return self._session.cache

    @property
    def offline(self) -> bool:
        """Whether nothing is asked of the network."""
        return self._session.options.offline

    @property
    def refresh(self) -> bool:
        """Whether what was read in the last minutes is to be requested once more."""
        return self._session.options.refresh

    def time_left(self, at_most: float) -> float:
        """Seconds until the deadline, ``at_most`` when that is later. Raises DeadlineError when it has passed.

        For what else reads the network in the same run, such as uv.
        """
        return self._session.deadline.remaining(at_most)

    def get_page(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        largest: int = LARGEST_PAGE,
        *,
        reuse: float = 0.0,
        stated: Mapping[str, str] | None = None,
    ) -> Page:
        """The document at ``url``, at most ``largest`` bytes, unpacked; for a file URL of a folder its ``index.html``.

        A stored one is used while it is fresh, or offline; else the server is asked whether it changed. Where the
        server does not say how long, it is fresh for ``reuse`` seconds. One that has the ``stated`` hash (hex digests
        by algorithm) does not change.
        Raises NotFoundError, AuthenticationError, OfflineError, DeadlineError, SourceError.
        """
        url = urldefrag(url).url
        if is_file_url(url):
            return read_page(url, self._session.meter, largest)
        return fetch_page(self._session, url, headers or {}, largest, reuse, stated or {})

    def open(self, url: str, *, expected_hash: str = "", size: int | None = None) -> NamedBytes:
        """The file at ``url``; nothing is read yet from a remote one.

        ``expected_hash`` ("sha256=..." or its digest alone, or else the URL's fragment) and ``size`` in bytes are what
        an index says; with a hash, what the cache holds is used unasked.
        Raises SourceError for a URL that cannot be read; reading raises
        NotFoundError, AuthenticationError, OfflineError, RangesUnsupportedError, ChangedFileError, DeadlineError.
        """
        url, fragment = urldefrag(url)
        if is_file_url(url):
            return LocalFile(path_of(url))
        named = expected_hash or (fragment if fragment.startswith("sha256=") else "")
        return HttpFile(self._session, url, f"sha256={named}" if _SHA256.fullmatch(named) else named, size)

    def close(self) -> None:
        """Close the connections; the cache stays open."""
        self._session.close()
