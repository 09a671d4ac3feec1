"""A page of a simple repository (PEP 503, 592, 629, 658, 691, 700, 714, 740), HTML or JSON, and find-links pages."""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from wheel_checks.errors import FormatError
from wheel_checks.formats.file_names import SDIST_SUFFIXES, VARIANTS_SUFFIX, WHEEL_SUFFIX
from wheel_checks.formats.html_tags import start_tags
from wheel_checks.formats.json_spans import Span, elements, members, value
from wheel_checks.formats.remote_links import Refused, why_refused

_LISTED = (WHEEL_SUFFIX, VARIANTS_SUFFIX, *SDIST_SUFFIXES)  # what an HTML page is searched for

KNOWN_API_VERSION = 1  # the major version of the repository API that this module understands (PEP 629)

# Attackers and proxies choose the charset; codecs that are slow, or are no character sets at all, are not tried.
_CHARSETS = frozenset({"utf-8", "ascii", "iso8859-1", "iso8859-15", "cp1252", "utf-16"})
_LONGEST_NAME = 255  # characters in a file name, as in the file systems that files are installed from
MOST_FILES = 100_000
"""Files of one page that are read. The pages with most files have 15,000 of them, in 7 MB."""
_LONGEST_ENTRY = 65_536  # bytes of a file's JSON, and characters of a link in HTML
_LONGEST_CONDITION = 300  # characters of Requires-Python
_MOST_CONDITIONS = 1_000  # of these on one page: each is parsed
_MOST_REFUSED = 20  # links of one page that are named
_BLANKS = "".join(map(chr, range(0x21)))  # around an address they do not count, nor do line breaks in it (WHATWG URL)
_BASE = re.compile(rb"<base[\s/>]", re.IGNORECASE)
_LINE_BREAKS = re.compile("[\t\r\n]")
_DIGEST = re.compile(r"[0-9a-fA-F]{32,128}")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file that an index lists. ``url`` is absolute and may hold none of our credentials.

    ``hashes`` maps algorithm to hex digest. ``yanked`` is None when the file is not yanked, else the reason ("" when
    none is given). ``core_metadata`` is None when no sidecar METADATA (``url + ".metadata"``) is offered, else the
    sidecar's hashes (empty when the index gives none). ``size`` is in bytes, None when the index does not say.
    ``index`` is the index or page that listed it. ``provenance`` is the address of its attestations (PEP 740), "" when
    the index names none, or one that it may not lead to.
    """

    file_name: str
    url: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    requires_python: str = ""
    yanked: str | None = None
    core_metadata: Mapping[str, str] | None = None
    size: int | None = None
    upload_time: str = ""
    index: str = ""
    provenance: str = ""

    @property
    def is_wheel(self) -> bool:
        """True when the name ends as a wheel's does."""
        return self.file_name.endswith(WHEEL_SUFFIX)


class OtherListing(NamedTuple):
    """Another entry with the name of a file. An installer ``may_take`` it instead: both are on indexes that count."""

    file: IndexFile
    may_take: bool


class IndexPage(NamedTuple):
    """What a page lists: the files, in its order, and those that it may not lead to."""

    files: tuple[IndexFile, ...]
    refused: tuple[Refused, ...] = ()


def file_from_url(url: str, index: str) -> IndexFile | None:
    """The file that a link leads to, its hashes from the fragment (PEP 503); None when the link leads to no file.

    Links that are not http, https or file (``javascript:``, ``mailto:``, ...) lead to no file.
    """
    address, _, fragment = url.partition("#")
    scheme, _, location = address.partition("?")[0].partition("://")
    _, _, file_name = location.rpartition("/")
    if scheme.lower() not in {"http", "https", "file"} or "/" not in location or not _is_url(address):
        return None
    if "%" in file_name:
        file_name = unquote(file_name).rpartition("/")[2]
    if not _is_file_name(file_name):
        return None
    pairs = (pair.partition("=") for pair in fragment.split("&")) if fragment else ()
    return IndexFile(file_name, address, _hashes((name, value) for name, _, value in pairs), index=index)


def parse_index_page(body: bytes, content_type: str, url: str, index: str) -> IndexPage:
    """The files that a page lists, in the order of the page, and those that it may not lead to.

    ``content_type`` is the HTTP header ("" if none exists), ``url`` the final address of the page, against which
    its relative links are resolved, ``index`` what ``IndexFile.index`` shall say. Entries that are malformed are
    skipped, as installers do; links that :func:`why_refused` refuses are no files. Raises FormatError when the page as
    a whole is not an index: neither HTML nor JSON, a major API version that is unknown (PEP 629), or an HTML page such
    as a login form; and for more than ``MOST_FILES`` files, or a file with an absurdly long entry.

    Entries are read one after the other: a page takes its own size in memory, and what its files take.
    """
    media_type, charset = _media_type(content_type)
    if charset != "utf-8":
        body = body.decode(charset, "replace").encode()
    body = body.removeprefix(codecs.BOM_UTF8)
    page_url = _without_credentials(url)
    if media_type.endswith("+json") or media_type == "application/json":
        return _parse_json(body, page_url, index)
    if media_type in {"text/html", "application/xhtml+xml"} or media_type.endswith("+html"):
        return _parse_html(body, page_url, index)
    if not media_type:
        return (_parse_json if body.lstrip().startswith(b"{") else _parse_html)(body, page_url, index)
    raise FormatError(
        f"{index} answered with the content type {media_type!r}",
        expected="an index page in HTML or JSON (PEP 503, PEP 691)",
        hint="check the address of the index",
    )


