"""Where credentials come from, and that they are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.conftest import MakeClient
from tests.support.range_server import RangeServer, Resource, basic_auth, redirect
from wheel_checks.errors import AuthenticationError
from wheel_checks.formats.secrets import redact
from wheel_checks.sources.http.credentials import Credentials, Login, split_login

BODY = b"wheel " * 1000


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:s3cret@example.org/simple/", "https://example.org/simple/"),
        ("https://s3cret@example.org:8443/a@1.0/", "https://example.org:8443/a@1.0/"),
        ("https://user:s3/cret@example.org/simple/", "https://example.org/simple/"),
        ("https://example.org/f?X-Amz-Signature=s3cret&x=1", "https://example.org/f?X-Amz-Signature=****&x=1"),
        ("https://example.org/f?private_token=s3cret", "https://example.org/f?private_token=****"),
        ("https://example.org/f?page=2", "https://example.org/f?page=2"),
        ("https://user:s3cret@[broken/simple/", "https://[broken/simple/"),
        ("/home/user/wheels", "/home/user/wheels"),
    ],
)
def test_redacted_urls_hold_no_secret(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_a_login_is_split_from_the_url_and_unquoted() -> None:
    clean, login = split_login("https://me:p%40ss%3A@example.org/x")
    assert (clean, login) == ("https://example.org/x", Login("me", "p@ss:"))
    assert "p@ss" not in repr(login)


def test_netrc_is_read_from_home_and_from_the_variable(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine example.org login home password a\n")
    (tmp_path / "other").write_text("machine example.org login named password b\n")
    home = {"HOME": str(tmp_path)}
    assert Credentials(home).find("https://example.org/x") == Login("home", "a")
    assert Credentials(home).find("https://example.test/x") is None
    assert Credentials({**home, "NETRC": str(tmp_path / "other")}).find("https://example.org/x") == Login("named", "b")


def test_a_broken_netrc_is_skipped_with_a_warning_that_does_not_quote_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".netrc").write_text("machine example.org login me s3cret\n")
    assert Credentials({"HOME": str(tmp_path)}).find("https://example.org/") is None
    assert "cannot be read as netrc" in caplog.text
    assert "s3cret" not in caplog.text


def test_credentials_of_the_url_are_sent_to_its_origin_only(make_client: MakeClient) -> None:
    with RangeServer({"/a": Resource(BODY, behave=[basic_auth("me", "s3:cret")]), "/b": BODY}) as server:
        client = make_client()
        file = client.open(server.url("/a", credentials="me:s3%3Acret"))
        assert file.read_tail(10) == (len(BODY), BODY[-10:])
        assert "s3" not in file.location
        client.get_page(server.url("/b"))  # listed by the same index, so it gets the same login
        client.get_page(server.url("/b", host="localhost"))
    assert ["authorization" in request.headers for request in server.requests] == [True, True, False]


def test_two_indexes_of_one_host_keep_their_own_logins(make_client: MakeClient) -> None:
    one, two = basic_auth("one", "1"), basic_auth("two", "2")
    with RangeServer({"/1/": Resource(BODY, behave=[one]), "/2/": Resource(BODY, behave=[two])}) as server:
        client = make_client()
        first, second = (
            client.open(server.url(path, credentials=login)) for path, login in (("/1/", "one:1"), ("/2/", "two:2"))
        )
        assert first.read(0, 3) == second.read(0, 3) == BODY[:3]


def test_a_redirect_to_another_host_takes_no_credentials_along(make_client: MakeClient) -> None:
    with RangeServer({"/file": BODY, "/here": BODY}) as other:
        to_other, to_self = redirect(other.url("/file", credentials="evil:twin")), redirect("/here")
        with RangeServer(
            {"/a": Resource(behave=[to_other]), "/b": Resource(behave=[to_self]), "/here": BODY}
        ) as server:
            client = make_client()
            assert client.open(server.url("/a", credentials="me:secret")).read(0, 5) == BODY[:5]
            assert client.get_page(server.url("/b", credentials="me:secret")).final_url == server.url("/here")
    assert all("authorization" in request.headers for request in server.requests)
    assert len(server.requests) == 3
    assert [request.headers.get("authorization") for request in other.requests] == [None]


def test_netrc_serves_the_first_request(make_client: MakeClient, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    with RangeServer({"/a": Resource(BODY, behave=[basic_auth("me", "secret")])}) as server:
        assert make_client().get_page(server.url("/a")).body == BODY
    assert len(server.requests) == 1


def keyring(tmp_path: Path, script: str) -> None:
    """A ``keyring`` command that notes its arguments and then does ``script``."""
    command = tmp_path / "bin" / "keyring"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{script}\n')
    command.chmod(0o755)


def test_keyring_is_asked_once_and_only_after_a_refusal(make_client: MakeClient, tmp_path: Path) -> None:
    keyring(tmp_path, '[ "$3" = me ] && case "$2" in http*) exit 1;; *) echo secret;; esac')
    protected = Resource(BODY, behave=[basic_auth("me", "secret")])
    with RangeServer({"/a": protected, "/b": protected, "/free": BODY}) as server:
        client = make_client()
        client.get_page(server.url("/free", credentials="me"))
        assert not (tmp_path / "asked").exists()
        assert client.get_page(server.url("/a")).body == BODY
        assert client.get_page(server.url("/b")).body == BODY
        asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [f"get {server_url} me" for server_url in (server_url_of(server, "/a"), host_of(server))]
    assert len(server.requests_for("/a")) == 2
    assert len(server.requests_for("/b")) == 1


def test_whoever_asks_later_gets_what_keyring_said(tmp_path: Path) -> None:
    keyring(tmp_path, "echo secret")
    credentials = Credentials({"PATH": str(tmp_path / "bin")})
    answers = [credentials.ask_keyring("https://example.org/x", 5) for _ in range(2)]
    assert answers == [Login("__token__", "secret")] * 2
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


def test_a_keyring_that_does_not_answer_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keyring(tmp_path, "read line < /dev/zero")
    assert Credentials({"PATH": str(tmp_path / "bin")}).ask_keyring("https://example.org/x", 0.1) is None
    assert "the keyring command did not answer (TimeoutExpired)" in caplog.text


def test_refused_credentials_end_in_a_sentence_without_them(make_client: MakeClient, tmp_path: Path) -> None:
    keyring(tmp_path, "exit 1")
    refused = pytest.raises(AuthenticationError, match=r"refuses access \(HTTP 401\).*netrc")
    with RangeServer({"/a": Resource(BODY, behave=[basic_auth("me", "secret")])}) as server, refused as caught:
        make_client().get_page(server.url("/a", credentials="me:wr0ng"))
    assert "wr0ng" not in str(caught.value)
    assert len(server.requests) == 1


def server_url_of(server: RangeServer, path: str) -> str:
    return server.requests_for(path)[0].headers["host"].join(("http://", path))


def host_of(server: RangeServer) -> str:
    return server.requests[0].headers["host"]
