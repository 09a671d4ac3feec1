"""A server that drips: each byte comes in time for the socket, and the whole would take as long as the server likes."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterable, Iterator

import pytest
from packaging.requirements import Requirement

from tests.sources.conftest import MakeClient
from tests.support.patience import PATIENCE
from tests.support.range_server import RangeServer, Resource, redirect
from wheel_checks.errors import DeadlineError, SourceError
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.http.pace import LARGEST_HEAD
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.uv.resolver import Resolution
from wheel_checks.targets.target import this_machine
from wheelproof.wheels import dependencies

PAUSE = 0.01  # seconds before each dripped byte
DRIPS = 400  # bytes that drip; then the answer continues as it should, so that a reader without a limit succeeds

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

# the bytes at once, dripped ones, the following ones at once
ANSWERS = {
    "status line": (b"HTTP/1.1 200 ", b"k" * DRIPS, b"\r\nContent-Length: 1\r\n\r\nx"),
    "header": (OK + b"X: ", b"y" * DRIPS, b"\r\nContent-Length: 1\r\n\r\nx"),
    "many headers": (OK, b"X:\r\n" * (DRIPS // 8), b"Content-Length: 1\r\n\r\nx"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * (DRIPS // 25), OK + b"Content-Length: 1\r\n\r\nx"),
    "body": (OK + b"Content-Length: %d\r\n\r\n" % DRIPS, b"x" * DRIPS, b""),
    "body without a length": (OK + b"Connection: close\r\n\r\n", b"x" * DRIPS, b""),
    "chunk extension": (CHUNKED + b"1;", b"e" * DRIPS, b"\r\nx\r\n0\r\n\r\n"),
    "chunk": (CHUNKED + b"%x\r\n" % DRIPS, b"x" * DRIPS, b"\r\n0\r\n\r\n"),
    "small chunks": (CHUNKED, b"1\r\nx\r\n" * (DRIPS // 6), b"0\r\n\r\n"),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\n", b"T: y\r\n" * (DRIPS // 6), b"\r\n"),
}


class DripServer:
    """Answers each connection with the same pieces of bytes and a pause before each, for any request."""

    def __init__(self, pieces: Iterable[bytes], *, pause: float = PAUSE) -> None:
        self._pieces = list(pieces)
        self._pause = pause
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> DripServer:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._answer, args=[connection]))
                self._threads[-1].start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            for piece in self._pieces:
                if self._closing.wait(self._pause):
                    return
                connection.sendall(piece)


def pieces_of(answer: tuple[bytes, bytes, bytes]) -> Iterator[bytes]:
    first, dripping, last = answer
    yield from filter(None, (first, *(dripping[i : i + 1] for i in range(len(dripping))), last))


@pytest.mark.parametrize("place", ANSWERS)
def test_the_deadline_ends_what_drips(place: str, make_client: MakeClient) -> None:
    with DripServer(pieces_of(ANSWERS[place])) as server, pytest.raises(DeadlineError, match="the deadline of"):
        make_client(deadline=0.3).get_page(f"http://127.0.0.1:{server.port}/x")


@pytest.mark.parametrize("place", ANSWERS)
def test_without_a_deadline_the_timeout_ends_what_drips(place: str, make_client: MakeClient) -> None:
    with DripServer(pieces_of(ANSWERS[place])) as server, pytest.raises(SourceError) as caught:
        make_client(timeout=0.3, retries=0).get_page(f"http://127.0.0.1:{server.port}/x")
    assert "did not answer in time" in str(caught.value) or "sends fewer than 1024 bytes in 0.3 s" in str(caught.value)


@pytest.mark.parametrize("place", ANSWERS)
def test_an_answer_in_small_pieces_is_read_when_there_is_time(place: str, client: HttpClient) -> None:
    with DripServer(pieces_of(ANSWERS[place]), pause=0) as server:
        assert set(client.get_page(f"http://127.0.0.1:{server.port}/x").body) == {ord("x")}


def test_a_body_may_be_longer_than_a_head(client: HttpClient) -> None:
    with RangeServer({"/x": b"x" * (2 * LARGEST_HEAD)}) as server:
        assert len(client.get_page(server.url("/x")).body) == 2 * LARGEST_HEAD


def test_the_deadline_ends_a_handshake_that_drips(make_client: MakeClient) -> None:
    record = b"\x16\x03\x03\x3f\x00" + bytes(DRIPS)
    with DripServer(record[i : i + 1] for i in range(len(record))) as server, pytest.raises(DeadlineError):
        make_client(deadline=0.3).get_page(f"https://127.0.0.1:{server.port}/x")


def test_the_deadline_ends_a_proxy_that_drips(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * (DRIPS // 6), b"\r\n")
    with DripServer(pieces_of(answer)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(DeadlineError):
            make_client(deadline=0.3).get_page("https://index.example.test/x")


def test_the_deadline_ends_redirects_that_drip(make_client: MakeClient) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"
    with DripServer(moved[i : i + 1] for i in range(len(moved))) as server, pytest.raises(DeadlineError):
        make_client(deadline=1).get_page(f"http://127.0.0.1:{server.port}/x")


def test_a_chain_of_redirects_has_three_timeouts(make_client: MakeClient) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    slow = [moved[: len(moved) // 2], moved[len(moved) // 2 :]]
    with (
        DripServer(slow, pause=0.2) as server,
        pytest.raises(SourceError, match=r"redirects that took too long|in time"),
    ):
        make_client(timeout=0.5, retries=0).get_page(f"http://127.0.0.1:{server.port}/x")


def test_redirects_in_a_circle_end(client: HttpClient) -> None:
    with RangeServer({"/a": Resource(behave=[redirect("/b")]), "/b": Resource(behave=[redirect("/a")])}) as server:
        with pytest.raises(SourceError, match="redirects more than 10 times"):
            client.get_page(server.url("/a"))
        assert len(server.requests) == 11


def test_the_deadline_ends_the_lookup_of_a_name(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def slow(*_: object, **__: object) -> object:
        answered.wait(PATIENCE)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    try:
        with pytest.raises(DeadlineError):
            make_client(deadline=0.2).get_page("http://nowhere.example.test/x")
    finally:
        answered.set()


def test_a_connection_that_comes_too_late_is_closed(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    look_up, answered = socket.getaddrinfo, threading.Event()

    def slow(*arguments: object, **options: object) -> object:
        answered.wait(PATIENCE)
        return look_up(*arguments, **options)  # type: ignore[arg-type]  # passed through

    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(socket, "getaddrinfo", slow)
        with pytest.raises(DeadlineError):
            make_client(deadline=0.2).get_page(f"http://127.0.0.1:{listener.getsockname()[1]}/x")
        answered.set()
        listener.settimeout(PATIENCE)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE)
            assert connection.recv(1) == b""  # closed without a request


def test_the_time_that_is_left_is_that_of_the_deadline(make_client: MakeClient) -> None:
    assert make_client().time_left(300) == 300
    assert 0 < make_client(deadline=200).time_left(300) <= 200
    with pytest.raises(DeadlineError):
        make_client(deadline=0).time_left(300)


def test_uv_has_the_time_that_is_left(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def resolve(*_: object, timeout: float, **__: object) -> Resolution:
        given.append(timeout)
        return Resolution(())

    monkeypatch.setattr(dependencies, "resolve", resolve)
    client, config = make_client(deadline=PATIENCE / 3), IndexConfig(())
    with dependencies.dependency_reader(client, SimpleIndex(client, config), config) as reader:
        reader._resolver([Requirement("demo")], this_machine().target)
    assert 0 < given[0] <= PATIENCE / 3


@pytest.mark.parametrize(
    "endless",
    [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\nX: " + b"y" * 60_000 + b"\r\n\r\n"],
    ids=["interim answers", "large interim answers"],
)
def test_a_head_without_end_is_refused(endless: bytes, client: HttpClient) -> None:
    pieces = itertools.repeat(endless, 4 * LARGEST_HEAD // len(endless))
    with (
        DripServer(pieces, pause=0) as server,
        pytest.raises(SourceError, match="returned headers or lines that are too long"),
    ):
        client.get_page(f"http://127.0.0.1:{server.port}/x")


@pytest.mark.parametrize("line", [b"X: y\r\n", b"X: " + b"y" * 70_000 + b"\r\n"], ids=["many", "long"])
def test_headers_without_end_are_refused(line: bytes, client: HttpClient) -> None:
    pieces = [OK, *[line] * 1000]
    with (
        DripServer(pieces, pause=0) as server,
        pytest.raises(SourceError, match="returned headers or lines that are too long"),
    ):
        client.get_page(f"http://127.0.0.1:{server.port}/x")
