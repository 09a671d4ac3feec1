"""What a run judged, written down, and compared with what a later run meets under the same names."""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from wheel_checks.decode import Check, Filled
from wheel_checks.formats.digests import STRONG
from wheel_checks.model import Verdict

SCHEMA = "wheelproof.record/1"

_SHA256 = re.compile(r"([0-9a-f]{64})?")
_DIGEST = re.compile(r"[0-9a-f]{32,128}")
_Size = Annotated[int, Check(lambda size: size >= 0, "a size in bytes")]
_Digest = Annotated[str, Check(_DIGEST.fullmatch, "a hash in lower case hexadecimal digits")]
_Schema = Annotated[str, Check(lambda text: text == SCHEMA, f'"{SCHEMA}"')]


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file that was judged. ``index`` and ``url`` hold no credentials, and are "" for a file on disk.

    ``hashes`` are what the index states, by algorithm, and ``sha256`` is that of the bytes, "" unless all were read.
    ``size`` is in bytes, None when it is unknown; ``etag`` a strong validator of the server, "" without one.
    ``targets`` are those that it was judged for, ``failed`` the rules that failed.
    """

    name: Filled
    verdict: Verdict
    size: _Size | None = None
    sha256: Annotated[str, Check(_SHA256.fullmatch, "64 lower case hexadecimal digits, or nothing")] = ""
    hashes: Mapping[str, _Digest] = field(default_factory=dict)
    index: str = ""
    url: str = ""
    etag: str = ""
    targets: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def known_hashes(self) -> dict[str, str]:
        """By algorithm: of the bytes where they were read, else as stated."""
        return {**self.hashes, **({"sha256": self.sha256} if self.sha256 else {})}


@dataclass(frozen=True, slots=True)
class Tool:
    """The program that made a record."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class AskedFor:
    """The command line of the run, as far as it says what to judge; without credentials."""

    targets: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    depth: str = "quick"


@dataclass(frozen=True, slots=True)
class Record:
    """The document that ``verify --record`` writes. ``recorded`` is UTC in ISO 8601."""

    schema: _Schema
    tool: Tool
    recorded: str
    verdict: Verdict
    files: tuple[RecordedFile, ...]
    asked: AskedFor = field(default_factory=AskedFor)


class Sameness(enum.StrEnum):
    """How two files of one name compare: unknown when neither a hash nor a validator decides."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"


class Compared(NamedTuple):
    """A file of the record with the one that is met now under its name, and ``why`` they count as they do."""

    before: RecordedFile
    now: RecordedFile
    sameness: Sameness
    why: str

    @property
    def moved(self) -> bool:
        """True when it comes from another index than before."""
        return self.before.index.rstrip("/") != self.now.index.rstrip("/")


@dataclass(frozen=True, slots=True)
class RecordComparison:
    """A record compared with the files of this run.

    ``gone`` are files of the record that this run does not meet, ``new`` those that are not in it. ``is_complete`` is
    False when a target of this run could not be read: what is gone may be after it.
    """

    record: Record
    compared: tuple[Compared, ...]
    gone: tuple[RecordedFile, ...]
    new: tuple[RecordedFile, ...]
    is_complete: bool = True

    def count(self, sameness: Sameness) -> int:
        """How many files compare so."""
        return sum(item.sameness is sameness for item in self.compared)


def compare_with(record: Record, files: Sequence[RecordedFile], *, is_complete: bool = True) -> RecordComparison:
    """The files of this run, each with the one of its name in the record that is most like it."""
    before: dict[str, list[RecordedFile]] = {}
    for file in record.files:
        before.setdefault(file.name, []).append(file)
    order = list(Sameness)
    compared, new = [], []
    for file in files:
        found = [compare(old, file) for old in before.get(file.name, ())]
        if found:
            compared.append(min(found, key=lambda one: (order.index(one.sameness), one.moved)))
        else:
            new.append(file)
    names = {file.name for file in files}
    gone = tuple(file for file in record.files if file.name not in names)
    return RecordComparison(record, tuple(compared), gone, tuple(new), is_complete)


def compare(before: RecordedFile, now: RecordedFile) -> Compared:
    """Two files of one name: by size, by every hash that both have, else by a strong validator of one address."""
    sizes = (before.size, now.size)
    if None not in sizes and sizes[0] != sizes[1]:
        return Compared(before, now, Sameness.CHANGED, f"{before.size:,} bytes then, {now.size:,} bytes now")
    old, new = before.known_hashes, now.known_hashes
    shared = [name for name in (*STRONG, *old) if name in old and name in new]
    for name in shared:
        if old[name] != new[name]:
            return Compared(before, now, Sameness.CHANGED, f"{name} {old[name]} then, {new[name]} now")
    strong = next((name for name in shared if name in STRONG), "")
    if strong:
        read = strong == "sha256" and before.sha256 and now.sha256
        return Compared(before, now, Sameness.SAME, f"{strong} {'of the bytes' if read else 'as stated'}")
    if before.etag and before.etag == now.etag and before.url == now.url and None not in sizes:
        return Compared(before, now, Sameness.SAME, "the same size and ETag at the same address")
    return Compared(before, now, Sameness.UNKNOWN, "no strong hash and no ETag of both is known")
