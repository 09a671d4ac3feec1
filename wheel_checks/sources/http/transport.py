"""One HTTP exchange after another over kept-alive connections: redirects, credentials, proxies, plain errors.

Import this module only when a network URL is opened: urllib3, ssl and truststore come with it.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Set
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import truststore
import urllib3

from wheel_checks.errors import SourceError
from wheel_checks.formats.index.remote_links import why_refused
from wheel_checks.formats.secrets import redact
from wheel_checks.sources.http.credentials import Credentials, Login, origin_of, split_login
from wheel_checks.sources.http.failures import WIRE_ERRORS, exchange_error, status_error
from wheel_checks.sources.http.options import SessionOptions
from wheel_checks.sources.http.pace import paced_pools
from wheel_checks.sources.http.retry import Deadline, TransientError
from wheel_checks.sources.meter import Meter

_CHUNK = 1 << 20  # bytes requested from the socket at once
_DRAINED = 1 << 16  # bytes of an unwanted body that are read so that the connection can be kept
_MOST_REDIRECTS = 10
_CHAIN = 3.0  # timeouts in which all redirects of one request must be answered
_KEYRING_SECONDS = 10.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Response:
    """The head of an answer, and its body, which can be read once."""

    def __init__(self, raw: urllib3.BaseHTTPResponse, url: str, transport: Transport, meter: Meter) -> None:
        self._raw = raw
        self._transport = transport
        self._meter = meter
        self.status: int = raw.status
        self.headers: Mapping[str, str] = raw.headers
        self.url = url

    def chunks(self) -> Iterator[bytes]:
        """The body in its encoding, as it comes. Raises TransientError if it stalls or breaks off, DeadlineError."""
        while True:
            try:
                chunk = self._raw.read1(_CHUNK, decode_content=False)
            except WIRE_ERRORS as error:
                self._transport.deadline.check()
                raise exchange_error(error, self.url) from error
            if not chunk:
                return
            self._transport.count(self._meter, len(chunk))
            yield chunk
            self._transport.deadline.check()

    def exactly(self, length: int) -> bytes:
        """The first ``length`` bytes of the body. Raises TransientError when it ends before."""
        body = bytearray()
        for chunk in self.chunks():
            body += chunk[: length - len(body)]
            if len(body) == length:
                return bytes(body)
        if len(body) == length:
            return bytes(body)
        short = f"{redact(self.url)} sent {len(body)} bytes of a range and then nothing"
        raise TransientError(SourceError(short, expected=f"{length} bytes"))

    def close(self) -> None:
        """Keep the connection when little or nothing of the body is left, else drop it."""
        left = self._raw.length_remaining
        with contextlib.suppress(*WIRE_ERRORS):
            if not self._raw.closed and left is not None and left <= _DRAINED:
                self._raw.read1(_DRAINED, decode_content=False)
        if self._raw.closed:
            self._raw.release_conn()
        else:
            self._raw.close()


class Transport:
    """Sends requests; safe for many threads.

    The timeout of ``options`` limits connecting, each whole head, and the wait for some bytes of a body (see
    :mod:`wheel_checks.sources.http.pace`). Three times as long limits a chain of redirects, ``deadline`` everything.
    """

    def __init__(self, options: SessionOptions, deadline: Deadline, credentials: Credentials) -> None:
        self.options = options
        self.deadline = deadline
        self._credentials = credentials
        self._pools: dict[str, urllib3.PoolManager] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def exchange(
        self, url: str, headers: Mapping[str, str], meter: Meter, accept: Set[int] = frozenset()
    ) -> Iterator[Response]:
        """GET ``url``, which contains no credentials, following redirects: an answer with a 2xx or an accepted status.

        Raises TransientError for failures that may pass, SourceError and its subclasses for others.
        """
        response = self._follow(url, headers, meter)
        try:
            if not 200 <= response.status < 300 and response.status not in accept:
                raise status_error(response.status, response.headers, response.url)
            yield response
        finally:
            response.close()

    def count(self, meter: Meter, received: int) -> None:
        """Count bytes of a body, and call the progress hook."""
        meter.add(bytes_read=received)
        if self.options.on_bytes is not None:
            self.options.on_bytes(received)

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.clear()

    def _follow(self, url: str, headers: Mapping[str, str], meter: Meter) -> Response:
        origin = origin_of(url)
        login = self._credentials.find(url)
        here = url
        end = time.monotonic() + _CHAIN * self.options.timeout
        for _ in range(_MOST_REDIRECTS + 1):
            at_home = origin_of(here) == origin  # credentials go to the host that they are for and to no other
            response = self._send(here, headers, login if at_home else None, meter, end)
            if response.status == 401 and at_home:
                known = self._credentials.ask_keyring(url, self.deadline.remaining(_KEYRING_SECONDS))
                if known is not None and known != login:
                    response.close()
                    login = known
                    response = self._send(here, headers, login, meter, end)
            if response.status not in _REDIRECTS:
                return response
            response.close()
            here = _redirected(here, response.headers.get("Location", ""))
        raise SourceError(f"{redact(url)} redirects more than {_MOST_REDIRECTS} times")

    def _send(
        self, url: str, headers: Mapping[str, str], login: Login | None, meter: Meter, chain_end: float
    ) -> Response:
        sent = {"User-Agent": self.options.user_agent, **headers}
        if login is not None:
            sent["Authorization"] = login.header
        chain = chain_end - time.monotonic()
        if chain <= 0:
            raise SourceError(f"{redact(url)} was not reached: its redirects took too long", hint="try again later")
        timeout = self.deadline.remaining(min(self.options.timeout, chain))
        pool = self._pool(url)
        meter.add(requests=1)
        try:
            raw = pool.request(
                "GET", url, headers=sent, timeout=timeout, retries=False, redirect=False, preload_content=False
            )
        except WIRE_ERRORS as error:
            self.deadline.check()
            raise exchange_error(error, url) from error
        return Response(raw, url, self, meter)

    def _pool(self, url: str) -> urllib3.PoolManager:
        proxy = _proxy_for(url)
        with self._lock:
            if proxy not in self._pools:
                pool = _make_pool(proxy, self.options.max_connections)
                pool.pool_classes_by_scheme = paced_pools(self.options.timeout, self.deadline)
                self._pools[proxy] = pool
            return self._pools[proxy]


def _redirected(url: str, location: str) -> str:
    """The target of a redirect, without any credentials in it."""
    try:
        target = split_login(urljoin(url, location))[0]
        scheme = origin_of(target)[0]
    except ValueError:
        target, scheme = "", ""
    if not location or scheme not in ("http", "https"):
        raise SourceError(f"{redact(url)} redirects to {redact(location)!r}", expected="an https or http URL")
    if scheme == "http" and urlsplit(url).scheme.lower() == "https":
        raise SourceError(f"{redact(url)} redirects to {redact(target)}, which is not encrypted", expected="https")
    if why := why_refused(target, url):
        raise SourceError(f"{redact(url)} redirects to {redact(target)}, which {why}", expected="another server")
    return target


def _proxy_for(url: str) -> str:
    """The proxy of the environment ($https_proxy, $no_proxy, ...) for this URL, or ""."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    return "" if not proxy or proxy_bypass(parts.hostname or "") else proxy


def _make_pool(proxy: str, size: int) -> urllib3.PoolManager:
    context = _tls_context()
    if not proxy:
        return urllib3.PoolManager(maxsize=size, ssl_context=context)
    try:
        clean, login = split_login(proxy if "://" in proxy else f"http://{proxy}")
        headers = {} if login is None else {"Proxy-Authorization": login.header}
        return urllib3.ProxyManager(clean, maxsize=size, ssl_context=context, proxy_headers=headers)
    except WIRE_ERRORS as error:
        raise SourceError(f"the proxy {redact(proxy)!r} of the environment is not a valid URL") from error


def _tls_context() -> ssl.SSLContext:
    """The system's trust store; if it is not available, OpenSSL's own, which uses $SSL_CERT_FILE too."""
    try:
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    except (ImportError, OSError):
        return ssl.create_default_context()
