"""Collect a file's size and hash from the disk, the indexes, and the list in the expectation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wheel_checks.facts.release.facts import Statement
from wheel_checks.sources.local import LocalFile
from wheelproof.release.plan import Candidate
from wheelproof.wheels.judging import AT_ONCE

LIST = "the list of hashes"


def local_digests(candidates: Iterable[Candidate], expected: Mapping[str, str]) -> dict[Path, str]:
    """The sha256 of each file on disk that something can be compared with: hashing a release takes seconds.

    Raises SourceError when a file cannot be read.
    """
    wanted = [
        path
        for candidate in candidates
        for path in candidate.paths
        if len(candidate.paths) > 1
        or candidate.file_name in expected
        or any("sha256" in listing.hashes for listing in candidate.listings)
    ]
    with ThreadPoolExecutor(AT_ONCE, "hash") as pool:
        return dict(zip(wanted, pool.map(sha256_of, wanted), strict=True))


def sha256_of(path: Path) -> str:
    """The sha256, in hex, of a file that is read in pieces. Raises SourceError."""
    digest = hashlib.sha256()
    file = LocalFile(path)
    try:
        size, _ = file.read_tail(0)
        for piece in file.stream(0, size):
            digest.update(piece)
    finally:
        file.close()
    return digest.hexdigest()


def known_digests(
    candidate: Candidate, local: Mapping[Path, str], expected: Mapping[str, str], content: str = ""
) -> tuple[Statement, ...]:
    """The sha256 that each place states. ``content`` is the hash of a remote file that was read in full, else ""."""
    listed = expected.get(candidate.file_name, "")
    return (
        *(Statement(f"the file {path}", local[path]) for path in candidate.paths if path in local),
        *([Statement("the file as downloaded", content)] if content and not candidate.paths else []),
        *(Statement(item.index, item.hashes["sha256"]) for item in candidate.listings if "sha256" in item.hashes),
        *([Statement(LIST, listed)] if listed else []),
    )


def known_sizes(candidate: Candidate, read: int | None) -> tuple[Statement, ...]:
    """The size in bytes that each place states. ``read`` is that of the wheel if it was read, else None."""
    on_disk = [Statement(f"the file {path}", path.stat().st_size) for path in candidate.paths if path.is_file()]
    return (
        *on_disk,
        *([Statement("the file as served", read)] if read is not None and not on_disk else []),
        *(Statement(item.index, item.size) for item in candidate.listings if item.size is not None),
    )
