"""Whole small documents (index pages, METADATA sidecars of PEP 658), transferred again only when they changed."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheel_checks.errors import SourceError
from wheel_checks.formats.index.digests import compare_hashes
from wheel_checks.formats.secrets import redact
from wheel_checks.sources.byte_source import Cost
from wheel_checks.sources.http.cache import CachedPage
from wheel_checks.sources.http.retry import TransientError
from wheel_checks.sources.http.session import Session
from wheel_checks.sources.meter import Meter

if TYPE_CHECKING:
    from wheel_checks.sources.http.transport import Response

LARGEST_PAGE = 32 << 20
"""Bytes, unpacked. The largest index pages have 7 MB, in November 2026."""


@dataclass(frozen=True, slots=True)
class Page:
    """A document. ``final_url`` is its address after redirects (relative links start there), without credentials.

    ``from_cache`` is True when the body was not transferred now; ``cost`` is that of validating it.
    """

    body: bytes
    content_type: str
    final_url: str
    from_cache: bool
    cost: Cost = Cost()  # noqa: RUF009  # frozen


def fetch_page(
    session: Session, url: str, headers: Mapping[str, str], largest: int, reuse: float, stated: Mapping[str, str]
) -> Page:
    """The document at an http or https URL, for :meth:`wheel_checks.sources.client.HttpClient.get_page`."""
    url = session.adopt(url)
    sent = {name.lower(): value for name, value in headers.items()}
    accept = sent.get("accept", "")
    kept_as = accept + " with a login" * session.has_login(url)  # a page read with a login is not for users without one
    meter = Meter(session.meter)
    cached = session.cache.page(url, kept_as) if session.cache is not None else None
    if cached is not None and (session.options.offline or _has_hash(cached, stated)):
        return _cached_page(cached, meter)
    if cached is not None and not session.must_ask(url, kept_as) and _is_fresh(cached, sent.get("cache-control", "")):
        return _cached_page(cached, meter)
    sent["accept-encoding"] = "gzip"
    if cached is not None and cached.etag:
        sent["if-none-match"] = cached.etag
    if cached is not None and cached.last_modified:
        sent["if-modified-since"] = cached.last_modified
    known = {304} if cached else frozenset()
    answer = session.fetch(url, sent, meter, lambda response: _read(response, cached, largest, reuse), known)
    if session.cache is not None and answer.fresh_until >= 0:
        session.cache.store_page(url, kept_as, answer)
    if cached is not None and answer.body is cached.body:
        return _cached_page(cached, meter)
    return Page(answer.body, answer.content_type, answer.final_url, from_cache=False, cost=meter.cost)


def _cached_page(cached: CachedPage, meter: Meter) -> Page:
    meter.add(bytes_cached=len(cached.body))
    return Page(cached.body, cached.content_type, cached.final_url, from_cache=True, cost=meter.cost)


def _has_hash(page: CachedPage, stated: Mapping[str, str]) -> bool:
    """True for a document whose hash an index states, so that it never changes."""
    compared = compare_hashes(page.body, stated)
    return compared is not None and bool(compared.found) and not compared.is_wrong


def _is_fresh(page: CachedPage, cache_control: str) -> bool:
    """True while the page may be used unasked, unless the request itself wants it fresh (RFC 9111, 5.2.1)."""
    if re.search(r"\bno-cache\b|\bmax-age=0\b", cache_control):
        return False
    return page.fetched <= time.time() < page.fresh_until


def _read(response: Response, cached: CachedPage | None, largest: int, reuse: float) -> CachedPage:
    """The answer as it is to be stored; ``fresh_until`` is negative when it must not be (no-store)."""
    now = time.time()
    fresh_until = _fresh_until(response.headers, now, reuse)
    if response.status == 304 and cached is not None:
        return replace(cached, fresh_until=fresh_until, fetched=now)
    if response.status != 200:
        raise SourceError(f"{redact(response.url)} answers HTTP {response.status}", expected="200 with a document")
    return CachedPage(
        body=_body(response, largest),
        content_type=response.headers.get("Content-Type", ""),
        final_url=response.url,
        etag=response.headers.get("ETag", ""),
        last_modified=response.headers.get("Last-Modified", ""),
        fresh_until=fresh_until,
        fetched=now,
    )


def _fresh_until(headers: Mapping[str, str], now: float, reuse: float) -> float:
    """Expiry of a stored page (RFC 9111, 4.2; ``reuse`` seconds by default), -1 when it may not be stored."""
    control = headers.get("Cache-Control", "").lower()
    if re.search(r"\bno-store\b", control):
        return -1.0
    age = re.search(r"\bmax-age=\"?(\d{1,9})", control)
    if re.search(r"\bno-cache\b", control):
        return 0.0
    if age is None:
        return now + reuse
    elapsed = headers.get("Age", "").strip()
    return now + int(age[1]) - (int(elapsed) if re.fullmatch(r"\d{1,9}", elapsed) else 0)


def _body(response: Response, largest: int) -> bytes:
    """The whole body, unpacked, at most ``largest`` bytes."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("gzip", "x-gzip", "identity", ""):
        raise SourceError(f"{redact(response.url)} is encoded as {encoding!r}", expected="gzip or no encoding")
    unpacker = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    body = bytearray()
    for chunk in response.chunks():
        try:
            body += unpacker.decompress(chunk, largest + 1 - len(body)) if unpacker is not None else chunk
        except zlib.error as error:
            raise SourceError(f"{redact(response.url)} is damaged: it does not unpack as gzip") from error
        if len(body) > largest:
            raise SourceError(f"{redact(response.url)} is too large", expected=f"at most {largest:,} bytes")
    if unpacker is not None and not unpacker.eof:
        raise TransientError(SourceError(f"{redact(response.url)} ended inside its gzip stream"))
    return bytes(body)
