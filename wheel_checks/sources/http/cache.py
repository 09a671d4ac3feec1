"""The cache: ranges of remote files, pages of indexes with their validators, and facts.

A file is known by its URL and its identity: the hash that an index gives, else the server's ETag and Last-Modified, and
the length. A fact was read from a file, and is encoded by its reader. All have a checksum, so damage on disk is a miss
and not a wrong answer.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.formats.secrets import redact
from wheel_checks.sources.http.cache_database import CacheDatabase, Statement
from wheel_checks.sources.regular_file import home_folder

DEFAULT_BOUND = 512 << 20
"""The default size of a cache in bytes."""

_VERSION = 2
_MOST_FILES = 20_000  # identities kept; each is a few hundred bytes
_SCHEMA = """
CREATE TABLE file (
    used REAL NOT NULL, url TEXT NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL, etag TEXT NOT NULL,
    last_modified TEXT NOT NULL, PRIMARY KEY (url, hash));
CREATE TABLE piece (
    id INTEGER PRIMARY KEY, used REAL NOT NULL, length INTEGER NOT NULL, file TEXT NOT NULL, start INTEGER NOT NULL,
    checksum INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (file, start, length));
CREATE INDEX piece_age ON piece (used, length);
CREATE TABLE page (
    id INTEGER PRIMARY KEY, used REAL NOT NULL, length INTEGER NOT NULL, url TEXT NOT NULL, accept TEXT NOT NULL,
    final_url TEXT NOT NULL, content_type TEXT NOT NULL, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
    fresh_until REAL NOT NULL, fetched REAL NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL,
    UNIQUE (url, accept));
CREATE INDEX page_age ON page (used, length);
CREATE TABLE fact (
    id INTEGER PRIMARY KEY, used REAL NOT NULL, length INTEGER NOT NULL, file TEXT NOT NULL, part TEXT NOT NULL,
    checksum BLOB NOT NULL, data BLOB NOT NULL, UNIQUE (file, part));
