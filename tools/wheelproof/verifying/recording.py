"""Writes what a run judged (``--record``), and judges a run by what another wrote (``--same-as``)."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from wheel_checks.decode import Policy, decode
from wheel_checks.errors import UsageError
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.provenance.record import SCHEMA, AskedFor, Record, RecordedFile, Sameness, Tool, compare_with
from wheel_checks.formats.documents import parse_json
from wheel_checks.formats.secrets import redact
from wheel_checks.model import Outcome, Report, Subject, Verdict
from wheel_checks.runner import run_rules
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.regular_file import open_regular, read_start
from wheelproof.reporting import EVERY_RULE
from wheelproof.wheels.model import JudgedWheel

LARGEST = 16 << 20  # bytes; the record of 200 wheels has 100 kB
_WORST_FIRST = (Verdict.FAIL, Verdict.UNDECIDED, Verdict.PASS)
_POLICY = Policy(unknown_keys=True, longest=4_096, most=100_000)


def read_record(path: Path) -> Record:
    """The record in a file. Raises UsageError when it cannot be read, FormatError when it is not a record."""
    try:
        data = read_start(path, LARGEST + 1, given=True)
    except OSError as error:
        raise UsageError(
            f"the record {path} cannot be read: {error.strerror}", expected="a file of --record"
        ) from error
    return decode(Record, parse_json(data, str(path), LARGEST), _POLICY, str(path))


@dataclass(slots=True)
class Recording:
    """The files of a run as they are judged; ``before`` is the record to compare them with, and its name."""

    asked: AskedFor
    before: Record | None = None
    name: str = ""
    _files: list[tuple[RecordedFile, Subject]] = field(default_factory=list)

    def compare(self, judged: Iterable[JudgedWheel], *, is_complete: bool) -> list[Subject]:
        """Keep the files; the subject of the comparison with the record, whichever rules were selected."""
        self._files = [(_recorded(item), item.subject) for item in judged]
        if self.before is None:
            return []
        files = _merged(file for file, _ in self._files)
        facts = compare_with(self.before, files, is_complete=is_complete)
        results = run_rules(EVERY_RULE.rules("record"), facts, Expectations())
        counts = {str(sameness): facts.count(sameness) for sameness in Sameness}
        counts |= {"gone": len(facts.gone), "new": len(facts.new)}
        headline = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        proofs = [{"file": item.now.name, "sameness": str(item.sameness), "by": item.why} for item in facts.compared]
        recorded = {"recorded": self.before.recorded, "counts": counts, "files": proofs}
        return [Subject(f"same as {self.name}", "record", headline, recorded, results)]

    def write(self, report: Report, stream: TextIO) -> None:
        """Write the record of the run, with the verdicts of its report."""
        files = _merged(
            replace(file, verdict=report.verdict_of(subject), failed=_failed(subject)) for file, subject in self._files
        )
        tool = Tool("wheelproof", report.version)
        record = Record(SCHEMA, tool, report.started, report.verdict, tuple(files), self.asked)
        json.dump(dataclasses.asdict(record), stream, indent=2)
        stream.write("\n")


def _failed(subject: Subject) -> tuple[str, ...]:
    """The rules that failed or could not decide, each once."""
    bad = (Outcome.FAIL, Outcome.ERROR)
    return tuple(dict.fromkeys(result.rule for result in subject.results if result.outcome in bad))


def _recorded(item: JudgedWheel) -> RecordedFile:
    """What is known of a file; its verdict is that of the report."""
    planned, facts, listing = item.planned, item.facts, item.planned.listing
    path = _path_of(planned.location)
    size = facts.size if facts else None if listing is None else listing.size
    read = facts.content_sha256 if facts else ""
    return RecordedFile(
        planned.file_name,
        Verdict.UNDECIDED,
        size,
        read or (_sha256(path) if path else ""),
        {} if listing is None else dict(listing.hashes),
        "" if listing is None else redact(listing.index),
        "" if path else redact(str(planned.location)),
        facts.etag if facts else "",
        (planned.target.label,) if planned.target else (),
    )


def _path_of(location: Path | str) -> Path | None:
    """The path of a file on disk, None for one on a server."""
    if isinstance(location, Path):
        return location
    return path_of(location) if is_file_url(location) else None


def _sha256(path: Path) -> str:
    """Of the whole file, "" when it cannot be read: it was judged as unreadable then."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _merged(files: Iterable[RecordedFile]) -> list[RecordedFile]:
    """Each file once, with all the targets that it was judged for, the worst verdict and every rule that failed."""
    found: dict[tuple[object, ...], RecordedFile] = {}
    for file in files:
        key = (file.name, file.index, file.url, file.size, file.sha256)
        known = found.setdefault(key, file)
        found[key] = replace(
            known,
            verdict=min(known.verdict, file.verdict, key=_WORST_FIRST.index),
            targets=tuple(dict.fromkeys((*known.targets, *file.targets))),
            failed=tuple(dict.fromkeys((*known.failed, *file.failed))),
        )
    return list(found.values())
