"""A loopback HTTP server with byte ranges that can misbehave on demand.

A plain server and its requests::

    with RangeServer({"/demo.whl": wheel_bytes, "/simple/demo/": b"<a href=...>"}) as server:
        client.open(server.url("/demo.whl"))
    assert [request.range for request in server.requests] == ["bytes=-65536"]

A path maps to bytes, to a :class:`Resource` (bytes with a content type, an ETag, behaviours), or to a ``pathlib.Path``:
a file, or a folder served with everything in it (``index.html`` answers for a folder). ``/x`` redirects to ``/x/`` when
only the latter exists, as package indexes do. A request for an absolute URL is served by its path: the server is also a
forward proxy for every host.

Misbehaviour is a tuple of behaviours, applied in order to the right answer::

    Resource(body, behave=[fail(503, times=2, retry_after="0")])     # unavailable twice, then well
    Resource(body, behave=[no_ranges()])                             # 200 and the whole file
    Resource(body, behave=[basic_auth("user", "secret"), drop_after(100, times=1)])

The behaviours: ``no_ranges``, ``no_suffix_ranges``, ``content_range``, ``truncate``, ``drip``, ``drop_after``,
``fail``, ``basic_auth``, ``redirect``, ``change_to``, ``garbage``, ``endless``. ``times=k`` limits one to the first k
requests for its path and ``after=k`` starts it with request k (counted from 0). A behaviour is a function
``(Request, Answer) -> Answer``, so a test can bring its own.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import mimetypes
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """One request as it came. Header names are lower case; ``number`` counts the requests for this path from 0."""

    method: str
    path: str
    headers: Mapping[str, str]
    number: int
    resource: Resource

    @property
    def range(self) -> str:
        """The Range header, or ""."""
        return self.headers.get("range", "")


@dataclass(frozen=True)
class Answer:
    """A response. ``cut`` drops the connection after so many bytes of the body; ``pause`` seconds pass between pieces
    of ``piece`` bytes; ``raw`` replaces the whole answer, status line included.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Iterator[bytes] = b""
    cut: int | None = None
    piece: int = 65536
    pause: float = 0.0
    raw: bytes | None = None


Behaviour = Callable[[Request, Answer], Answer]