CREATE INDEX fact_age ON fact (used, length);
"""
_TOUCH = {
    "piece": "UPDATE piece SET used = ? WHERE id = ?",
    "page": "UPDATE page SET used = ? WHERE id = ?",
    "fact": "UPDATE fact SET used = ? WHERE id = ?",
}
_DELETE = {
    "piece": "DELETE FROM piece WHERE id = ?",
    "page": "DELETE FROM page WHERE id = ?",
    "fact": "DELETE FROM fact WHERE id = ?",
}
_TOTAL = """
SELECT (SELECT total(length) FROM piece) + (SELECT total(length) FROM page) + (SELECT total(length) FROM fact)
"""
_BY_AGE = """
SELECT used - 86400 AS used, length, 'piece', id FROM piece UNION ALL SELECT used, length, 'page', id FROM page
UNION ALL SELECT used, length, 'fact', id FROM fact ORDER BY used
"""


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The identity of a remote file's state. ``size`` in bytes; "" if the server does not say."""

    size: int
    etag: str = ""
    last_modified: str = ""

    @property
    def strong_etag(self) -> str:
        """The ETag when it may be used with If-Range (RFC 9110, 13.1.5), else ""."""
        return "" if self.etag.startswith("W/") else self.etag

    def matches(self, other: FileIdentity) -> bool:
        """False when the length, the ETag or (without an ETag) Last-Modified show that the file changed."""
        if self.size != other.size:
            return False
        if self.etag and other.etag:
            return self.etag == other.etag
        return not (self.last_modified and other.last_modified) or self.last_modified == other.last_modified


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A stored page. ``fresh_until`` (after Cache-Control) and ``fetched`` are seconds since the epoch."""

    body: bytes
    content_type: str
    final_url: str
    etag: str = ""
    last_modified: str = ""
    fresh_until: float = 0.0
    fetched: float = 0.0


def default_cache_path() -> Path:
    """$WHEELPROOF_CACHE_DIR, else wheelproof in the XDG cache home, with the name of the database."""
    folder = os.environ.get("WHEELPROOF_CACHE_DIR")
    if not folder:
        # the XDG Base Directory Specification ignores relative paths
        home = Path(os.environ.get("XDG_CACHE_HOME", ""))
        folder = str((home if home.is_absolute() else home_folder({}) / ".cache") / "wheelproof")
    return Path(folder) / f"bytes-{_VERSION}.sqlite3"


# Parameters of a URL that name no other file: they change from one listing to the next, or from one user to the next.
_SIGNATURE = re.compile(r"(?i)[\w-]*(?:token|signature|credential|password|passwd|secret)=|(?:sig|auth|api_?key)=")


class ByteCache:
    """A cache in the sqlite file ``path`` of about ``max_bytes`` at most, with the least recently used removed first.

    Ranges are removed as if used a day earlier: facts are kept of them, which are a tenth as large. Safe for many
    threads and for many processes on one file. It never raises: a failure to store is ignored. URLs lose their
    credentials before they are stored. Opened at first use.
    """

    def __init__(self, path: Path | None = None, *, max_bytes: int = DEFAULT_BOUND) -> None:
        self._database = CacheDatabase(path or default_cache_path(), _SCHEMA, _VERSION)
        self._max_bytes = max_bytes
        self._touched: dict[tuple[str, int], float] = {}
        self._lock = threading.Lock()

    def identity(self, url: str, expected_hash: str = "") -> FileIdentity | None:
        """The latest state known of the file at ``url`` with this hash ("sha256=...", or "" if none is known)."""
        rows = self._database.query(
            "SELECT size, etag, last_modified FROM file WHERE url = ? AND hash = ?", (name_of(url), expected_hash)
        )
        return FileIdentity(*rows[0]) if rows else None

    def remember(self, url: str, expected_hash: str, identity: FileIdentity) -> None:
        """Make ``identity`` the latest state known of the file."""
        values = (time.time(), name_of(url), expected_hash, identity.size, identity.etag, identity.last_modified)
        self._database.write([("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", values)])

    def read(self, url: str, expected_hash: str, identity: FileIdentity, offset: int, length: int) -> bytes | None:
        """The bytes at ``offset`` when stored pieces of this very state of the file cover all of them, else None."""
        rows = self._database.query(
            "SELECT id, start, length FROM piece WHERE file = ? AND start < ? AND start + length > ?"
            " ORDER BY start, length DESC",
            (_key(url, expected_hash, identity), offset + length, offset),
        )
        found = bytearray()
        for row, start, size in rows:
            position = offset + len(found)
            if start > position:
                return None
            if start + size > position:
                data = self._piece(row)
                if data is None:
                    return None
                found += data[position - start : offset + length - start]
            if len(found) == length:
                return bytes(found)
        return None

    def store(self, url: str, expected_hash: str, identity: FileIdentity, offset: int, data: bytes) -> None:
        """Keep ``data`` as the bytes at ``offset`` of this state of the file."""
        if not data or len(data) > self._max_bytes // 4:
            return
        key = _key(url, expected_hash, identity)
        self._store(
            "INSERT OR REPLACE INTO piece (used, length, file, start, checksum, data) VALUES (?, ?, ?, ?, ?, ?)",
            (time.time(), len(data), key, offset, zlib.crc32(data), data),
        )

    def page(self, url: str, accept: str) -> CachedPage | None:
        """The page that was stored for ``url`` when it was requested with this Accept header."""
        rows = self._database.query(
            "SELECT id, checksum, data, content_type, final_url, etag, last_modified, fresh_until, fetched"
            " FROM page WHERE url = ? AND accept = ?",
            (name_of(url), accept),
        )
        if not rows or not _is_intact(rows[0][2], rows[0][1]):
            return None
        self._touch("page", rows[0][0])
        return CachedPage(*rows[0][2:])

    def store_page(self, url: str, accept: str, page: CachedPage) -> None:
        """Keep a page instead of the one stored before."""
        if len(page.body) > self._max_bytes // 4:
            return
        key = (name_of(url), accept, redact(page.final_url))
        answer = (page.content_type, page.etag, page.last_modified, page.fresh_until, page.fetched)
        self._store(
            "INSERT OR REPLACE INTO page (used, length, url, accept, final_url, content_type, etag, last_modified,"
            " fresh_until, fetched, checksum, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (time.time(), len(page.body), *key, *answer, zlib.crc32(page.body), page.body),
        )

    def fact(self, file: str, part: str) -> bytes | None:
        """What :meth:`store_fact` stored last under these names."""
        rows = self._database.query("SELECT id, checksum, data FROM fact WHERE file = ? AND part = ?", (file, part))
        if not rows or not isinstance(rows[0][2], bytes) or rows[0][1] != _seal(file, part, rows[0][2]):
            return None
        self._touch("fact", rows[0][0])
        data: bytes = rows[0][2]
        return data

    def store_fact(self, file: str, part: str, data: bytes) -> None:
        """Keep ``data`` as one ``part`` of the facts of ``file``, a name for certain bytes."""
        if len(data) > self._max_bytes // 4:
            return
        self._store(
            "INSERT OR REPLACE INTO fact (used, length, file, part, checksum, data) VALUES (?, ?, ?, ?, ?, ?)",
            (time.time(), len(data), file, part, _seal(file, part, data), data),
        )

    def close(self) -> None:
        """Record the uses, and close the database."""
        with self._lock:
            touched, self._touched = self._touched, {}
        if touched:
            self._database.write([(_TOUCH[table], (when, row)) for (table, row), when in touched.items()])
        self._database.close()

    def _piece(self, row: int) -> bytes | None:
        rows = self._database.query("SELECT checksum, data FROM piece WHERE id = ?", (row,))
        if not rows or not _is_intact(rows[0][1], rows[0][0]):
            return None
        self._touch("piece", row)
        data: bytes = rows[0][1]
        return data

    def _touch(self, table: str, row: int) -> None:
        """Note a use; written at the end, so that a warm run does not wait for the disk."""
        with self._lock:
            self._touched[table, row] = time.time()

    def _store(self, sql: str, values: tuple[object, ...]) -> None:
        self._database.write([(sql, values)])
        total = self._database.query(_TOTAL)
        if total and total[0][0] > self._max_bytes:
            # a tenth more than is needed, so that not every store throws out something
            self._evict(total[0][0] - 0.9 * self._max_bytes)

    def _evict(self, excess: float) -> None:
        """Throw out the least recently used ``excess`` bytes."""
        oldest = self._database.query(_BY_AGE)
        statements: list[Statement] = []
        for _, length, table, row in oldest:
            if excess <= 0:
                break
            statements.append((_DELETE[table], (row,)))
            excess -= length
        newest = "DELETE FROM file WHERE rowid NOT IN (SELECT rowid FROM file ORDER BY used DESC LIMIT ?)"
        statements.append((newest, (_MOST_FILES,)))
        self._database.write(statements)
        self._database.query("PRAGMA incremental_vacuum")


def name_of(url: str) -> str:
    """The name of ``url`` in the cache, which contains no secret and is the same for any signature of the URL."""
    shown = redact(url)
    _, mark, query = url.partition("?")
    if not mark:
        return shown
    named = "&".join(sorted(pair for pair in re.split("[&;]", query) if not _SIGNATURE.match(pair)))
    return f"{shown} {hashlib.sha256(named.encode()).hexdigest()}"


def _key(url: str, expected_hash: str, identity: FileIdentity) -> str:
    """The key of one state of one file. A hash identifies the content, so the server's validators are left out."""
    state = (expected_hash,) if expected_hash else (identity.etag, identity.last_modified)
    return "\n".join((name_of(url), str(identity.size), *state))


def _is_intact(data: object, checksum: object) -> bool:
    """False for content, or a type of content, that damage on disk has changed."""
    return isinstance(data, bytes) and zlib.crc32(data) == checksum


def _seal(file: str, part: str, data: bytes) -> bytes:
    """A checksum that includes the fact's key: a wrong fact would go unnoticed, unlike a wrong byte."""
    return hashlib.blake2b(data, digest_size=16, key=hashlib.blake2b(f"{file}\n{part}".encode()).digest()).digest()
