"""What each place says of a file's size and hash: the disk, the indexes, the list in the expectation."""

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wheel_checks.facts.release import Told
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
) -> tuple[Told, ...]:
    """The sha256 that each place states. ``content`` is that of a remote file which was read whole, else ""."""
    listed = expected.get(candidate.file_name, "")
    return (
        *(Told(f"the file {path}", local[path]) for path in candidate.paths if path in local),
        *([Told("the file as downloaded", content)] if content and not candidate.paths else []),
        *(Told(item.index, item.hashes["sha256"]) for item in candidate.listings if "sha256" in item.hashes),
        *([Told(LIST, listed)] if listed else []),
    )


def known_sizes(candidate: Candidate, read: int | None) -> tuple[Told, ...]:
    """The size in bytes that each place states. ``read`` is that of the wheel if it was read, else None."""
    on_disk = [Told(f"the file {path}", path.stat().st_size) for path in candidate.paths if path.is_file()]
    return (
        *on_disk,
        *([Told("the file as served", read)] if read is not None and not on_disk else []),
        *(Told(item.index, item.size) for item in candidate.listings if item.size is not None),
    )
