"""Listing a project: several indexes and find-links places, each on a real loopback server or folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.range_server import RangeServer, Resource, basic_auth, fail
from wheel_checks.errors import FormatError, NotFoundError, SourceError, UsageError
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex

OLD = "foo_bar-1.0-py3-none-any.whl"
NEW = "foo_bar-2.0-py3-none-any.whl"


def page(*names: str) -> bytes:
    return b"<!DOCTYPE html>" + "".join(f'<a href="/files/{name}">{name}</a>' for name in names).encode()


@pytest.fixture
def client() -> Iterator[HttpClient]:
    client = HttpClient()
    yield client
    client.close()


def names(client: HttpClient, config: IndexConfig, project: str = "Foo.Bar") -> list[str]:
    return [file.file_name for file in SimpleIndex(client, config).files(project).files]


def test_one_index(client: HttpClient) -> None:
    with RangeServer({"/simple/foo-bar/": page(OLD, NEW)}) as server:
        listing = SimpleIndex(client, IndexConfig((server.url("/simple"),))).files("Foo.Bar")
    assert [file.url for file in listing.files] == [server.url(f"/files/{OLD}"), server.url(f"/files/{NEW}")]
    assert [file.index for file in listing.files] == [server.url("/simple")] * 2
    assert [request.path for request in server.requests] == ["/simple/foo-bar/"]
    assert "application/vnd.pypi.simple.v1+json" in server.requests[0].headers["accept"]


def test_json_is_read_as_well(client: HttpClient) -> None:
    body = b'{"files": [{"filename": "foo_bar-1.0.tar.gz", "url": "f.tar.gz", "hashes": {}}]}'
    json = Resource(body, content_type="application/vnd.pypi.simple.v1+json; charset=utf-8")
    with RangeServer({"/simple/foo-bar/": json}) as server:
        listing = SimpleIndex(client, IndexConfig((server.url("/simple/"),))).files("foo-bar")
    assert [file.url for file in listing.files] == [server.url("/simple/foo-bar/f.tar.gz")]


def test_the_candidates_of_several_indexes_are_one_list(client: HttpClient) -> None:
    with RangeServer({"/a/foo-bar/": page(OLD), "/b/foo-bar/": page(NEW)}) as server:
        indexes = (server.url("/a/"), server.url("/empty/"), server.url("/b/"))
        listing = SimpleIndex(client, IndexConfig(indexes)).files("foo_bar")
    assert [file.file_name for file in listing.files] == [OLD, NEW]
    assert listing.not_found == (server.url("/empty/"),)


def test_with_uvs_strategy_the_first_index_that_knows_the_project_counts(client: HttpClient) -> None:
    with RangeServer({"/a/foo-bar/": page(OLD), "/b/foo-bar/": page(NEW)}) as server:
        indexes = (server.url("/empty/"), server.url("/a/"), server.url("/b/"))
        assert names(client, IndexConfig(indexes, strategy=FIRST_INDEX)) == [OLD]


def test_what_the_strategy_passes_over_is_listed_for_who_asks_for_every_place(client: HttpClient) -> None:
    with RangeServer({"/a/foo-bar/": page(OLD), "/b/foo-bar/": page(NEW), "/c/foo-bar/": b"<form>"}) as server:
        indexes = tuple(server.url(f"/{name}/") for name in ("none", "a", "b", "c"))
        index = SimpleIndex(client, IndexConfig(indexes, strategy=FIRST_INDEX))
        listing = index.files("foo-bar", every=True)
    assert [(place.index, place.known, place.counts, len(place.files)) for place in listing.places] == [
        (indexes[0], False, True, 0),
        (indexes[1], True, True, 1),
        (indexes[2], True, False, 1),
        (indexes[3], True, False, 0),
    ]
    assert [file.file_name for file in listing.files] == [OLD]
    assert "such as a login page" in listing.places[3].unread


def test_an_index_that_is_passed_over_and_does_not_answer_is_asked_once(client: HttpClient) -> None:
    broken = Resource(behave=[fail(403)])
    demo = page("demo-1.0.tar.gz")
    pages: dict[str, bytes | Resource | Path] = {}
    pages |= {"/a/foo-bar/": page(OLD), "/a/demo/": demo, "/b/foo-bar/": broken, "/b/demo/": demo}
    pages["/b/other/"] = page("other-1.0.tar.gz")  # its own projects are still requested
    with RangeServer(pages) as server:
        config = IndexConfig((server.url("/a/"), server.url("/b/")), strategy=FIRST_INDEX)
        index = SimpleIndex(client, config)
        unread = [index.files(name, every=True).places[1].unread for name in ("foo-bar", "demo")]
        assert server.requests_for("/b/demo/") == []
        assert [file.file_name for file in index.files("other", every=True).files] == ["other-1.0.tar.gz"]
    assert unread[0] == unread[1] != ""


def test_links_to_this_machine_are_no_files_and_are_named(client: HttpClient, tmp_path: Path) -> None:
    (tmp_path / OLD).write_bytes(b"12345")
    body = f'<a href="{(tmp_path / OLD).as_uri()}">x</a><a href="file:///x/other-1.0.tar.gz">x</a>'.encode()
    with RangeServer({"/simple/foo-bar/": body, "/links.html": body}) as server:
        config = IndexConfig((server.url("/simple/"),), (server.url("/links.html"),))
        listing = SimpleIndex(client, config).files("foo-bar")
    assert listing.files == ()
    assert [[link.file_name for link in place.refused] for place in listing.places] == [
        [OLD],
        [OLD, "other-1.0.tar.gz"],
    ]


def test_an_unknown_project_names_every_index_that_was_asked_without_credentials(client: HttpClient) -> None:
    with RangeServer({}) as server, pytest.raises(NotFoundError) as caught:
        SimpleIndex(client, IndexConfig((server.url("/a/", credentials="me:secret"), server.url("/b/")))).files("nope")
    assert f"no project 'nope' is known to {server.url('/a/')}, {server.url('/b/')}" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_index_that_fails_stops_the_search_as_it_stops_an_installer(client: HttpClient) -> None:
    broken = Resource(behave=[fail(403)])
    with RangeServer({"/a/foo-bar/": page(OLD), "/b/foo-bar/": broken}) as server, pytest.raises(SourceError):
        names(client, IndexConfig((server.url("/a/"), server.url("/b/"))))


def test_a_login_page_is_no_index(client: HttpClient) -> None:
    with (
        RangeServer({"/simple/foo-bar/": b"<html><form><input type=password></form></html>"}) as server,
        pytest.raises(FormatError, match=r"such as a login page"),
    ):
        names(client, IndexConfig((server.url("/simple/"),)))


def test_credentials_of_the_index_reach_no_file_url(client: HttpClient) -> None:
    closed = Resource(page(OLD), content_type="text/html", behave=[basic_auth("me", "secret")])
    with RangeServer({"/simple/foo-bar/": closed}) as server:
        config = IndexConfig((server.url("/simple/", credentials="me:secret"),))
        listing = SimpleIndex(client, config).files("foo-bar")
    assert [file.url for file in listing.files] == [server.url(f"/files/{OLD}")]
    assert "secret" not in repr(listing)


def test_an_index_on_disk(client: HttpClient, tmp_path: Path) -> None:
    project = tmp_path / "simple" / "foo-bar"
    project.mkdir(parents=True)
    (project / "index.html").write_text(f'<a href="../../{OLD}">x</a>')
    listing = SimpleIndex(client, IndexConfig(((tmp_path / "simple").as_uri(),))).files("foo-bar")
    assert [file.url for file in listing.files] == [(tmp_path / OLD).as_uri()]


def test_find_links_to_a_folder_a_page_and_a_wheel(client: HttpClient, tmp_path: Path) -> None:
    for name in (OLD, "foo_bar-1.0.tar.gz", "other-1.0-py3-none-any.whl", "notes.txt"):
        (tmp_path / name).write_bytes(b"12345")
    with RangeServer({"/links.html": page(NEW, "foo_bar_baz-1.0.tar.gz")}) as server:
        wheel = server.url("/foo_bar-3.0-py3-none-any.whl")
        places = (tmp_path.as_uri(), server.url("/links.html"), wheel, server.url("/other-1.0-py3-none-any.whl"))
        listing = SimpleIndex(client, IndexConfig((), places)).files("foo-bar")
    assert [file.file_name for file in listing.files] == [
        "foo_bar-1.0-py3-none-any.whl",
        "foo_bar-1.0.tar.gz",
        NEW,
        wheel.rpartition("/")[2],
    ]
    assert [file.size for file in listing.files[:2]] == [5, 5]


def test_what_find_links_offers_is_added_to_the_index(client: HttpClient, tmp_path: Path) -> None:
    (tmp_path / NEW).touch()
    with RangeServer({"/simple/foo-bar/": page(OLD)}) as server:
        assert names(client, IndexConfig((server.url("/simple/"),), (tmp_path.as_uri(),))) == [NEW, OLD]
        assert names(client, IndexConfig((server.url("/empty/"),), (tmp_path.as_uri(),))) == [NEW]


def test_a_find_links_folder_that_is_not_there_is_an_error(client: HttpClient, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"missing"):
        names(client, IndexConfig((), ((tmp_path / "missing").as_uri(),)))


def test_without_any_place_there_is_nothing_to_ask(client: HttpClient) -> None:
    with pytest.raises(UsageError, match=r"no index is configured"):
        names(client, IndexConfig(()))


@pytest.mark.parametrize("project", ["", "a/b", "..", "foo?", "foo bar", "-foo"])
def test_a_name_that_no_project_can_have_is_refused_before_asking(client: HttpClient, project: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be the name of a project"):
        names(client, IndexConfig(("http://127.0.0.1:9/simple/",)), project)
