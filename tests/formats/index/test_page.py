"""Index pages: given these bytes, these files."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.index.file_names import is_file_of, sdist_version
from wheel_checks.formats.index.page import IndexFile, parse_index_page

URL = "https://index.example.org/simple/foo/"
INDEX = "https://index.example.org/simple/"
NAME = "foo-1.0-py3-none-any.whl"
SHA = "0123456789abcdef" * 4
JSON = "application/vnd.pypi.simple.v1+json"


def from_html(body: str, url: str = URL) -> tuple[IndexFile, ...]:
    return parse_index_page(body.encode(), "text/html; charset=utf-8", url, INDEX).files


def anchor(attributes: str) -> IndexFile:
    (file,) = from_html(f"<a {attributes}>{NAME}</a>")
    return file


def from_json(*files: object, **page: object) -> tuple[IndexFile, ...]:
    body = json.dumps({"meta": {"api-version": "1.1"}, "files": files, **page}).encode()
    return parse_index_page(body, JSON, URL, INDEX).files


def entry(**fields: object) -> IndexFile:
    (file,) = from_json({"filename": NAME, "url": f"https://files.example.org/{NAME}", "hashes": {}, **fields})
    return file


@pytest.mark.parametrize(
    ("link", "address"),
    [
        (
            "https://index.example.org/integrity/foo/1.0/provenance",
            "https://index.example.org/integrity/foo/1.0/provenance",
        ),
        ("/integrity/foo#part", "https://index.example.org/integrity/foo"),
        ("foo.provenance", "https://index.example.org/simple/foo/foo.provenance"),
        ("file:///etc/passwd", ""),
        ("http://127.0.0.1/provenance", ""),
        ("javascript:alert(1)", ""),
        ("https://[::1", ""),
        ("", ""),
    ],
)
def test_where_the_attestations_are(link: str, address: str) -> None:
    assert anchor(f'href="{NAME}" data-provenance="{link}"').provenance == address
    assert entry(provenance=link).provenance == address


@pytest.mark.parametrize("link", [None, True, 7, {}, "https://index.example.org/" + "a" * 70_000])
def test_what_names_no_attestations(link: object) -> None:
    if isinstance(link, str):
        with pytest.raises(FormatError, match="at most 65,536"):
            entry(provenance=link)
    else:
        assert entry(provenance=link).provenance == ""


def test_a_page_as_an_index_writes_it() -> None:
    page = f"""<!DOCTYPE html>
    <html><head><meta name="pypi:repository-version" content="1.4"><title>Links for foo</title></head><body>
    <h1>Links for foo</h1>
    <a href="https://files.example.org/a/{NAME}#sha256={SHA}" data-requires-python="&gt;=3.10,&lt;4"
       data-dist-info-metadata="sha256=dead" data-core-metadata="sha256={SHA}" data-yanked="broken &amp; old">{NAME}</a>
    <br/><a href="../../files/foo-1.0.tar.gz">foo-1.0.tar.gz</a>
    </body></html>"""
    assert from_html(page) == (
        IndexFile(
            NAME,
            f"https://files.example.org/a/{NAME}",
            {"sha256": SHA},
            requires_python=">=3.10,<4",
            yanked="broken & old",
            core_metadata={"sha256": SHA},
            index=INDEX,
        ),
        IndexFile("foo-1.0.tar.gz", "https://index.example.org/files/foo-1.0.tar.gz", index=INDEX),
    )


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", None),
        ("data-core-metadata", {}),
        ('data-core-metadata="true"', {}),
        ('data-core-metadata="false" data-dist-info-metadata="true"', None),
        (f'data-dist-info-metadata="sha256={SHA}"', {"sha256": SHA}),
        (f"data-dist-info-metadata='true' data-core-metadata=sha256={SHA}", {"sha256": SHA}),
    ],
)
def test_the_offer_of_a_sidecar_in_html(attributes: str, expected: dict[str, str] | None) -> None:
    assert anchor(f'href="{NAME}" {attributes}').core_metadata == expected


@pytest.mark.parametrize(
    ("attributes", "expected"), [("", None), ("data-yanked", ""), ('data-yanked=""', ""), ("DATA-YANKED='why'", "why")]
)
def test_yanked_with_and_without_a_reason(attributes: str, expected: str | None) -> None:
    assert anchor(f'href="{NAME}" {attributes}').yanked == expected


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("", {}),
        ("#", {}),
        (f"#sha256={SHA.upper()}", {"sha256": SHA}),
        (f"#egg=foo&md5={SHA[:32]}&sha256={SHA}", {"md5": SHA[:32], "sha256": SHA}),
        ("#no-equals-sign", {}),
        ("#sha256=not-hex", {}),
    ],
)
def test_hashes_of_the_fragment(fragment: str, expected: dict[str, str]) -> None:
    assert anchor(f'href="{NAME}{fragment}"').hashes == expected


@pytest.mark.parametrize(
    ("base", "link", "url"),
    [
        ("", f"../../p/{NAME}", f"https://index.example.org/p/{NAME}"),
        ("", f"/p/{NAME}", f"https://index.example.org/p/{NAME}"),
        ("", f"//cdn.example.org/{NAME}", f"https://cdn.example.org/{NAME}"),
        ("", f" {NAME} ", f"{URL}{NAME}"),
        ('<base href="https://cdn.example.org/x/">', NAME, f"https://cdn.example.org/x/{NAME}"),
        ('<base href="../bar/"><base href="/baz/">', NAME, f"https://index.example.org/simple/bar/{NAME}"),
        ('<base href="http://[">', NAME, f"{URL}{NAME}"),
        ("", f"{NAME}?a=1&amp;region=2", f"{URL}{NAME}?a=1&region=2"),
        ("", f"{NAME}?a=1&region=2", f"{URL}{NAME}?a=1&region=2"),
    ],
)
def test_links_are_resolved_against_the_page_or_its_base(base: str, link: str, url: str) -> None:
    (file,) = from_html(f'<html>{base}<a href="{link}">{NAME}</a>')
    assert (file.url, file.file_name) == (url, NAME)


def test_the_base_counts_for_links_before_it() -> None:
    (file,) = from_html(f'<a href="{NAME}">{NAME}</a><base href="https://cdn.example.org/">')
    assert file.url == f"https://cdn.example.org/{NAME}"


def test_a_percent_encoded_name_is_decoded_in_the_name_only() -> None:
    file = anchor('href="https://files.example.org/foo-1.0%2Bcu130-py3-none-any.whl"')
    assert file.file_name == "foo-1.0+cu130-py3-none-any.whl"
    assert file.url == "https://files.example.org/foo-1.0%2Bcu130-py3-none-any.whl"


def test_credentials_of_the_page_do_not_reach_its_links() -> None:
    (file,) = from_html(f'<a href="{NAME}">', url="https://me:secret@index.example.org/simple/foo/")
    assert file.url == f"{URL}{NAME}"


@pytest.mark.parametrize(
    "malformed",
    [
        "<a>no link</a>",
        '<a href="">empty</a>',
        f"<a href=\"javascript:alert('{NAME}')\">script</a>",
        f'<a href="ftp://example.org/{NAME}">ftp</a>',
        f'<a href="data:,{NAME}">data</a>',
        f'<a href="http://[{NAME}">no host</a>',
        '<a href="https://foo-1.0.zip">a host</a>',
        '<a href="../">up</a>',
        '<a href="readme.html">a page</a>',
        f'<a href="foo%0a{NAME}">a line break</a>',
        f'<a href="{"x" * 300}.whl">long</a>',
        f'<!-- <a href="{NAME}">a comment</a> -->',
        f"<script>'<a href=\"{NAME}\">'</script>",
        f'<a <a href="{NAME}"',
    ],
)
def test_malformed_anchors_are_skipped(malformed: str) -> None:
    files = from_html(f'<a href="foo-2.0.zip">ok</a>{malformed}')
    assert [file.file_name for file in files] == ["foo-2.0.zip"]


def test_an_entry_as_an_index_writes_it() -> None:
    file = entry(
        hashes={"sha256": SHA, "md5": None},
        **{
            "requires-python": ">=3.10",
            "yanked": "broken",
            "size": 530712279,
            "upload-time": "2026-01-02T03:04:05.000000Z",
            "core-metadata": {"sha256": SHA},
        },
    )
    assert file == IndexFile(
        NAME,
        f"https://files.example.org/{NAME}",
        {"sha256": SHA},
        ">=3.10",
        "broken",
        {"sha256": SHA},
        530712279,
        "2026-01-02T03:04:05.000000Z",
        INDEX,
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"core-metadata": True}, {}),
        ({"core-metadata": False, "dist-info-metadata": True}, None),
        ({"dist-info-metadata": {"sha256": SHA}}, {"sha256": SHA}),
        ({"data-dist-info-metadata": True}, None),
    ],
)
def test_the_offer_of_a_sidecar_in_json(fields: dict[str, object], expected: dict[str, str] | None) -> None:
    assert entry(**fields).core_metadata == expected


@pytest.mark.parametrize(("yanked", "expected"), [(False, None), (True, ""), ("", ""), ("why", "why"), (None, None)])
def test_yanked_in_json(yanked: object, expected: str | None) -> None:
    assert entry(yanked=yanked).yanked == expected


@pytest.mark.parametrize("size", [-1, "5", True, None, 1.5])
def test_a_size_that_is_none_is_not_told(size: object) -> None:
    assert entry(size=size).size is None


def test_relative_links_in_json() -> None:
    assert entry(url=f"../{NAME}").url == f"https://index.example.org/simple/{NAME}"


@pytest.mark.parametrize(
    "malformed",
    [
        7,
        {},
        {"filename": NAME},
        {"filename": 1, "url": "x"},
        {"filename": "a/b", "url": "x"},
        {"filename": "\ud800", "url": "x"},
    ],
)
def test_malformed_entries_are_skipped(malformed: object) -> None:
    assert len(from_json(malformed, {"filename": NAME, "url": NAME})) == 1


@pytest.mark.parametrize(
    ("version", "known"), [("1.0", True), ("1.99", True), ("2.0", False), ("10.0", False), ("one", False)]
)
def test_a_newer_minor_version_is_read_and_a_newer_major_one_refused(version: str, known: bool) -> None:
    html = f'<meta name="pypi:repository-version" content="{version}"><a href="{NAME}">'
    if known:
        assert len(from_html(html)) == 1
        assert from_json(meta={"api-version": version}) == ()
        return
    with pytest.raises(
        FormatError, match=rf"speaks version '{version}' of the repository API; expected a version 1\.x"
    ):
        from_html(html)
    with pytest.raises(FormatError, match=rf"speaks version '{version}'"):
        from_json(meta={"api-version": version})


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/vnd.pypi.simple.v1+json; charset=UTF-8", '{"files": [{"filename": "foo-1.0.zip", "url": "a"}]}'),
        ("application/json", '{"files": [{"filename": "foo-1.0.zip", "url": "a"}]}'),
        ("", ' {"files": [{"filename": "foo-1.0.zip", "url": "a"}]}'),
        ("application/vnd.pypi.simple.v1+html", '<a href="foo-1.0.zip">'),
        ("Text/HTML", '<a href="foo-1.0.zip">'),
        ("", '<a href="foo-1.0.zip">'),
        ("text/html; charset=no-such-charset", '<a href="foo-1.0.zip">'),
        ("text/html; charset=punycode", '<a href="foo-1.0.zip">'),
        ("text/html; charset=\0", '<a href="foo-1.0.zip">'),
        ("text/html", '\ufeff<a href="foo-1.0.zip">'),
    ],
)
def test_the_content_type_decides(content_type: str, body: str) -> None:
    assert [file.file_name for file in parse_index_page(body.encode(), content_type, URL, INDEX).files] == [
        "foo-1.0.zip"
    ]


def test_the_charset_is_heeded() -> None:
    body = '<a href="foo-1.0.zip" data-yanked="gelöscht">'.encode("latin-1")
    assert parse_index_page(body, 'text/html; charset="ISO-8859-1"', URL, INDEX).files[0].yanked == "gelöscht"


@pytest.mark.parametrize(
    "empty",
    ["<!DOCTYPE html><html><h1>Links for foo</h1></html>", '<meta name="pypi:repository-version" content="1.0">'],
)
def test_an_index_page_may_list_nothing(empty: str) -> None:
    assert from_html(empty) == ()


@pytest.mark.parametrize(
    ("content_type", "body", "sentence"),
    [
        ("text/html", "<html><form action='/login'><input name=user></form>", r"such as a login page"),
        ("text/html", "", r"no HTML"),
        ("text/html", "Service unavailable", r"no HTML"),
        ("application/octet-stream", "PK", r"the content type 'application/octet-stream'; expected an index page"),
        (JSON, "<html>", r"JSON that cannot be read"),
        (JSON, "[" * 200_000, r"JSON that cannot be read"),
        (JSON, "[]", r"JSON that is not a project page"),
        (JSON, '{"projects": []}', r'expected an object with a list of "files"'),
    ],
)
def test_what_is_no_index_page_is_said_in_a_sentence(content_type: str, body: str, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        parse_index_page(body.encode(), content_type, URL, INDEX)


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<a ", "<a href='", "<a x=", "<a\n", "<script>", "&", "<![", "</", "<a x "]
)
def test_a_page_of_unclosed_pieces_is_read_in_linear_time(piece: str) -> None:
    # html.parser takes hours for these; were ours not linear, this test would not end
    with pytest.raises(FormatError):
        from_html(piece * (1_000_000 // len(piece)))


html_pieces = st.sampled_from(
    [
        "<a ",
        "href=",
        '"',
        "'",
        NAME,
        ">",
        "</a>",
        "<base ",
        "<meta ",
        "<!--",
        "-->",
        "&#",
        "&lt;",
        "#sha256=",
        "\0",
        "<script",
        "http://[",
        "=",
    ]
)


@given(st.binary() | st.lists(html_pieces).map("".join).map(str.encode), st.sampled_from(["text/html", JSON, ""]))
@example(b"<a href=http://[>", "text/html")
@example(b'<a href="&#99999999;">', "text/html")
def test_no_bytes_whatever_crash(body: bytes, content_type: str) -> None:
    try:
        files = parse_index_page(body, content_type, URL, INDEX).files
    except FormatError as error:
        assert INDEX in str(error)  # noqa: PT017  # either outcome is right
    else:
        assert all(file.url.startswith(("http:", "https:")) for file in files)


json_values: st.SearchStrategy[object] = st.sampled_from(
    [None, True, -1, 1e400, "", "x", NAME, "http://[", [], [[]], {}, {"": ""}, {"sha256": SHA}, {"a": []}]
)
fields = st.sampled_from(
    ["filename", "url", "hashes", "size", "yanked", "core-metadata", "requires-python", "upload-time"]
)


@given(st.lists(st.dictionaries(fields, json_values)), json_values)
def test_no_json_whatever_crashes(files: list[dict[str, object]], meta: object) -> None:
    try:
        assert len(from_json(*files, meta=meta)) <= len(files)
    except FormatError as error:
        assert "repository API" in str(error)  # noqa: PT017  # the only reason left


@pytest.mark.parametrize(
    ("file_name", "project", "version"),
    [
        ("foo-1.0.tar.gz", "foo", "1.0"),
        ("Foo.Bar-1.0-1.zip", "foo-bar", "1.0-1"),
        ("foo-bar-1.0.tar.bz2", "Foo_Bar", "1.0"),
        ("foo-bar-1.0.tar.gz", "foo", "bar-1.0"),
        ("foo-1.0.exe", "foo", None),
        ("bar-1.0.tar.gz", "foo", None),
    ],
)
def test_the_version_in_the_name_of_a_source_archive(file_name: str, project: str, version: str | None) -> None:
    assert sdist_version(file_name, project) == version


@pytest.mark.parametrize(
    ("file_name", "project", "expected"),
    [
        ("foo_bar-1.0-py3-none-any.whl", "Foo.Bar", True),
        ("foo_bar-1.0-py3-none-any.whl", "foo", False),
        ("foo-bar-1.0.tar.gz", "foo-bar", True),
        ("foo-1.0.tar.gz", "foo-bar", False),
    ],
)
def test_whose_file_it_is(file_name: str, project: str, expected: bool) -> None:
    assert is_file_of(file_name, project) is expected
