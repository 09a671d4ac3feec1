"""The steps of a cell, each of which leaves its result in a file, so that a later run need not do it again."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wheel_checks.decode import Policy, decode
from wheel_checks.errors import DeadlineError, FormatError, NetworkError, SourceError, WheelproofError
from wheel_checks.formats.documents import parse_json
from wheel_checks.model import Unavailable, Verdict
from wheel_checks.process.child import Ended
from wheel_checks.sources.regular_file import read_end, read_start, read_whole

SCHEMA = "wheelproof.matrix-step/1"
LARGEST = 64 << 20  # bytes of one result
LAST_WORDS = 1500  # characters of a log that explain a failure
FIRST_PAUSE = 2.0  # seconds before a step that the network failed is tried again; each further one doubles
_CODE = (".py", ".toml", ".json")


@dataclass(frozen=True, slots=True)
class Record:
    """The result of a step. ``run`` is the run that made or kept it, ``inputs`` the digest of all that it depends on.

    ``started`` is UTC, ISO 8601; ``attempts`` is their number; ``failure`` says why it was not carried out ("" if it
    was), ``hint`` the fix.
    """

    step: str
    run: str
    inputs: str
    started: str
    seconds: float = 0.0
    kept: bool = False
    failure: str = ""
    hint: str = ""
    log: str = ""
    attempts: int = 1
    result: Mapping[str, Any] = field(default_factory=dict)

    def serves(self, inputs: str, keep_for: float) -> bool:
        """Whether its result can be reused: it has these inputs, is decided, and is not too old."""
        age = (now() - datetime.fromisoformat(self.started)).total_seconds()
        return self._tells and self.inputs == inputs and 0 <= age < keep_for

    @property
    def _tells(self) -> bool:
        """Whether another run could not say more: not after a failure, nor where something was left undecided.

        A report of `verify` counts the checks that ended undecided; the suite of kernels has one verdict.
        """
        if self.failure or self.result.get("error"):
            return False
        summary = self.result.get("summary")
        return not summary["error"] if summary else self.result.get("verdict") != Verdict.UNDECIDED


def now() -> datetime:
    """The present moment, in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp(moment: datetime) -> str:
    """As the reports write it: 2026-11-20T09:00:00Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def digest(value: Any) -> str:
    """The sha256 of a JSON-ready value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def digest_of_files(folders: Iterable[Path]) -> str:
    """The sha256 of all Python, TOML and JSON files below folders, names included; of the files that are named."""
    found = hashlib.sha256()
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(p for p in folder.rglob("*.*") if p.suffix in _CODE)
        for path in files:
            content = read_whole(path, LARGEST)
            found.update(f"{path.name}:{len(content)}:".encode())
            found.update(content)
    return found.hexdigest()


