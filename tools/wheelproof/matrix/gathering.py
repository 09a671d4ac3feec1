"""Reports of `matrix run` from several machines as the one report that a single machine would have written."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wheel_checks.catalogue import get_rule
from wheel_checks.commands import in_words, option, run
from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.expectations import Expectations, parse_expectation
from wheel_checks.facts.matrix import CellFacts, Step
from wheel_checks.model import Report, Subject, Unavailable
from wheel_checks.phrases import summarised
from wheel_checks.runner import run_rules
from wheelproof.matrix.merging import COMMAND, facts_of, judge
from wheelproof.matrix.model import Matrix
from wheelproof.matrix.records import CellRecord, MatrixIdentity, Member, parse_record
from wheelproof.matrix.report import WHOLE_WAY, make_report
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection

_UNREADABLE = "report"  # the kind of a subject that is not a cell: a document in which nothing can be read


def is_of_cells(document: Any) -> bool:
    """Whether a document is a report of `matrix run`, whose cells can be judged again."""
    if not isinstance(document, dict) or document.get("command") != COMMAND:
        return False
    subjects = document.get("subjects")
    return isinstance(subjects, list) and any(isinstance(each, dict) and "record" in each for each in subjects)


@dataclass
class Gathered:
    """The cells of many reports: the latest record of each, what it replaced, and what could not be read."""

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
                here = record.with_logs(lambda log: str(place / log))  # an absolute path stays what it is
                self.newest[record.cell.id], self.sources[record.cell.id] = here, source


def merge(
    documents: Iterable[tuple[str, Any]],
    selection: Selection = EVERY_RULE,
    matrix: Matrix | None = None,
    only: Sequence[str] = (),
) -> Report:
    """The report on every cell of a matrix: what one machine that had run all of them would have reported.

    ``documents`` come with where they were read. The matrix is what the reports say, unless it is given; of it ``only``
    the cells with such an id are expected. Raises UsageError for a report of another matrix, FormatError when no
    document is a report of cells.
    """
    opened, gathered = OpenReport(COMMAND), Gathered()
    for source, document in documents:
        gathered.add(source, document)
    identity = MatrixIdentity.of(matrix) if matrix else _agreed(gathered)
    _refuse_others(gathered, identity)
    members = matrix.only(only) if matrix else identity.cells
    names = dict.fromkeys(member.id for member in members)
    records = [
        replace(gathered.newest[member.id], matrix=identity)
        for member in identity.cells
        if member.id in names and member.id in gathered.newest
    ]
    missing = [_missing(m, identity) for m in identity.cells if m.id in names and m.id not in gathered.newest]
    opened = replace(opened, started=min([opened.started, *gathered.started]))
    notes = [*(f"{name}: {why}" for name in names for why in gathered.replaced[name]), *_versions(records)]
    more = [_unreadable(source, why) for source, why in gathered.unreadable.items()]
    report = judge(records, opened, selection, missing=missing, more=more, notes=notes)
    return replace(report, subjects=tuple(_with_replaced(each, gathered.replaced[each.id]) for each in report.subjects))


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
    """The record. Raises FormatError when what its steps found cannot be read."""
    try:
        make_report([facts_of(record)], {record.cell.id: record.by_step}, OpenReport(COMMAND))
    except (FormatError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FormatError(f"{source}: what {record.cell.id} found cannot be read: {error!r}") from error
    return record


def _agreed(gathered: Gathered) -> MatrixIdentity:
    """The matrix that the latest record is of. Raises FormatError when there is no record."""
    if not gathered.newest:
        reasons = "; ".join(f"{source}: {why}" for source, why in gathered.unreadable.items())
        raise FormatError(f"no report of any cell{f': {reasons}' if reasons else ''}", hint="name the matrix: --matrix")
    return max(gathered.newest.values(), key=lambda record: record.ended).matrix


def _refuse_others(gathered: Gathered, identity: MatrixIdentity) -> None:
    """Raise UsageError when a record is of another matrix, or of this one as it was before a change."""
    others = [name for name, record in gathered.newest.items() if record.matrix.digest != identity.digest]
    if others:
        files = summarised(list(dict.fromkeys(gathered.sources[name] for name in others)), 4)
        theirs = gathered.newest[others[0]].matrix
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
    """A document that may be the latest report of a cell: what it says is undecided."""
    failed = Step("report", failure=Unavailable(why, "rerun the cell, or remove the file"))
    facts = CellFacts(source, "", "", "", parse_expectation("cpu"), steps=(failed,))
    return Subject(source, _UNREADABLE, "cannot be read", {}, run_rules([get_rule(WHOLE_WAY)], facts, Expectations()))


def _versions(records: Iterable[CellRecord]) -> list[str]:
    versions = sorted({record.version for record in records})
    return [f"the cells were run by wheelproof {' and '.join(versions)}"] if len(versions) > 1 else []