@dataclass(frozen=True)
class Resource:
    """A file. ``etag=None`` makes one from the body, "" sends none; so do the other headers that are ""."""

    body: bytes = b""
    content_type: str = ""
    etag: str | None = None
    last_modified: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    behave: Sequence[Behaviour] = ()

    def answer(self, request: Request, *, ranges: bool = True) -> Answer:
        """The answer of a faultless server: 200, 206, 304, 416; If-None-Match and If-Range are honoured."""
        etag = f'"{hashlib.sha256(self.body).hexdigest()[:16]}"' if self.etag is None else self.etag
        guessed = mimetypes.guess_type(request.path)[0] or ("text/html" if request.path.endswith("/") else "")
        headers = {
            "Content-Type": self.content_type or guessed or "application/octet-stream",
            "ETag": etag,
            "Last-Modified": self.last_modified,
            **self.headers,
        }
        headers = {name: value for name, value in headers.items() if value}
        if etag and request.headers.get("if-none-match") == etag:
            return Answer(304, headers)
        whole = Answer(200, headers, self.body)
        if not ranges or not request.range or request.headers.get("if-range", etag) != etag:
            return whole
        first, _, last = request.range.removeprefix("bytes=").partition("-")
        size = len(self.body)
        start = int(first) if first else max(0, size - int(last))
        end = min(int(last) if first and last else size - 1, size - 1)
        if start > end:
            return Answer(416, {**headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        return Answer(206, headers, self.body[start : end + 1])


def _when(behaviour: Behaviour, times: int | None, after: int = 0) -> Behaviour:
    def limited(request: Request, answer: Answer) -> Answer:
        active = request.number >= after and (times is None or request.number < after + times)
        return behaviour(request, answer) if active else answer

    return limited


def no_ranges() -> Behaviour:
    """Range requests are answered with 200 and the whole file."""

    def behaviour(request: Request, answer: Answer) -> Answer:
        return request.resource.answer(request, ranges=False) if answer.status in (206, 416) else answer

    return behaviour


def no_suffix_ranges(status: int = 416) -> Behaviour:
    """``bytes=-N`` is refused with this status (200: the whole file); ``bytes=a-b`` works."""

    def behaviour(request: Request, answer: Answer) -> Answer:
        if not request.range.startswith("bytes=-") or answer.status != 206:
            return answer
        return request.resource.answer(request, ranges=False) if status == 200 else Answer(status)

    return behaviour


def content_range(text: str, *, times: int | None = None, after: int = 0) -> Behaviour:
    """A 206 carries this Content-Range ("" if none) for any request."""

    def behaviour(request: Request, answer: Answer) -> Answer:
        if answer.status != 206:
            return answer
        headers = {name: value for name, value in answer.headers.items() if name != "Content-Range"}
        return replace(answer, headers={**headers, **({"Content-Range": text} if text else {})})

    return _when(behaviour, times, after)


def truncate(length: int, *, times: int | None = None) -> Behaviour:
    """The body ends after ``length`` bytes, and Content-Length agrees with that."""

    def behaviour(request: Request, answer: Answer) -> Answer:
        return replace(answer, body=_bytes(answer)[:length])

    return _when(behaviour, times)


def drip(piece: int = 1, pause: float = 0.05) -> Behaviour:
    """The body comes in pieces of ``piece`` bytes with a pause in seconds before each."""
    return lambda request, answer: replace(answer, piece=piece, pause=pause)


def drop_after(length: int, *, times: int | None = None, after: int = 0) -> Behaviour:
    """The connection is dropped after ``length`` bytes of the body (-1: before the answer)."""
    return _when(lambda request, answer: replace(answer, cut=length), times, after)


def fail(status: int, *, times: int | None = None, after: int = 0, retry_after: str = "") -> Behaviour:
    """This status with a short body; ``retry_after`` goes into the Retry-After header."""
    headers = {"Retry-After": retry_after} if retry_after else {}
    return _when(lambda request, answer: Answer(status, headers, b"no\n"), times, after)


def basic_auth(user: str, password: str) -> Behaviour:
    """401 unless the request carries exactly these credentials."""
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def behaviour(request: Request, answer: Answer) -> Answer:
        if request.headers.get("authorization") == expected:
            return answer
        return Answer(401, {"WWW-Authenticate": 'Basic realm="test"'}, b"who are you?\n")

    return behaviour


def redirect(to: str, *, status: int = 302) -> Behaviour:
    """Redirected to ``to``: a path of this server, or any URL."""
    return lambda request, answer: Answer(status, {"Location": to})


def change_to(body: bytes, *, etag: str | None = None, after: int = 1) -> Behaviour:
    """From request number ``after`` on the file has this body (and its ETag, unless one is given)."""

    def behaviour(request: Request, answer: Answer) -> Answer:
        if answer.status not in (200, 206, 304, 416):
            return answer
        return replace(request.resource, body=body, etag=etag).answer(request)

    return _when(behaviour, None, after)


def garbage(raw: bytes = b"\x00\xff not HTTP at all\r\n\r\n", *, times: int | None = None) -> Behaviour:
    """These bytes instead of an answer; the connection is closed after them."""
    return _when(lambda request, answer: replace(answer, raw=raw), times)


def endless(*, status: int = 200, headers: Mapping[str, str] | None = None) -> Behaviour:
    """A body without end and without Content-Length."""
    return lambda request, answer: Answer(status, headers or {}, itertools.repeat(b"x" * 65536))


def _bytes(answer: Answer) -> bytes:
    if not isinstance(answer.body, bytes):
        raise TypeError("an endless body cannot be changed by another behaviour")
    return answer.body


class RangeServer:
    """Serves ``files`` on 127.0.0.1 while the ``with`` block lasts. ``files`` may be changed at any time.

    ``requests`` are all requests in order of arrival. ``behave`` applies to every path, before the resource's own.
    """

    def __init__(self, files: Mapping[str, bytes | Resource | Path], *, behave: Iterable[Behaviour] = ()) -> None:
        self.files = dict(files)
        self.behave = tuple(behave)
        self.requests: list[Request] = []
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is None or self._thread is None:
            return
        self._closing.set()
        self._server.shutdown()
        self._server.drop_connections()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        if self._server is None:
            raise RuntimeError("the server runs inside its with block only")
        return self._server.server_address[1]

    def url(self, path: str = "/", *, credentials: str = "", host: str = "127.0.0.1") -> str:
        """The URL of a path, with ``user:password`` when given. ``host="localhost"`` reaches the same server."""
        return f"http://{credentials}{'@' * bool(credentials)}{host}:{self.port}{path}"

    def requests_for(self, path: str) -> list[Request]:
        """The requests for one path, in order."""
        return [request for request in self.requests if request.path == path]

    def respond(self, method: str, path: str, headers: Mapping[str, str]) -> Answer:
        """Record the request and make the answer, misbehaviour included."""
        resource = self._find(path)
        with self._lock:
            request = Request(method, path, headers, self._counts[path], resource or Resource())
            self._counts[path] += 1
            self.requests.append(request)
        if resource is None:
            if path + "/" in self.files:
                return Answer(301, {"Location": path + "/"})
            return Answer(404, {}, b"there is no such thing\n")
        answer = resource.answer(request)
        for behaviour in (*self.behave, *resource.behave):
            answer = behaviour(request, answer)
        return answer

    def pause(self, seconds: float) -> bool:
        """Wait, but not beyond the end of the server. True when it ended."""
        return self._closing.wait(seconds)

    def _find(self, path: str) -> Resource | None:
        for prefix, entry in self.files.items():
            if path == prefix and not isinstance(entry, Path):
                return entry if isinstance(entry, Resource) else Resource(entry)
            if isinstance(entry, Path) and (path == prefix or path.startswith(prefix.rstrip("/") + "/")):
                file = entry / unquote(path[len(prefix) :]).strip("/") if path != prefix else entry
                if ".." in file.parts:
                    return None
                file = file / "index.html" if file.is_dir() else file
                if file.is_file():
                    return Resource(file.read_bytes())
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, owner: RangeServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner
        self._connections: set[socket.socket] = set()

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if isinstance(request, socket.socket):
            self._connections.add(request)
        super().process_request(request, client_address)

    def close_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        self._connections.discard(request)
        super().close_request(request)

    def drop_connections(self) -> None:
        """End kept-alive connections, whose threads would wait for another request for ever."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of many tests and no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        answer = self.server.owner.respond(self.command, path, {k.lower(): v for k, v in self.headers.items()})
        with contextlib.suppress(ConnectionError):
            self._send(answer)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, answer: Answer) -> None:
        if answer.raw is not None or answer.cut == -1:
            self.wfile.write(answer.raw or b"")
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        whole = answer.body if isinstance(answer.body, bytes) else None
        if whole is None:
            self.send_header("Connection", "close")
        elif answer.status != 304:
            self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.close_connection = self.close_connection or whole is None or answer.cut is not None
        for piece in _pieces(answer):
            if answer.pause and self.server.owner.pause(answer.pause):
                self.close_connection = True
                return
            self.wfile.write(piece)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Nothing: tests read ``RangeServer.requests``."""


def _pieces(answer: Answer) -> Iterator[bytes]:
    if not isinstance(answer.body, bytes):
        yield from answer.body
        return
    body = answer.body[: answer.cut]
    for start in range(0, len(body), answer.piece):
        yield body[start : start + answer.piece]