def read_record(path: Path) -> Record | None:
    """The record in a file; None if missing, or from another release: then it is made again."""
    try:
        values = parse_json(read_start(path, LARGEST + 1), path.name, LARGEST)
        if values.pop("schema") != SCHEMA:
            return None
        record = decode(Record, values, Policy())
        record.serves("", 0)  # its result and its time can be read
    except (OSError, FormatError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return record


def write_record(path: Path, record: Record) -> None:
    """Write a record in one step. Raises SourceError."""
    temporary = path.with_name(f".{path.name}.tmp")  # one run uses the folder: a leftover is overwritten
    try:
        temporary.write_text(json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SourceError(f"{path} cannot be written: {error.strerror}", hint="see --work") from error


def refuse(folder: Path, run: str, step: str, blocker: Unavailable) -> None:
    """Write the record of a step that is not tried, with the reason. Raises SourceError."""
    write_record(
        folder / f"{step}.json", Record(step, run, "", stamp(now()), failure=blocker.reason, hint=blocker.hint)
    )


@dataclass(frozen=True, slots=True)
class Died:
    """A cell whose process ended otherwise than it should: how, the last that it wrote, and the path of all of it."""

    cell: str
    how: str
    words: str
    log: str = ""


@dataclass(slots=True)
class Steps:
    """The steps of one cell in its folder. ``run`` names this run, ``fresh`` repeats steps of earlier runs.

    ``heard`` gets the name of each step as it begins. All together may take ``deadline`` seconds from ``started``,
    each ``timeout`` of them (None: all) from ``begun``. A step that the network failed is tried again ``retries``
    times. ``failed`` are the steps that could not be carried out.
    """

    folder: Path
    run: str
    deadline: float
    fresh: bool = False
    heard: Callable[[str], None] = lambda _step: None
    timeout: float | None = None
    retries: int = 0
    started: float = field(default_factory=time.monotonic)
    begun: float = field(default_factory=time.monotonic)
    failed: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """The seconds that are left for the step. Raises DeadlineError when there aren't any."""
        left = min(self._left_of_cell, self._left_of_step)
        if left <= 0:
            raise self._too_late()
        return left

    @property
    def _left_of_cell(self) -> float:
        return self.deadline - (time.monotonic() - self.started)

    @property
    def _left_of_step(self) -> float:
        return float("inf") if self.timeout is None else self.timeout - (time.monotonic() - self.begun)

    def file(self, step: str, suffix: str) -> Path:
        """A file of a step: its log, its output."""
        return self.folder / f"{step}.{suffix}"

    def take(
        self, name: str, inputs: Any, work: Callable[[], dict[str, Any]], *, keep_for: float = float("inf")
    ) -> Mapping[str, Any] | None:
        """The result of a step: from an earlier run with the same ``inputs``, or from ``work``.

        A result is kept for ``keep_for`` seconds, except errors and undecided ones. None when the
        step cannot be carried out: then its record says why, or the record of an earlier step that used all the time.
        Raises SourceError when the folder cannot be written.
        """
        if self.failed and self._left_of_cell <= 0:
            return None
        path, key = self.file(name, "json"), digest([name, inputs])
        record = read_record(path)
        if record and (record.run, record.inputs) == (self.run, key):
            return self._done_before(record)
        self.heard(name)
        if record and not self.fresh and record.serves(key, keep_for):
            write_record(path, replace(record, run=self.run, kept=True))
            return record.result
        log, self.begun = self.file(name, "log"), time.monotonic()
        log.unlink(missing_ok=True)
        record = Record(name, self.run, key, stamp(now()))
        try:
            result, attempts = self._tried(work)
            record = replace(record, result=result, attempts=attempts)
        except WheelproofError as error:
            expected = f"; expected {error.expected}" if error.expected else ""
            attempts = 1 + self.retries * isinstance(error, NetworkError)
            record = replace(record, failure=f"{error.what}{expected}", hint=error.hint, attempts=attempts)
        shown = str(log) if log.exists() and log.stat().st_size else ""
        write_record(path, replace(record, seconds=round(time.monotonic() - self.begun, 3), log=shown))
        if record.failure:
            self.failed.append(name)
            return None
        return record.result

    def _done_before(self, record: Record) -> Mapping[str, Any] | None:
        """The result of an earlier process of this run, whose time counts."""
        self.started -= 0 if record.kept else record.seconds
        if record.failure:
            self.failed.append(record.step)
        return None if record.failure else record.result

    def _tried(self, work: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], int]:
        """The result of ``work``, and the number of attempts. Raises the error of the last attempt."""
        for attempt in itertools.count(1):
            try:
                return work(), attempt
            except NetworkError:
                pause = FIRST_PAUSE * 2 ** (attempt - 1)
                if attempt > self.retries:
                    raise
                time.sleep(min(pause, self.left))
        raise AssertionError("attempts are counted without an end")

    def document(self, step: str, ended: Ended, statuses: Sequence[int]) -> dict[str, Any]:
        """The JSON object that the command of a step wrote to its output file, which is removed.

        Raises DeadlineError for a command that was too slow, and SourceError, with the end of its output, for another
        exit status than ``statuses`` or without such an object.
        """
        log, output = self.file(step, "log"), self.file(step, "out")
        if ended.timed_out:
            raise self._too_late()
        if ended.status not in statuses:
            raise SourceError(f"it exited with status {ended.status}: {self.last_words(step)}", hint=f"see {log}")
        try:
            document = json.loads(read_whole(output, LARGEST))
        except (OSError, ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or "schema" not in document:
            raise SourceError(f"it exited with status {ended.status} and wrote no report", hint=f"see {output}")
        output.unlink(missing_ok=True)  # it goes into the record
        return document

    def last_words(self, step: str) -> str:
        """The end of the log of a step, in one line."""
        try:
            words = read_end(self.file(step, "log"), LAST_WORDS).decode(errors="replace")
        except OSError:
            words = ""
        return " ".join(words.split()) or "it said nothing"

    def _too_late(self) -> DeadlineError:
        if self.timeout is not None and self._left_of_step < self._left_of_cell:
            return DeadlineError(f"the step timed out after {self.timeout:g} s", hint="raise it with the key timeout")
        return DeadlineError(f"the cell timed out after {self.deadline:g} s", hint="--deadline gives it more")