# JSON (PEP 691, 700, 714)


def _parse_json(body: bytes, url: str, index: str) -> IndexPage:
    try:
        page = members(body) if body.lstrip().startswith(b"{") else _no_object(body)
        files, meta = page.get("files"), page.get("meta")
        if files is None or body[files[0] : files[0] + 1] != b"[":
            raise FormatError(
                f"{index} answered with JSON that is not a project page",
                expected='an object with a list of "files" (PEP 691)',
                hint="check the address of the index",
            )
        about = value(body, meta) if meta is not None and meta[1] - meta[0] <= _LONGEST_ENTRY else None
        _check_api_version(about.get("api-version") if isinstance(about, dict) else None, index)
        return _page(_json_files(body, files, url, index), index)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{index} answered with JSON that cannot be read: {error}", expected="an index page as in PEP 691"
        ) from error


def _no_object(body: bytes) -> dict[str, Span]:
    """Nothing for another JSON value. Raises ValueError and RecursionError for what is not JSON."""
    value(body, (0, min(len(body), _LONGEST_ENTRY)))
    return {}


def _json_files(body: bytes, files: Span, url: str, index: str) -> Iterator[IndexFile | Refused | None]:
    for start, end in elements(body, files):
        if end - start > _LONGEST_ENTRY:
            raise _too_long(index, "an entry", end - start, _LONGEST_ENTRY)
        entry = value(body, (start, end))
        if isinstance(entry, dict):
            yield _json_file(entry, url, index)


def _json_file(entry: dict[str, Any], url: str, index: str) -> IndexFile | Refused | None:
    file_name, link = entry.get("filename"), entry.get("url")
    if not isinstance(file_name, str) or not isinstance(link, str) or not _is_file_name(file_name):
        return None
    linked = _resolve(link, url, index)
    if isinstance(linked, Refused):
        return linked._replace(file_name=file_name)
    if linked is None:
        return None
    size, yanked = entry.get("size"), entry.get("yanked")
    hashes = entry.get("hashes")
    sidecar = entry.get("core-metadata", entry.get("dist-info-metadata"))
    return IndexFile(
        file_name,
        linked.url,
        _hashes(hashes.items()) if isinstance(hashes, dict) else linked.hashes,
        requires_python=_text(entry.get("requires-python")),
        yanked=yanked if isinstance(yanked, str) else ("" if yanked is True else None),
        core_metadata=_hashes(sidecar.items()) if isinstance(sidecar, dict) else ({} if sidecar is True else None),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        upload_time=_text(entry.get("upload-time")),
        index=index,
        provenance=_address(entry.get("provenance"), url),
    )


# HTML (PEP 503, 592, 658, 714), and the pages that --find-links points to


def _parse_html(body: bytes, url: str, index: str) -> IndexPage:
    head = _Head()
    try:
        base = _without_credentials(urljoin(url, _base_of(body)))
    except ValueError:
        base = url
    page = _page((_html_file(anchor, base, url, index) for anchor in head.anchors(body)), index)
    _check_api_version(head.api_version, index)
    if not any(page) and head.api_version is None and (head.asks or not head.has_tags):
        what = "a page with a form or a script and no file, such as a login page" if head.has_tags else "no HTML"
        raise FormatError(
            f"{index} answered with {what}",
            expected="an index page that links to files (PEP 503)",
            hint="check the address of the index and your credentials for it",
        )
    return page


@dataclass(slots=True)
class _Head:
    """What a page says besides its links. ``asks`` is True for a page with a form or a script."""

    api_version: str | None = None
    asks: bool = False
    has_tags: bool = False

    def anchors(self, body: bytes) -> Iterator[Mapping[str, str | None]]:
        """The attributes of each link; on the way the rest of the page is noted."""
        for name, attributes in start_tags(body):
            self.has_tags = True
            if name == "a":
                yield attributes
            elif name in {"form", "input", "script"}:
                self.asks = True
            elif name == "meta" and attributes.get("name") == "pypi:repository-version":
                self.api_version = attributes.get("content") or ""


def _base_of(body: bytes) -> str:
    """What the page's links are relative to, "" for the page itself."""
    if _BASE.search(body) is None:  # as on nearly every page; it might also stand after the links
        return ""
    found = (attributes.get("href") for name, attributes in start_tags(body) if name == "base")
    return next(filter(None, found), "")


