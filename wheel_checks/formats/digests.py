"""The hashes that an index states of a file, compared with its bytes."""

import hashlib
from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple

from wheel_checks.errors import SourceError

STRONG = ("sha512", "sha384", "sha256", "sha3_512", "sha3_384", "sha3_256", "blake2b", "blake2s")
"""The algorithms for which no two files of one hash can be made, as :mod:`hashlib` names them."""

_KNOWN = (*STRONG, "sha224", "sha3_224", "sha1", "md5")


class StatedHash(NamedTuple):
    """A hash of a file as it is stated ("sha256=9f3a..."), and of the same algorithm as it is.

    ``found`` is "" for an algorithm that is unknown here.
    """

    stated: str
    found: str

    @property
    def is_wrong(self) -> bool:
        """True when the bytes are not those of the stated hash."""
        return bool(self.found) and self.stated != self.found


class WrongHash(NamedTuple):
    """A file that has another hash than an index states; both as in :class:`StatedHash`."""

    file_name: str
    stated: str
    found: str


class WrongMetadataError(SourceError):
    """The METADATA that an index serves of a wheel cannot be resolved by: it is not the one that the index states."""

    def __init__(self, wrong: WrongHash) -> None:
        what = f"the METADATA that the index serves of {wrong.file_name} has {wrong.found}"
        super().__init__(what, expected=f"{wrong.stated}, as the index states")
        self.wrong = wrong


def compare_hashes(data: bytes, stated: Mapping[str, str]) -> StatedHash | None:
    """The first stated hash that ``data`` does not have, else the strongest; None if none is stated.

    ``stated`` maps algorithm to hex digest, in lower case.
    """
    compared = [
        StatedHash(f"{name}={stated[name]}", f"{name}={hashlib.new(name, data, usedforsecurity=False).hexdigest()}")
        for name in _KNOWN
        if name in stated
    ]
    unknown = [StatedHash(f"{name}={digest}", "") for name, digest in stated.items()]
    return next((hash_ for hash_ in compared if hash_.is_wrong), None) or next(iter([*compared, *unknown]), None)


def first_difference(one: bytes, other: bytes) -> tuple[str, str] | None:
    """The first line in which two texts differ, of both; None when they are equal byte for byte."""
    if one == other:
        return None
    ours, theirs = one.splitlines(keepends=True), other.splitlines(keepends=True)
    pairs = zip_longest(ours, theirs, fillvalue=b"")
    a, b = next((a, b) for a, b in pairs if a != b)
    return ascii(a)[2:-1], ascii(b)[2:-1]
