"""A page of an index is not trusted: its cost is bounded, and at most linear in its size."""

from __future__ import annotations

import json

import pytest

from tests.support.growth import assert_at_most_doubles, cost_of
from wheel_checks.errors import FormatError
from wheel_checks.formats.index import page as index_page
from wheel_checks.formats.index.page import IndexPage, parse_index_page

JSON = "application/vnd.pypi.simple.v1+json"
URL = "https://index.example.org/simple/demo/"


def page_of(count: int, kind: str, **more: object) -> bytes:
    """A page of ``count`` files, as indexes write them; ``more`` are keys of each file."""
    names = [f"demo-1.{number}-py3-none-any.whl" for number in range(count)]
    if kind == "html":
        return "".join(f'<a href="/files/{name}#sha256={"a" * 64}">{name}</a><br>\n' for name in names).encode()
    files = [{"filename": name, "url": f"/files/{name}", "hashes": {"sha256": "a" * 64}, **more} for name in names]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "demo", "files": files}).encode()


def parse(body: bytes, kind: str = "json") -> IndexPage:
    return parse_index_page(body, JSON if kind == "json" else "text/html", URL, URL)


@pytest.mark.parametrize("kind", ["json", "html"])
def test_the_cost_of_a_page_is_linear(kind: str) -> None:
    large = assert_at_most_doubles(lambda size: page_of(size, kind), lambda body: parse(body, kind), 500)
    assert large.peak < 1000 * 1_500  # bytes for a file, its texts included


@pytest.mark.parametrize("kind", ["json", "html"])
def test_a_page_may_have_so_many_files_and_no_more(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_page, "MOST_FILES", 100)
    assert len(parse(page_of(100, kind), kind).files) == 100
    with pytest.raises(FormatError, match="lists more than 100 files on one page; expected the files of one project"):
        parse(page_of(101, kind), kind)


@pytest.mark.parametrize("kind", ["json", "html"])
def test_files_beyond_the_bound_cost_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_page, "MOST_FILES", 100)

    def refused(body: bytes) -> None:
        with pytest.raises(FormatError):
            parse(body, kind)

    small, large = page_of(200, kind), page_of(4000, kind)
    assert cost_of(lambda: refused(large)).peak < cost_of(lambda: refused(small)).peak + 100_000


@pytest.mark.parametrize(
    "entry",
    [{"x": "y" * 70_000}, {"x": [[]] * 40_000}, {"url": "/" + "y" * 70_000 + "/demo-1.0-py3-none-any.whl"}],
    ids=["text", "lists", "address"],
)
def test_an_entry_of_absurd_length_is_refused(entry: dict[str, object]) -> None:
    with pytest.raises(FormatError, match=r"lists an entry of \d+,\d+ characters; expected at most 65,536"):
        parse(page_of(1, "json", **entry))


def test_a_link_of_absurd_length_is_refused() -> None:
    with pytest.raises(FormatError, match=r"lists a link of 70,\d+ characters; expected at most 65,536"):
        parse(b'<a href="/%s/demo-1.0-py3-none-any.whl">' % (b"y" * 70_000), "html")


@pytest.mark.parametrize("kind", ["json", "html"])
def test_a_requires_python_of_absurd_length_is_refused(kind: str) -> None:
    condition = ",".join([">=3.8"] * 200)
    json_page = page_of(1, "json", **{"requires-python": condition})
    html_page = f'<a href="demo-1.0-py3-none-any.whl" data-requires-python="{condition}">'.encode()
    with pytest.raises(FormatError, match="lists a Requires-Python of 1,199 characters; expected at most 300"):
        parse(json_page if kind == "json" else html_page, kind)


def test_too_many_conditions_are_refused() -> None:
    def page(count: int) -> bytes:
        names = (f"demo-1.{number}-py3-none-any.whl" for number in range(2 * count))
        files = [
            {"filename": name, "url": name, "requires-python": f">=3.{number % count}"}
            for number, name in enumerate(names)
        ]
        return json.dumps({"files": files}).encode()

    assert len(parse(page(1000)).files) == 2000
    with pytest.raises(FormatError, match="lists more than 1,000 different Requires-Python"):
        parse(page(1001))


@pytest.mark.parametrize(
    "page",
    [
        b"<a " + b"x=y " * 20_000 + b">",
        b"<a " + b"".join(b"x%d " % number for number in range(20_000)) + b">",
        b"".join(b"<x%d>" % number for number in range(20_000)),
        b"<a " * 20_000,
        b"<a href='" + b"x" * 2_000_000,
        b"<!-- " * 20_000,
        b"<script>" * 20_000,
        b"<base>" * 20_000,
    ],
    ids=["attribute", "attributes", "tags", "open tags", "open value", "comments", "scripts", "bases"],
)
def test_html_without_files_takes_no_memory(page: bytes) -> None:
    def run() -> None:
        try:
            assert parse(page, "html").files == ()
        except FormatError as error:
            assert "no HTML" in str(error) or "login" in str(error)  # noqa: PT017  # some pages have no tag

    assert cost_of(run).peak < 200_000


def test_json_without_files_takes_no_memory() -> None:
    page = b'{"files": [], "versions": [' + b"[]," * 20_000 + b"[]]}"
    assert cost_of(lambda: parse(page)).peak < 100_000


def test_a_base_counts_wherever_it_stands() -> None:
    link, base = b'<a href="demo-1.0-py3-none-any.whl">x</a>', b'<BASE href="https://files.example.org/here/">'
    for page in (link + base, base + link):
        assert [file.url for file in parse(page, "html").files] == [
            "https://files.example.org/here/demo-1.0-py3-none-any.whl"
        ]


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "iso-8859-1"])
def test_the_charset_of_a_page_counts(charset: str) -> None:
    page = '<a href="/d\xe9mo-1.0-py3-none-any.whl">x</a>'.encode(charset)
    (file,) = parse_index_page(page, f"text/html; charset={charset}", URL, URL).files
    assert file.file_name == "d\xe9mo-1.0-py3-none-any.whl"