def _html_file(anchor: Mapping[str, str | None], base: str, page: str, index: str) -> IndexFile | Refused | None:
    link = anchor.get("href")
    if link and len(link) > _LONGEST_ENTRY:
        raise _too_long(index, "a link", len(link), _LONGEST_ENTRY)
    linked = _resolve(link, page, index, base) if link else None
    if linked is None or not linked.file_name.endswith(_LISTED):
        return None
    if isinstance(linked, Refused):
        return linked
    sidecar = anchor.get("data-core-metadata", anchor.get("data-dist-info-metadata", "false"))
    return IndexFile(
        linked.file_name,
        linked.url,
        linked.hashes,
        requires_python=anchor.get("data-requires-python") or "",
        yanked=(anchor["data-yanked"] or "") if "data-yanked" in anchor else None,
        core_metadata=None if sidecar == "false" else _hashes([(sidecar or "").partition("=")[::2]]),
        index=index,
        provenance=_address(anchor.get("data-provenance"), page, base),
    )


# What both have in common


def _page(listed: Iterable[IndexFile | Refused | None], index: str) -> IndexPage:
    files: list[IndexFile] = []
    refused: list[Refused] = []
    conditions: set[str] = set()
    for item in listed:
        if isinstance(item, IndexFile):
            if len(files) == MOST_FILES:
                what = f"{index} lists more than {MOST_FILES:,} files on one page"
                raise FormatError(what, expected="the files of one project")
            if item.requires_python not in conditions:
                conditions.add(item.requires_python)
                _check_conditions(conditions, item.requires_python, index)
            files.append(item)
        elif item is not None and len(refused) < _MOST_REFUSED:
            refused.append(item)
    return IndexPage(tuple(files), tuple(refused))


def _check_conditions(known: set[str], newest: str, index: str) -> None:
    if len(newest) > _LONGEST_CONDITION:
        raise _too_long(index, "a Requires-Python", len(newest), _LONGEST_CONDITION)
    if len(known) > _MOST_CONDITIONS:
        what = f"{index} lists more than {_MOST_CONDITIONS:,} different Requires-Python"
        raise FormatError(what, expected="those of the releases of one project")


def _too_long(index: str, what: str, length: int, limit: int) -> FormatError:
    return FormatError(f"{index} lists {what} of {length:,} characters", expected=f"at most {limit:,}")


def _media_type(content_type: str) -> tuple[str, str]:
    """The media type in lower case, and the codec to decode with (UTF-8 unless a charset that we accept is named)."""
    media_type, *parameters = (part.strip() for part in content_type.split(";"))
    charset = "utf-8"
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'")
    try:
        codec = codecs.lookup(charset).name
    except (LookupError, ValueError):  # ValueError: a null character in the name
        codec = "utf-8"
    return media_type.lower(), codec if codec in _CHARSETS else "utf-8"


def _check_api_version(version: object, index: str) -> None:
    """PEP 629: a newer major version must be refused, a newer minor one may be read. A page may state none."""
    if version is None:
        return
    major = re.match(r"\s*(\d{1,9})\.\d", version) if isinstance(version, str) else None
    if major is None or int(major[1]) > KNOWN_API_VERSION:
        raise FormatError(
            f"{index} speaks version {version!r} of the repository API",
            expected=f"a version {KNOWN_API_VERSION}.x (PEP 629)",
            hint="a newer wheelproof may support it",
        )


def _resolve(link: str, page: str, index: str, base: str = "") -> IndexFile | Refused | None:
    """The file that ``link`` leads to, relative to ``base`` ("" for the page itself); None when it leads to no file."""
    if not link.startswith(("https://", "http://")):  # urljoin is the costly part of a page with thousands of links
        try:
            link = urljoin(base or page, _LINE_BREAKS.sub("", link.strip(_BLANKS)))
        except ValueError:
            return None
    if why := why_refused(link, page):
        name = unquote(re.split("[?#]", link, maxsplit=1)[0]).rpartition("/")[2]
        return Refused(name, link, why, index)
    return file_from_url(link, index)


def _address(link: object, page: str, base: str = "") -> str:
    """The absolute address that ``link`` leads to; "" for what is not a link, and where the page may not lead."""
    if not isinstance(link, str) or not link or len(link) > _LONGEST_ENTRY:
        return ""
    try:
        address = urljoin(base or page, _LINE_BREAKS.sub("", link.strip(_BLANKS))).partition("#")[0]
    except ValueError:
        return ""
    return address if _is_url(address) and "://" in address and not why_refused(address, page) else ""


def _without_credentials(url: str) -> str:
    """``url`` without user and password, so that the links resolved against it carry none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else url


def _hashes(pairs: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    return {
        name.lower(): digest.lower()
        for name, digest in pairs
        if isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    }


def _is_url(address: str) -> bool:
    if not address.isprintable():
        return False
    try:
        return "[" not in address or bool(urlsplit(address))  # urlsplit is costly, and rejects nothing but bad brackets
    except ValueError:
        return False


def _is_file_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and "/" not in name


def _text(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else ""
