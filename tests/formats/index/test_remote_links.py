"""Allowed links of a server's page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import unescape

import pytest

from wheel_checks.formats.index.page import IndexPage, parse_index_page
from wheel_checks.formats.index.remote_links import why_refused

NAME = "demo-1.0-py3-none-any.whl"
PAGE = "https://index.example.org/simple/demo/"

OF_THIS_MACHINE = [
    f"file:///etc/{NAME}",
    f"FILE:///etc/{NAME}",
    f"file://localhost/etc/{NAME}",
    f"file://host/share/{NAME}",
    f"file:/etc/{NAME}",
    f"fi&#10;le:///etc/{NAME}",
    f" file:///etc/{NAME}",
    f"&#1;file:///etc/{NAME}",
    f"file:///etc/%64emo-1.0-py3-none-any.whl#sha256={'0' * 64}",
    f"file:///etc/{NAME}?x=https://files.example.org/",
]
ON_THIS_MACHINE = [
    "127.0.0.1",
    "127.0.0.1:8080",
    "user:password@127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0.0.0.0",
    "[::1]",
    "[::1]:80",
    "[::]",
    "[::ffff:127.0.0.1]",
    "localhost",
    "LOCALHOST.",
    "index.localhost",
    "169.254.169.254",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[::ffff:169.254.169.254]",
    "localhost\\@files.example.org",
]
ELSEWHERE = ["files.example.org", "10.1.2.3", "192.168.0.9:3141", "172.16.0.1", "[fd00::1]", "localhost.example.org"]
OTHER_KINDS = [f"ftp://files.example.org/{NAME}", f"data:application/zip;base64,{NAME}", f"javascript:x/{NAME}"]


def html(link: str, url: str = PAGE, base: str = "") -> IndexPage:
    return parse_index_page(f'{base}<a href="{link}">x</a>'.encode(), "text/html", url, "the index")


def in_json(link: str) -> IndexPage:
    file = {"filename": NAME, "url": unescape(link), "hashes": {}, "core-metadata": True}
    body = json.dumps({"meta": {"api-version": "1.0"}, "files": [file]}).encode()
    return parse_index_page(body, "application/vnd.pypi.simple.v1+json", PAGE, "the index")


def refused(pages: Iterable[IndexPage]) -> list[bool]:
    return [page.files == () and [link.file_name for link in page.refused] == [NAME] for page in pages]


@pytest.mark.parametrize("link", OF_THIS_MACHINE)
def test_a_page_of_a_server_leads_to_no_file_of_this_machine(link: str) -> None:
    pages = [html(link), in_json(link), html(link, "http://127.0.0.1:8080/simple/demo/")]
    assert refused(pages) == [True, True, True]
    assert {link.why for page in pages for link in page.refused} == {"is a file on this host"}
    assert all(link.followed for page in pages for link in page.refused)


def test_a_base_leads_to_no_file_of_this_machine_either() -> None:
    assert refused([html(NAME, base='<base href="file:///etc/">')]) == [True]
    assert refused([html(NAME, base='<base href="//127.0.0.1/">')]) == [True]


@pytest.mark.parametrize("host", ON_THIS_MACHINE)
def test_a_page_of_a_server_leads_to_no_server_on_this_machine(host: str) -> None:
    links = [f"http://{host}/{NAME}", f"https://{host}/{NAME}", f"//{host}/{NAME}"]
    assert refused([*map(html, links), *map(in_json, links)]) == [True] * 6


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_page_of_a_server_leads_to_other_servers_of_private_networks_too(host: str) -> None:
    page = html(f"http://{host}/{NAME}")
    assert [file.url for file in page.files] == [f"http://{host}/{NAME}"]


@pytest.mark.parametrize("link", OTHER_KINDS)
def test_other_kinds_of_addresses_are_named_and_no_installer_follows_them(link: str) -> None:
    for page in (html(link), in_json(link)):
        assert page.files == ()
        assert [link.followed for link in page.refused] == [False]


@pytest.mark.parametrize("link", ["javascript:history.back()", "mailto:me@example.org", "#top", "file:///etc/"])
def test_what_is_no_file_is_not_worth_a_word(link: str) -> None:
    assert html(f'{link}"></a><a href="{NAME}').refused == ()


def test_a_page_on_this_machine_may_lead_to_this_machine() -> None:
    assert why_refused(f"file:///wheels/{NAME}", "file:///index/demo/index.html") == ""
    assert why_refused(f"http://127.0.0.1:1/{NAME}", "http://localhost:3141/simple/") == ""
    assert why_refused(f"http://169.254.1.2/{NAME}", "http://169.254.1.1/simple/") == ""
    assert why_refused(f"http://169.254.1.2/{NAME}", "http://localhost/simple/") == "is on a link-local address"


def test_many_refused_links_are_bounded() -> None:
    body = "".join(f'<a href="file:///x/demo-{n}-py3-none-any.whl">x</a>' for n in range(1000)).encode()
    assert len(parse_index_page(body, "text/html", PAGE, "the index").refused) == 20
