"""Keeps a resolution for as long as index pages are used again: what it follows from is not asked for again either.

It follows from the requirements, the target, the configuration and uv itself, which are in its name, from METADATA,
which does not change, from the files of indexes on this host, whose times are in its name too, and from index pages.
"""

import hashlib
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from wheel_checks.decode import Policy, decode
from wheel_checks.decode.encode import encode
from wheel_checks.errors import FormatError, SourceError
from wheel_checks.formats.secrets import redact_text
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.http.cache import ByteCache
from wheel_checks.sources.uv_binary import find_uv

REUSED = 600.0  # seconds; as long as an index page, see wheel_checks.sources.simple_index
_PART = "resolution"
_LARGEST = 1 << 27  # bytes, unpacked
_MOST_FILES = 20_000  # of an index on this host; the resolution from a larger one is not kept

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where resolutions are kept. ``refresh`` resolves again, ``offline`` takes one of any age."""

    cache: ByteCache
    refresh: bool = False
    offline: bool = False

    def remember(
        self,
        kind: Callable[..., T],
        words: Iterable[str],
        places: Iterable[str],
        make: Callable[[], T],
        *,
        is_sound: Callable[[T], bool] = lambda _: True,
        without_pages: Callable[[T], object] = lambda made: made,
        reused: float = REUSED,
    ) -> T:
        """What ``make`` returns, a ``kind`` of dataclass, or returned within the last ``reused`` seconds for the same.

        ``words`` are all that it follows from, ``places`` the indexes and folders that are asked. One that contains a
        secret, such as a token in an address, is not kept, nor what is not ``is_sound``. Secrets are sought in what is
        left ``without_pages``: without entries of index pages, which the cache holds anyway. Raises what ``make``
        raises, which is not kept.
        """
        name = _name(words, places)
        found = self._find(kind, name, reused) if name and not self.refresh else None
        if found is not None:
            return found
        made = make()
        if name and is_sound(made):
            shown = json.dumps(encode(without_pages(made)))
            if redact_text(shown) == shown:
                text = json.dumps({"found": time.time(), "made": encode(made)})
                self.cache.store_fact(name, _PART, zlib.compress(text.encode(), 1))
        return made

    def _find(self, kind: Callable[..., T], name: str, reused: float) -> T | None:
        data = self.cache.fact(name, _PART)
        if data is None:
            return None
        try:
            held: Any = json.loads(_unpacked(data))
            age = time.time() - held["found"]
            if not self.offline and not 0 <= age < reused:
                return None
            made = decode(kind, held["made"], Policy())
        except (ValueError, KeyError, TypeError, zlib.error, FormatError) as error:
            _log.info("a cached resolution is redone: %s", error)
            return None
        _log.info("using the resolution from %d s ago; --refresh resolves again", age)
        return made


def _unpacked(data: bytes) -> bytes:
    """What was kept. Raises zlib.error, also for what is too large."""
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(data, _LARGEST)
    if not unpacker.eof:
        raise zlib.error("it is cut off or too large")
    return text


def _name(words: Iterable[str], places: Iterable[str]) -> str:
    """A digest of all that the resolution follows from, "" where that is unknown."""
    digest = hashlib.blake2b(digest_size=20)
    try:
        uv = Path(find_uv())
        status = uv.stat()
        for word in (str(uv), str(status.st_size), str(status.st_mtime_ns), *words):
            hidden = redact_text(word)
            digest.update(f"{len(hidden)} {hidden != word} {hidden}\n".encode())
        for place in places:
            if is_file_url(place) or not urlsplit(place).scheme:
                for line in _files(path_of(place) if is_file_url(place) else Path(place)):
                    digest.update(line.encode("utf-8", "surrogateescape"))
    except (OSError, SourceError, ValueError):
        return ""
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[str]:
    """Each file of a folder of files, or of an index, with its size and time. Raises OSError, also for too many."""
    left = _MOST_FILES
    front = [(folder, 0)]
    while front:
        place, depth = front.pop()
        if not place.is_dir():
            status = place.stat()
            yield f"{place} {status.st_size} {status.st_mtime_ns}\n"
            continue
        for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
            left -= 1
            if left < 0:
                raise OSError(f"{folder} has more than {_MOST_FILES} files")
            if entry.is_dir() and depth < 1:
                front.append((Path(entry.path), depth + 1))
            status = entry.stat()
            yield f"{entry.path} {status.st_size} {status.st_mtime_ns}\n"
