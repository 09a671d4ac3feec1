"""Caches facts that follow from the bytes of a file alone, so that reading them again costs no byte of the file.

    content = kept.remember("content", AsJson(Content), lambda: verify_content(source, size, archive, record))

The cache key is the name of the bytes (:meth:`NamedBytes.fingerprint`), the name of the part, and a digest of the
source code of the readers, so that no other version of a reader uses the entry. Errors are not cached: the network and
limits are not facts of a file. An entry that does not decode is read again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from wheel_checks.decode import Policy, decode
from wheel_checks.decode.encode import encode
from wheel_checks.errors import FormatError
from wheel_checks.formats.documents import parse_json
from wheel_checks.sources.byte_source import NamedBytes
from wheel_checks.sources.http.cache import ByteCache
from wheel_checks.sources.regular_file import read_whole

LARGEST = 64 << 20
"""Bytes of one fact, encoded and not compressed."""

_ROOMS = ("accelerator", "archive", "elf", "gpu", "security", "wheel")
READERS = ("decode", "formats", "model.py", "data", *(f"facts/{room}" for room in _ROOMS))
"""The source code of the readers, below ``wheel_checks``: after a change, facts are read again."""

_log = logging.getLogger(__name__)
_POLICY = Policy(longest=LARGEST)

T = TypeVar("T")


class Encoding(Protocol[T]):
    """How the values of one part become bytes, and back."""

    def encode(self, value: T) -> bytes:
        """The bytes."""

    def decode(self, data: bytes) -> T:
        """The value. Raises FormatError for any bytes that are no such value."""


class AsJson(Generic[T]):
    """The :class:`Encoding` of dataclasses, and of tuples of them; see :mod:`wheel_checks.decode`.

    Not for references to members of the archive, which are distinguished by identity: see
    :mod:`wheel_checks.facts.elf.kept`.
    """

    def __init__(self, kind: Callable[..., T]) -> None:
        self._kind = kind

    def encode(self, value: T) -> bytes:
        """A JSON document."""
        return json.dumps(encode(value), separators=(",", ":")).encode()

    def decode(self, data: bytes) -> T:
        """The value that a JSON document describes. Raises FormatError."""
        return decode(self._kind, parse_json(data, "the kept fact", LARGEST), _POLICY)


class FileFacts:
    """The cached facts of one file. ``key`` names its bytes and the readers; nothing is cached without it."""

    def __init__(self, cache: ByteCache | None = None, key: str = "", fingerprint: str = "") -> None:
        self._cache = cache if key else None
        self._key = key
        self._fingerprint = fingerprint

    def are_bytes_of(self, sha256: str) -> bool:
        """False when the name of the bytes includes another hash (hex): the server sent other bytes."""
        stated = re.search("sha256=([0-9a-f]{64})", self._fingerprint)
        return stated is None or stated[1] == sha256

    def remember(
        self,
        part: str,
        encoding: Encoding[T],
        read: Callable[[], T],
        *,
        is_sound: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """The cached ``part``, else the result of ``read``, which is then cached if it ``is_sound``.

        A part is named by all that its value depends on, such as the depth: a deeper look never answers for a shallower
        one, so that no verdict depends on the cache. Raises the errors of ``read``.
        """
        kept = self._find(part, encoding)
        if kept is not None:
            return kept
        value = read()
        if self._cache is not None and is_sound(value):
            data = encoding.encode(value)
            if len(data) <= LARGEST:
                self._cache.store_fact(self._key, part, zlib.compress(data, 1))
        return value

    def _find(self, part: str, encoding: Encoding[T]) -> T | None:
        packed = self._cache.fact(self._key, part) if self._cache is not None else None
        if packed is None:
            return None
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(packed, LARGEST)
            if not unpacker.eof:
                raise FormatError("it is cut off or too large")  # noqa: TRY301  # one handler for all that is wrong
            return encoding.decode(data)
        except (zlib.error, FormatError) as error:
            _log.info("a fact that was kept (%s) is read again: %s", part, error)
            return None


NOTHING_KEPT = FileFacts()


def kept_facts(source: NamedBytes, cache: ByteCache | None) -> FileFacts:
    """The facts that ``cache`` has for the bytes of ``source``; empty if the bytes have no name. Raises SourceError."""
    version = readers_version() if cache is not None else ""
    fingerprint = source.fingerprint() if version else ""
    if not fingerprint:
        return NOTHING_KEPT
    key = hashlib.blake2b(f"{version}\n{sys.byteorder}\n{fingerprint}".encode(), digest_size=20)
    return FileFacts(cache, key.hexdigest(), fingerprint)


@functools.cache
def readers_version() -> str:
    """A digest of the source code that reads facts, "" if it cannot be read. Takes 2 ms."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parents[2]
    try:
        for name in READERS:
            place = root / name
            for path in sorted([place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.toml")]):
                data = read_whole(path, LARGEST)
                digest.update(f"{path.relative_to(root)} {len(data)}\n".encode() + data)
    except OSError:
        return ""
    return digest.hexdigest()
