"""Reports of `matrix run` from several machines as one report, equal to a single machine's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wheel_checks.catalogue import get_rule
from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.matrix import CellFacts, Step
from wheel_checks.facts.wheel.expectations import Expectations, parse_expectation
from wheel_checks.fixes.commands import in_words, option, run
from wheel_checks.model import Report, Subject, Unavailable
from wheel_checks.phrases import summarised
from wheel_checks.runner import run_rules
from wheelproof.matrix.model import Matrix
from wheelproof.matrix.records.record import CellRecord, MatrixIdentity, Member, parse_record
from wheelproof.matrix.report import EVERY_STEP, make_report
from wheelproof.matrix.run.execution import COMMAND, facts_of, judge
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection

_UNREADABLE = "report"  # the kind of a subject that is not a cell: a document in which nothing can be read


def is_of_cells(document: Any) -> bool:
    """Whether a document is a report of `matrix run`, whose cells can be judged again."""
    if not isinstance(document, dict) or document.get("command") != COMMAND:
        return False
    subjects = document.get("subjects")
    return isinstance(subjects, list) and any(isinstance(each, dict) and "record" in each for each in subjects)


@dataclass
class _Reports:
    """The cells of many reports: the latest record of each, replaced ones, and unreadable documents."""

    newest: dict[str, CellRecord] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    replaced: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unreadable: dict[str, str] = field(default_factory=dict)

    def add(self, source: str, document: Any) -> None:
        """Take in a document that was read at ``source``, or the FormatError that says why there isn't one."""
        try:
            records = _records(document, source)
        except FormatError as error:
            self.unreadable[source] = str(error)
            return
        self.started.append(str(document["started"]))
        place = Path(source).parent
        for record in records:
            known, where = self.newest.get(record.cell.id), self.sources.get(record.cell.id, "")
            old, old_source, new, new_source = known, where, record, source
            if known is not None and known.ended >= record.ended:
                old, old_source, new, new_source = record, source, known, where
            if old is not None and new.ended != old.ended:
                self.replaced[record.cell.id].append(
                    f"it was reported twice: what ended at {new.ended} ({new_source}) counts, and not what ended at "
                    f"{old.ended} ({old_source})"
                )
            if new is record:
                here = record.with_logs(lambda log: str(place / log))  # an absolute path is not changed by the join
                self.newest[record.cell.id], self.sources[record.cell.id] = here, source


def merge(
    documents: Iterable[tuple[str, Any]],
    selection: Selection = EVERY_RULE,
    matrix: Matrix | None = None,
    only: Sequence[str] = (),
) -> Report:
    """The report on every cell of a matrix: the same as if one machine had run all of them.

    ``documents`` come with their sources. The matrix is taken from the reports, unless it is given; only its cells with
    an id in ``only`` are expected. Raises UsageError for a report of another matrix, FormatError without a report of
    cells.
    """
    opened, reports = OpenReport(COMMAND), _Reports()
    for source, document in documents:
        reports.add(source, document)
    identity = MatrixIdentity.of(matrix) if matrix else _agreed(reports)
    _refuse_others(reports, identity)
    members = matrix.only(only) if matrix else identity.cells
    names = dict.fromkeys(member.id for member in members)
    records = [
        replace(reports.newest[member.id], matrix=identity)
        for member in identity.cells
        if member.id in names and member.id in reports.newest
    ]
    missing = [_missing(m, identity) for m in identity.cells if m.id in names and m.id not in reports.newest]
    opened = replace(opened, started=min([opened.started, *reports.started]))
    notes = [*(f"{name}: {why}" for name in names for why in reports.replaced[name]), *_versions(records)]
    more = [_unreadable(source, why) for source, why in reports.unreadable.items()]
    report = judge(records, opened, selection, missing=missing, more=more, notes=notes)
    return replace(report, subjects=tuple(_with_replaced(each, reports.replaced[each.id]) for each in report.subjects))


def _with_replaced(subject: Subject, replaced: Sequence[str]) -> Subject:
    return replace(subject, facts={**subject.facts, "replaced": [*replaced]}) if replaced else subject


def _records(document: Any, source: str) -> list[CellRecord]:
    """The records in a document. Raises FormatError."""
    if isinstance(document, FormatError):
        raise document
    if not is_of_cells(document):
        raise FormatError(
            f"{source} is not a report of cells",
            expected="what `wheelproof matrix run` writes with --format json, or into the folder of --records",
        )
    subjects = [subject for subject in document["subjects"] if isinstance(subject, dict) and "record" in subject]
    return [_judged(parse_record(subject["record"], source), source) for subject in subjects]


def _judged(record: CellRecord, source: str) -> CellRecord:
    """The record. Raises FormatError if the results of its steps cannot be read."""
    try:
        make_report([facts_of(record)], {record.cell.id: record.by_step}, OpenReport(COMMAND))
    except (FormatError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FormatError(f"{source}: what {record.cell.id} found cannot be read: {error!r}") from error
    return record


def _agreed(reports: _Reports) -> MatrixIdentity:
    """The matrix that the latest record is of. Raises FormatError when there is no record."""
    if not reports.newest:
        reasons = "; ".join(f"{source}: {why}" for source, why in reports.unreadable.items())
        raise FormatError(f"no report of any cell{f': {reasons}' if reasons else ''}", hint="name the matrix: --matrix")
    return max(reports.newest.values(), key=lambda record: record.ended).matrix


def _refuse_others(reports: _Reports, identity: MatrixIdentity) -> None:
    """Raise UsageError when a record is of another matrix, or of this one as it was before a change."""
    others = [name for name, record in reports.newest.items() if record.matrix.digest != identity.digest]
    if others:
        files = summarised(list(dict.fromkeys(reports.sources[name] for name in others)), 4)
        theirs = reports.newest[others[0]].matrix
        verb = "was" if len(others) == 1 else "were"
        raise UsageError(
            f"{files} cannot be merged: {summarised(others, 4)} {verb} run for {theirs.source} with "
            f"{len(theirs.cells)} cells (digest {theirs.digest[:12]}), which is not the current {identity.source} "
            f"(digest {identity.digest[:12]})",
            expected="reports of one matrix, in one version",
            hint="rerun these cells, or merge them separately",
        )


def _missing(member: Member, identity: MatrixIdentity) -> CellFacts:
    """A cell that did not report, as facts: it was not carried out."""
    command = in_words(run("wheelproof", "matrix", "run", option("--cell", member.id)))
    step = Step("report", failure=Unavailable("no report found for this cell", f"{command}, and merge again"))
    wanted = parse_expectation(member.accelerator)
    return CellFacts(
        *(member.id, member.platform, member.python, member.torch), wanted, source=identity.source, steps=(step,)
    )


def _unreadable(source: str, why: str) -> Subject:
    """An unreadable document, which may be the latest report of a cell: undecided."""
    failed = Step("report", failure=Unavailable(why, "rerun the cell, or remove the file"))
    facts = CellFacts(source, "", "", "", parse_expectation("cpu"), steps=(failed,))
    return Subject(source, _UNREADABLE, "cannot be read", {}, run_rules([get_rule(EVERY_STEP)], facts, Expectations()))


def _versions(records: Iterable[CellRecord]) -> list[str]:
    versions = sorted({record.version for record in records})
    return [f"the cells were run by wheelproof {' and '.join(versions)}"] if len(versions) > 1 else []
