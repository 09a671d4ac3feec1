"""Each failure of the network is one plain sentence, without the text of a library's exceptions."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.sources.conftest import MakeClient
from tests.support.patience import in_time
from tests.support.range_server import RangeServer, Resource, drip, fail, garbage
from wheel_checks.errors import DeadlineError, SourceError
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.http.retry import Deadline, RetryPolicy, TransientError

OPENSSL = which("openssl")


def message_of(client: HttpClient, url: str) -> str:
    """The sentence with which reading ``url`` fails; it must be one for people."""
    with pytest.raises(SourceError) as caught:
        client.get_page(url)
    message = str(caught.value)
    assert "object at 0x" not in message
    assert "urllib3" not in message
    assert re.search(r"\w(Error|Exception)\b", message) is None
    assert "\n" not in message
    return message


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which nothing listens, kept from others while the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_a_refused_connection(client: HttpClient, closed_port: int) -> None:
    message = message_of(client, f"http://127.0.0.1:{closed_port}/x")
    assert message == f"127.0.0.1:{closed_port} refuses the connection (does the server run?)"


def test_a_proxy_that_does_not_answer(client: HttpClient, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://me:s3cret@127.0.0.1:{closed_port}")
    message = message_of(client, "http://index.example.test/x")
    assert message == "the proxy of the environment does not connect to index.example.test (check $https_proxy)"
    monkeypatch.setenv("http_proxy", "http://me:s3cret@[broken")
    message = message_of(client, "http://index.example.test/x")
    assert message == "the proxy 'http://[broken' of the environment is not a valid URL"


def test_an_unknown_host(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_host(*arguments: object, **options: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)  # asking a name server would leave this host
    assert "the host name nowhere.example.test cannot be resolved" in message_of(
        client, "http://nowhere.example.test/x"
    )


def test_no_encryption_where_some_is_expected(client: HttpClient) -> None:
    with RangeServer({"/x": b""}) as server:
        message = message_of(client, server.url("/x").replace("http:", "https:"))
    assert message == f"no encrypted connection to 127.0.0.1:{server.port} could be established (does it speak https?)"


@pytest.mark.skipif(OPENSSL is None, reason="openssl makes the certificate")
def test_an_untrusted_certificate(client: HttpClient, tmp_path: Path) -> None:
    assert OPENSSL is not None
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=127.0.0.1"]
    subprocess.run(
        [OPENSSL, "req", "-x509", *options, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def shake_hands_once() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):  # the client hangs up
                context.wrap_socket(connection, server_side=True)

        thread = threading.Thread(target=shake_hands_once)
        thread.start()
        port = listener.getsockname()[1]
        message = message_of(client, f"https://127.0.0.1:{port}/x")
        thread.join()
    assert message.startswith(f"the certificate of 127.0.0.1:{port} is not trusted: ")
    assert "$SSL_CERT_FILE" in message


def test_no_answer_in_time(make_client: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        message = message_of(make_client(timeout=0.05, retries=1), f"http://127.0.0.1:{port}/x")
    assert message.startswith(f"127.0.0.1:{port} did not answer in time")


def test_an_answer_that_only_drips(make_client: MakeClient) -> None:
    with RangeServer({"/x": Resource(b"y" * 10_000, behave=[drip(1, 0.01)])}) as server:
        url = server.url("/x")
        message = in_time(
            lambda seconds: message_of(make_client(timeout=seconds, retries=0), url),
            lambda message: "did not answer" not in message,  # on a busy machine the answer begins too late
            deadline=0.1,
        )
    assert re.search(r"sends fewer than 1024 bytes in \d+\.\d s", message)


def test_what_is_no_http(client: HttpClient) -> None:
    with RangeServer({"/x": Resource(behave=[garbage()])}) as server:
        assert f"the connection to 127.0.0.1:{server.port} was lost" in message_of(client, server.url("/x"))
    bad_length = b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\nETag: \xff\r\nnonsense\r\n\r\n"
    with RangeServer({"/x": Resource(behave=[garbage(bad_length)])}) as server:
        assert client.get_page(server.url("/x")).body == b""


@pytest.mark.parametrize(
    "url",
    ["", "demo.whl", "ftp://example.org/x", "http://", "http://[::1", "http://example.org:port/x", "http://a b/x"],
)
def test_what_is_no_url(client: HttpClient, url: str) -> None:
    message = message_of(client, url)
    assert message.startswith(repr(url))
    with pytest.raises(SourceError):
        client.open(url).read_tail(1)


def test_a_server_in_trouble(client: HttpClient) -> None:
    for status, phrase, requests in ((500, "Internal Server Error", 2), (502, "Bad Gateway", 4), (501, "Not Impl", 1)):
        with RangeServer({"/x": Resource(behave=[fail(status)])}) as server:
            assert f"/x answers HTTP {status}, {phrase}" in message_of(client, server.url("/x"))
            assert len(server.requests) == requests


def test_a_server_that_wants_too_long_a_pause_is_not_waited_for(client: HttpClient) -> None:
    for wish in ("3600", "Fri, 20 Nov 2099 09:00:00 GMT"):
        with RangeServer({"/x": Resource(behave=[fail(429, retry_after=wish)])}) as server:
            assert "HTTP 429, Too Many Requests" in message_of(client, server.url("/x"))
            assert len(server.requests) == 1


def test_a_retry_after_that_means_nothing_is_ignored(client: HttpClient) -> None:
    with RangeServer({"/x": Resource(b"well", behave=[fail(503, times=1, retry_after="soon")])}) as server:
        assert client.get_page(server.url("/x")).body == b"well"


def test_the_deadline_ends_waiting_for_a_pause(make_client: MakeClient) -> None:
    with RangeServer({"/x": Resource(behave=[fail(503, retry_after="30")])}) as server:
        with pytest.raises(DeadlineError, match="the deadline of 10 s passed"):
            make_client(deadline=10).get_page(server.url("/x"))
        assert len(server.requests) == 1


def test_the_deadline_ends_waiting_for_an_answer(make_client: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(DeadlineError):
        make_client(timeout=60, deadline=0.1).get_page(f"http://127.0.0.1:{silent.getsockname()[1]}/x")


def test_the_deadline_ends_a_long_answer(make_client: MakeClient) -> None:
    slow = Resource(b"y" * 100_000, behave=[drip(2000, 0.05)])
    too_late = pytest.raises(DeadlineError, match=r"the deadline of 0\.2 s passed")
    with RangeServer({"/x": slow}) as server, too_late:
        make_client(deadline=0.2).open(server.url("/x")).read_tail(100_000)


def test_a_deadline_that_has_passed_sends_nothing(make_client: MakeClient) -> None:
    with RangeServer({"/x": b""}) as server, pytest.raises(DeadlineError):
        make_client(deadline=0).get_page(server.url("/x"))
    assert server.requests == []


def test_a_failure_may_limit_its_retries() -> None:
    tries: list[int] = []

    def attempt() -> None:
        tries.append(1)
        raise TransientError(SourceError("no"), retries=1)

    with pytest.raises(SourceError, match="no"):
        RetryPolicy(retries=5, backoff=0).run(attempt, Deadline(None))
    assert len(tries) == 2


def test_a_client_that_opens_no_network_url_imports_no_network() -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"  # modules of coverage may be there
        "from wheel_checks.sources.http.cache import ByteCache\n"
        "from wheel_checks.sources.client import HttpClient\n"
        "HttpClient(ByteCache()).open('https://example.org/x')\n"
        "heavy = {'urllib3', 'truststore', 'ssl', 'sqlite3', 'subprocess', 'netrc', 'concurrent.futures.thread'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # it imports
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert answer.stdout.strip() == "[]"
