"""Index pages and sidecars: transferred again only when they changed, never larger than they may be."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sources.conftest import MakeClient
from tests.support.range_server import (
    RangeServer,
    Request,
    Resource,
    basic_auth,
    change_to,
    drop_after,
    endless,
    fail,
    redirect,
)
from wheel_checks.errors import AuthenticationError, NotFoundError, OfflineError, SourceError
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.http import transport
from wheel_checks.sources.http.cache import ByteCache

PAGE = b"<a href=x-1-py3-none-any.whl>x</a>"
HTML = {"Accept": "text/html"}


def test_a_page_says_where_it_came_from(client: HttpClient) -> None:
    with RangeServer({"/simple/x/": Resource(PAGE, content_type="text/html; charset=utf-8")}) as server:
        page = client.get_page(server.url("/simple/x"), HTML)
        assert page.body == PAGE
        assert page.content_type == "text/html; charset=utf-8"
        assert page.final_url == server.url("/simple/x/")
        assert not page.from_cache
        assert (page.cost.bytes_read, page.cost.requests) == (len(PAGE), 2)
    assert server.requests[0].headers["accept"] == "text/html"


def test_a_page_may_come_compressed(client: HttpClient) -> None:
    body = PAGE * 1000
    packed = Resource(gzip.compress(body), headers={"Content-Encoding": "gzip"})
    with RangeServer({"/x/": packed}) as server:
        page = client.get_page(server.url("/x/"))
        assert page.body == body
        assert page.cost.bytes_read == len(packed.body)
    assert server.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (Resource(PAGE, headers={"Content-Encoding": "gzip"}), "does not unpack as gzip"),
        (Resource(gzip.compress(PAGE)[:-9], headers={"Content-Encoding": "gzip"}), "inside its gzip"),
        (Resource(PAGE, headers={"Content-Encoding": "br"}), "encoded as 'br'"),
        (Resource(behave=[endless()]), "is too large; expected at most 100,000 bytes"),
        (
            Resource(gzip.compress(bytes(1 << 20)), headers={"Content-Encoding": "gzip"}),
            "is too large; expected at most 100,000 bytes",
        ),
        (Resource(behave=[fail(204)]), "answers HTTP 204"),
        (Resource(behave=[fail(418)]), "answers HTTP 418"),
    ],
)
def test_a_page_that_cannot_be_used_is_refused_in_one_sentence(
    client: HttpClient, resource: Resource, message: str
) -> None:
    with RangeServer({"/x/": resource}) as server, pytest.raises(SourceError, match=message):
        client.get_page(server.url("/x/"), largest=100_000)
    assert client.cost.bytes_read < 10_000_000


def test_a_page_that_breaks_off_is_asked_for_again(client: HttpClient) -> None:
    with RangeServer({"/x/": Resource(PAGE, behave=[drop_after(5, times=1)])}) as server:
        assert client.get_page(server.url("/x/")).body == PAGE


def test_a_stale_page_is_asked_for_with_its_validators(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": Resource(PAGE, last_modified="yesterday", behave=[change_to(b"new", after=2)])}) as server:
        client = make_client(cache)
        first, second, third = (client.get_page(server.url("/x/"), HTML) for _ in range(3))
    cache.close()
    assert [page.body for page in (first, second, third)] == [PAGE, PAGE, b"new"]
    assert [page.from_cache for page in (first, second, third)] == [False, True, False]
    assert (second.cost.bytes_read, second.cost.requests, second.cost.bytes_cached) == (0, 1, len(PAGE))
    assert "if-none-match" not in server.requests[0].headers
    assert server.requests[1].headers["if-none-match"].startswith('"')
    assert server.requests[1].headers["if-modified-since"] == "yesterday"


def test_a_fresh_page_is_not_asked_for(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": Resource(PAGE, headers={"Cache-Control": "public, max-age=600"})}) as server:
        client = make_client(cache)
        client.get_page(server.url("/x/"), HTML)
        assert client.get_page(server.url("/x/"), HTML).from_cache
        assert len(server.requests) == 1
        client.get_page(server.url("/x/"), {"Accept": "application/json"})
        client.get_page(server.url("/x/"), {**HTML, "Cache-Control": "max-age=0"})
        assert len(server.requests) == 3
    cache.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"Cache-Control": "max-age=600", "Age": "600"},
        {"Cache-Control": "no-cache, max-age=600"},
        {"Cache-Control": "max-age=0"},
        {"Cache-Control": "max-age=nonsense"},
        {},
    ],
)
def test_a_page_that_is_not_fresh_is_asked_for(
    make_client: MakeClient, tmp_path: Path, headers: dict[str, str]
) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": Resource(PAGE, headers=headers)}) as server:
        client = make_client(cache)
        for _ in range(2):
            client.get_page(server.url("/x/"))
        assert len(server.requests) == 2
    assert make_client(cache, offline=True).get_page(server.url("/x/")).body == PAGE
    cache.close()


def test_a_page_that_may_not_be_stored_is_not(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": Resource(PAGE, headers={"Cache-Control": "no-store"})}) as server:
        make_client(cache).get_page(server.url("/x/"))
        with pytest.raises(OfflineError, match="run once without --offline"):
            make_client(cache, offline=True).get_page(server.url("/x/"))
    cache.close()


@pytest.mark.parametrize("target", ["ftp://example.org/x", "file:///etc/passwd", "http://[broken", ""])
def test_a_redirect_to_what_is_no_web_page_is_refused(client: HttpClient, target: str) -> None:
    refused = pytest.raises(SourceError, match=r"redirects to .*; expected an https or http URL")
    with RangeServer({"/x/": Resource(behave=[redirect(target)])}) as server, refused:
        client.get_page(server.url("/x/"))


def test_a_redirect_away_from_encryption_is_refused() -> None:
    assert transport._redirected("http://example.org/x", "https://example.org/y") == "https://example.org/y"
    with pytest.raises(SourceError, match=r"redirects to http://example\.org/y, which is not encrypted"):
        transport._redirected("https://example.org/x", "http://me:secret@example.org/y")


@pytest.mark.parametrize("target", ["http://127.0.0.1/x/", "http://localhost:8/x/", "//169.254.169.254/x/"])
def test_a_redirect_of_another_host_to_this_machine_is_refused(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    with RangeServer({"/x/": Resource(behave=[redirect(target)])}) as server:
        monkeypatch.setenv("http_proxy", server.url(""))
        with pytest.raises(SourceError, match=r"redirects to .*, which is on (the loopback|a link-local address)"):
            make_client().get_page("http://index.example.test/x/")
    assert len(server.requests) == 1


def test_endless_redirects_end(client: HttpClient) -> None:
    refused = pytest.raises(SourceError, match="redirects more than 10 times")
    with RangeServer({"/x/": Resource(behave=[redirect("/x/")])}) as server, refused:
        client.get_page(server.url("/x/"))
    assert len(server.requests) == 11


def test_the_proxy_of_the_environment_is_used(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Request] = []
    with RangeServer({"/x/": PAGE}) as server:
        monkeypatch.setenv("http_proxy", server.url("", credentials="me:s3cret"))
        assert make_client().get_page("http://index.example.test/x/").body == PAGE
        seen += server.requests
    assert [request.headers["host"] for request in seen] == ["index.example.test"]
    assert seen[0].headers["proxy-authorization"].startswith("Basic ")


def test_file_urls_name_files_and_folders(client: HttpClient, tmp_path: Path) -> None:
    folder = tmp_path / "simple index" / "x"
    folder.mkdir(parents=True)
    (folder / "index.html").write_bytes(PAGE)
    page = client.get_page(folder.as_uri())
    assert (page.body, page.content_type) == (PAGE, "text/html")
    assert page.final_url == (folder / "index.html").as_uri()
    assert client.get_page(folder.as_uri() + "/index.html#fragment").body == PAGE
    file = client.open((folder / "index.html").as_uri())
    assert file.read_tail(4) == (len(PAGE), PAGE[-4:])
    assert not file.remote
    file.close()


def test_file_urls_that_lead_nowhere_say_so(client: HttpClient, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no file .*index\.html"):
        client.get_page(tmp_path.as_uri())
    with pytest.raises(NotFoundError, match="there is no file"):
        client.open((tmp_path / "absent.whl").as_uri())
    with pytest.raises(SourceError, match="expected file:///an/absolute/path"):
        client.get_page("file://elsewhere.example.org/x")
    (tmp_path / "index.html").write_bytes(PAGE)
    with pytest.raises(SourceError, match="is too large; expected at most 10 bytes"):
        client.get_page(tmp_path.as_uri(), largest=10)


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ({}, 1),
        ({"Cache-Control": "public"}, 1),
        ({"Cache-Control": "no-cache"}, 2),
        ({"Cache-Control": "max-age=0"}, 2),
        ({"Cache-Control": "no-store"}, 2),
    ],
)
def test_a_page_is_reused_where_the_server_does_not_say_how_long(
    make_client: MakeClient, tmp_path: Path, headers: dict[str, str], asked: int
) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": Resource(PAGE, headers=headers)}) as server:
        for _ in range(2):
            make_client(cache).get_page(server.url("/x/"), reuse=600.0)
        assert len(server.requests) == asked
    cache.close()


def test_a_page_is_not_reused_for_longer(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": PAGE}) as server:
        page = server.url("/x/")
        make_client(cache).get_page(page, reuse=600.0)
        held = cache.page(page, "")
        assert held is not None
        cache.store_page(page, "", replace(held, fresh_until=held.fresh_until - 601, fetched=held.fetched - 601))
        make_client(cache).get_page(page, reuse=600.0)
        assert len(server.requests) == 2
    cache.close()


def test_refresh_asks_for_each_page_once_more(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": Resource(PAGE, behave=[change_to(b"new")])}) as server:
        make_client(cache).get_page(server.url("/x/"), reuse=600.0)
        refreshing = make_client(cache, refresh=True)
        bodies = [refreshing.get_page(server.url("/x/"), reuse=600.0).body for _ in range(3)]
        assert bodies == [b"new"] * 3
        assert len(server.requests) == 2
    cache.close()


def test_what_has_the_stated_hash_is_not_asked_for(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x": PAGE}) as server:
        right = {"sha256": hashlib.sha256(PAGE).hexdigest()}
        for stated in (right, right, {"sha256": "0" * 64}, {"strange": "1"}, {}):
            make_client(cache, refresh=True).get_page(server.url("/x"), stated=stated)
        assert len(server.requests) == 4
    cache.close()


def test_what_a_login_opened_is_not_for_who_has_none(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/x/": PAGE}, behave=[basic_auth("user", "s3cret")]) as server:
        with_login = server.url("/x/", credentials="user:s3cret")
        for _ in range(2):
            make_client(cache).get_page(with_login, reuse=600.0)
        asked = len(server.requests)
        with pytest.raises(AuthenticationError):
            make_client(cache).get_page(server.url("/x/"), reuse=600.0)
        assert len(server.requests) > asked
    cache.close()
