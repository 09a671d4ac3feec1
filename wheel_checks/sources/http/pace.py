"""Connections whose every wait is bounded: the lookup of a name, connecting, a head, and a body.

The timeout of a socket starts again with each byte, so a slow server could block its reader for any time. Here the
timeout is set before each read, from the time left for a head, or of the time in which a body must bring some bytes.
All data that http.client reads passes through the same reader: status lines, headers, interim answers (status 100), the
lines of chunks, trailers, and the answer of a proxy.
"""

from __future__ import annotations

import http.client
import io
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError

from wheel_checks.sources.http.retry import Deadline

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer

LARGEST_HEAD = 256 << 10
"""Bytes of a status line and its headers, with the interim answers before them."""

SLOWEST = 1024
"""Bytes for each second of the timeout that a body must bring while its reader waits that long."""

_SHORTEST = 0.001  # seconds; a timeout of 0 would make the socket non-blocking


class StalledError(TimeoutError):
    """A body comes too slowly. The text says how slowly."""


class HeadTooLongError(http.client.HTTPException):
    """A head has more than :data:`LARGEST_HEAD` bytes."""


class _Pace:
    """How long the reader of one response waits: at most ``head`` seconds for the whole head, then as ``body`` says.

    While it waits ``body`` seconds for the body, :data:`SLOWEST` bytes must come for each of them.
    """

    def __init__(self, head: float, body: float, deadline: Deadline) -> None:
        self._deadline = deadline
        self._limit = head
        self._body = body
        self._enough = LARGEST_HEAD
        self._in_head = True
        self._waited = 0.0
        self._received = 0

    def begin_body(self) -> None:
        """The head is read; the limits of a body apply from now on."""
        self._in_head = False
        self._limit, self._enough = self._body, int(SLOWEST * max(1.0, self._body))
        self._waited, self._received = 0.0, 0

    def read(self, sock: socket.socket, raw: io.RawIOBase, buffer: WriteableBuffer) -> int | None:
        """One read from ``raw`` over ``sock``. Raises TimeoutError, StalledError, HeadTooLongError, DeadlineError."""
        left = self._limit - self._waited
        if left <= 0:
            raise self._too_slow()
        sock.settimeout(self._deadline.remaining(left))
        started = time.monotonic()
        try:
            count = cast("int | None", raw.readinto(buffer))
        except TimeoutError:
            self._deadline.check()
            raise self._too_slow() from None
        self._waited += time.monotonic() - started
        self._received += count or 0
        if self._received >= self._enough:
            if self._in_head:
                raise HeadTooLongError
            self._waited, self._received = 0.0, 0
        return count

    def _too_slow(self) -> TimeoutError:
        if self._in_head or not self._received:
            return TimeoutError()
        return StalledError(f"sends fewer than {self._enough} bytes in {self._limit:g} s")


class _PacedReader(io.RawIOBase):
    """The bytes of a connection, at the pace that is allowed."""

    def __init__(self, sock: socket.socket, pace: _Pace) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._pace = pace

    def readable(self) -> bool:
        """True: it is only read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        """Fill a part of ``buffer``; the number of bytes, 0 at the end. Raises as :meth:`_Pace.read`."""
        return self._pace.read(self._sock, self._raw, buffer)

    def close(self) -> None:
        """Give back the connection's file."""
        self._raw.close()
        super().close()


class _PacedSocket:
    """The part of a socket that http.client uses: a file to read from."""

    def __init__(self, sock: socket.socket, pace: _Pace) -> None:
        self._reader = _PacedReader(sock, pace)

    def makefile(self, *_: object, **__: object) -> io.BufferedReader:
        """The buffered reader of a response."""
        return io.BufferedReader(self._reader)


class _PacedResponse(http.client.HTTPResponse):
    """A response that is read at its pace."""

    def __init__(self, sock: socket.socket, pace: _Pace, **options: Any) -> None:
        super().__init__(cast("socket.socket", _PacedSocket(sock, pace)), **options)
        self._pace = pace

    def begin(self) -> None:
        """Read the head."""
        super().begin()
        self._pace.begin_body()


class _Paced(HTTPConnection):
    """A connection that is made, and answers, in time. ``self.timeout`` is that of the request, set by urllib3."""

    body_timeout: float
    deadline: Deadline

    def _new_conn(self) -> socket.socket:
        """Look the name up and connect, both in ``self.timeout``: neither a lookup nor many addresses take longer."""
        timeout = cast("float", self.timeout)
        end = time.monotonic() + timeout
        connected: Future[socket.socket] = Future()
        threading.Thread(target=_settle, args=(connected, super()._new_conn), daemon=True).start()
        try:
            sock = connected.result(timeout)
        except TimeoutError as error:
            connected.add_done_callback(_discard)
            raise ConnectTimeoutError(self, f"no connection to {self.host} in {timeout:g} s") from error
        sock.settimeout(max(end - time.monotonic(), _SHORTEST))  # for a TLS handshake, which keeps to it as a whole
        return sock

    def send(self, data: Any) -> None:
        """Send in the time of this request, not in the rest of the last read's."""
        if self.sock is not None:
            self.sock.settimeout(cast("float", self.timeout))
        super().send(data)

    def response_class(self, sock: socket.socket, **options: Any) -> _PacedResponse:  # type: ignore[override]  # http.client calls it and no more
        """The response that http.client reads."""
        return _PacedResponse(sock, _Pace(cast("float", self.timeout), self.body_timeout, self.deadline), **options)


def paced_pools(timeout: float, deadline: Deadline) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """The classes of pools, by scheme, for ``PoolManager.pool_classes_by_scheme``.

    ``timeout`` is the seconds in which a body must bring some bytes; the timeout of a request limits connecting and the
    whole head. ``deadline`` limits everything: reading raises DeadlineError.
    """
    limits = {"body_timeout": timeout, "deadline": deadline}
    plain = type("PacedConnection", (_Paced,), limits)
    encrypted = type("PacedTlsConnection", (_Paced, HTTPSConnection), limits)
    return {
        "http": type("PacedPool", (urllib3.HTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("PacedTlsPool", (urllib3.HTTPSConnectionPool,), {"ConnectionCls": encrypted}),
    }


def _settle(future: Future[socket.socket], connect: Any) -> None:
    try:
        future.set_result(connect())
    except BaseException as error:  # noqa: BLE001  # raised when the result is awaited
        future.set_exception(error)


def _discard(future: Future[socket.socket]) -> None:
    """Close a connection that came too late."""
    if future.exception() is None:
        future.result().close()
