"""Compares RECORD with the disk: what is missing, changed, owned twice or by no one."""

import base64
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from wheel_checks.facts.installed.facts import Distribution, RecordedFiles, SharedFile, WrongFile
from wheel_checks.formats.wheel.record import MAX_SIZE, Record, RecordRow, parse_record
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment, PathEntry
from wheel_checks.sources.file_tree import FileTree

# Installers add the byte code that they compile, without a hash; it is made again whenever it is missing or stale. The
# rows become empty lines, so that the others keep their numbers.
_BYTE_CODE = re.compile(rb"^[^\r\n]*\.pyc\"?,[^,\r\n]*,\d*(?=\r?$)", re.MULTILINE)
_BYTE_CODE_SUFFIX = (".pyc", ".pyo")
_ACCELERATOR_FOLDERS = ("nvidia", "torch", "triton")

_NOT_COMPARED = Unavailable("contents are not compared at depth quick", "--depth full hashes every file")
_REWRITTEN = Unavailable("conda rewrites prefixes in files as it installs them, and RECORD keeps the old hashes")


def read_record(tree: FileTree, folder: str) -> Record | Unavailable:
    """RECORD of a dist-info folder without its rows of byte code. Raises FormatError as :func:`parse_record` does."""
    content = tree.read(f"{folder}/RECORD", MAX_SIZE)
    if content is None:
        return Unavailable(f"{folder.rpartition('/')[2]} has no RECORD")
    return parse_record(_BYTE_CODE.sub(b"", content), may_have_gaps=True)


def compare(environment: Environment, entry: PathEntry, record: Record) -> tuple[RecordedFiles, list[RecordRow]]:
    """The files of one distribution, and the rows whose files have the recorded size and can be hashed."""
    owned: dict[str, str] = {}
    missing: list[str] = []
    sizes: list[WrongFile] = []
    comparable: list[RecordRow] = []
    for row in record.rows:
        if row.path.endswith(_BYTE_CODE_SUFFIX):
            continue
        path, size = _locate(environment, entry, row.path)
        owned[path] = f"{row.algorithm}={row.digest}" if row.algorithm else ""
        if size is None:
            missing.append(path)
        elif row.size is not None and row.size != size:
            sizes.append(WrongFile(path, f"{row.size:,} bytes", f"{size:,} bytes"))
        elif row.algorithm:
            comparable.append(row)
    return RecordedFiles(owned, tuple(missing), tuple(sizes), _NOT_COMPARED), comparable


def _locate(environment: Environment, entry: PathEntry, recorded: str) -> tuple[str, int | None]:
    """The absolute path of a row, and the size of the file there in bytes, None if none exists."""
    size = entry.files.get(recorded)
    if size is not None:
        return f"{entry.path}/{recorded}", size
    path = posixpath.normpath(posixpath.join(entry.path, recorded))
    size = environment.tree.size(path)
    if size is None and environment.kind == "target" and recorded.startswith("../"):
        # pip writes RECORD for a whole installation and then moves scripts and data into the target folder.
        moved = posixpath.join(entry.path, recorded.replace("../", ""))
        if (moved_size := environment.tree.size(moved)) is not None:
            return moved, moved_size
    return path, size


def wrong_digests(
    environment: Environment,
    compared: Sequence[tuple[Distribution, PathEntry, Sequence[RecordRow]]],
    advance: Callable[[int], None],
) -> list[tuple[WrongFile, ...] | Unavailable]:
    """Hash the files of all distributions, several at once, the largest first; what differs, for each distribution."""
    jobs = [
        (number, row, _locate(environment, entry, row.path))
        for number, (distribution, entry, rows) in enumerate(compared)
        if distribution.installer != "conda"
        for row in rows
    ]
    jobs.sort(key=lambda job: -(job[2][1] or 0))
    digests = environment.tree.digests([(path, row.algorithm) for _, row, (path, _) in jobs], advance)
    wrong: list[list[WrongFile]] = [[] for _ in compared]
    for (number, row, (path, _)), digest in zip(jobs, digests, strict=True):
        actual = "unreadable"
        if digest is not None:
            actual = f"{row.algorithm}={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
        recorded = f"{row.algorithm}={row.digest}"
        if actual != recorded:
            wrong[number].append(WrongFile(path, recorded, actual))
    return [
        _REWRITTEN if distribution.installer == "conda" else tuple(sorted(found, key=lambda file: file.path))
        for found, (distribution, _, _) in zip(wrong, compared, strict=True)
    ]


def shared_files(distributions: Iterable[Distribution]) -> tuple[SharedFile, ...]:
    """Files that distributions of different names install with different content (equal content is harmless)."""
    owners: dict[str, dict[str, str]] = {}
    for distribution in distributions:
        if isinstance(distribution.files, RecordedFiles):
            for path, content in distribution.files.owned.items():
                owners.setdefault(path, {})[distribution.name] = content
    return tuple(
        SharedFile(path, tuple(sorted(contents)))
        for path, contents in sorted(owners.items())
        if len(contents) > 1 and len(set(contents.values())) > 1
    )


def unowned_files(environment: Environment, owned: Mapping[str, object]) -> tuple[str, ...]:
    """Files of the accelerator's packages that no RECORD lists, but for byte code."""
    return tuple(
        path
        for entry in environment.entries
        for file in sorted(entry.files)
        if file.partition("/")[0] in _ACCELERATOR_FOLDERS
        and "/" in file
        and not file.endswith(_BYTE_CODE_SUFFIX)
        and (path := f"{entry.path}/{file}") not in owned
    )
