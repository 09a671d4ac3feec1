"""What people see first of a report, in any format: its problems by cause, and rows and columns that show something."""

from collections import Counter
from dataclasses import dataclass
from itertools import islice

from wheel_checks.model import HeatMap, Outcome, Report, Severity, Subject, Verdict
from wheel_checks.phrases import plural
from wheel_checks.report import wording
from wheel_checks.report.causes import Cause, causes, problems_of

CELL = "cell"  # the kind of a subject that is a cell of a matrix
_ORDER = (Verdict.FAIL, Verdict.UNDECIDED, Verdict.PASS)
_MOST_ROWS, _MOST_COLUMNS = 200, 72  # of the map of cells
_SIGNS: dict[Verdict | Severity, str] = {
    Verdict.FAIL: "✗",
    Verdict.UNDECIDED: "?",
    Severity.ERROR: "!",
    Severity.WARNING: "!",
    Severity.NOTE: "i",
    Verdict.PASS: "✓",
}
_MEANINGS = {"✗": "fails", "?": "undecided", "!": "passes with findings", "i": "passes with notes", "✓": "passes"}


@dataclass(frozen=True, slots=True)
class QuietRule:
    """A rule that found nothing in any subject: in how many it passed, in how many it was skipped, and why there."""

    rule: str
    title: str
    passed: int
    skipped: int
    reason: str


def found_causes(report: Report) -> list[Cause]:
    """What was found and what could not be checked, worst first, each cause once.

    Subjects that the report's own overview sums up are omitted, unless the report answers a question.
    """
    summed_up = report.overview.summed_up if report.overview and not report.answers else frozenset[str]()
    return causes(found for found in problems_of(report) if found[0].kind not in summed_up)


def worst_subjects(report: Report) -> list[Subject]:
    """The subjects: those that fail, those that are undecided, those that pass; in order among equals."""
    return sorted(report.subjects, key=lambda subject: _ORDER.index(report.verdict_of(subject)))


def speaking_rules(report: Report) -> dict[str, str]:
    """The titles, by id, of the rules that found something or could not be checked in some subject."""
    speaking = (Outcome.FAIL, Outcome.ERROR)
    found = {r.rule: r.title for subject in report.subjects for r in subject.results if r.outcome in speaking}
    return dict(sorted(found.items()))


def quiet_rules(report: Report) -> list[QuietRule]:
    """The rules that passed or were skipped in every subject, by id."""
    speaking = speaking_rules(report)
    titles: dict[str, str] = {}
    passed, skipped, reasons = Counter[str](), Counter[str](), dict[str, str]()
    for subject in report.subjects:
        for result in subject.results:
            if result.rule not in speaking:
                titles[result.rule] = result.title
                passed[result.rule] += result.outcome is Outcome.PASS
                if result.outcome is Outcome.SKIP:
                    skipped[result.rule] += 1
                    reasons.setdefault(result.rule, result.message)
    return [
        QuietRule(rule, title, passed[rule], skipped[rule], reasons.get(rule, ""))
        for rule, title in sorted(titles.items())
    ]


def quiet_phrase(rules: list[QuietRule]) -> str:
    """``27 rules pass, 3 were skipped``: of rules that found nothing; "" without any."""
    passing = sum(rule.passed > 0 for rule in rules)
    parts = [f"{plural(passing, 'rule')} {'passes' if passing == 1 else 'pass'}"] if passing else []
    if left := len(rules) - passing:
        parts.append(f"{plural(left, 'rule') if not parts else left} {'was' if left == 1 else 'were'} skipped")
    return ", ".join(parts)


def cell_map(report: Report) -> list[HeatMap]:
    """The cells of a matrix, if there are any: platforms and Pythons by what the ids say of torch and further axes."""
    cells = [subject for subject in report.subjects if subject.kind == CELL]
    platforms = {platform: number for number, platform in enumerate(dict.fromkeys(_fact(c, "platform") for c in cells))}
    order = {id(c): (platforms[_fact(c, "platform")], wording.version_key(_fact(c, "python"))) for c in cells}
    rows: dict[str, dict[str, Subject]] = {}
    every: dict[str, None] = {}
    for cell in sorted(cells, key=lambda cell: order[id(cell)]):
        platform, python = _fact(cell, "platform"), _fact(cell, "python")
        column = cell.id.removeprefix(f"{platform}-py{python}-")
        every[column] = None
        rows.setdefault(f"{platform}, Python {python}", {})[column] = cell
    columns, shown = list(every)[:_MOST_COLUMNS], dict(islice(rows.items(), _MOST_ROWS))
    placed = {
        (row, number): by_column[column]
        for row, by_column in enumerate(shown.values())
        for number, column in enumerate(columns, 1)
        if column in by_column
    }
    if not placed:
        return []
    states = {place: _state(report, cell) for place, cell in placed.items()}
    signs = {place: _SIGNS[state] for place, state in states.items()}
    left = len(cells) - len(placed)
    heading = f"Cells by platform, Python and torch{f'; {left:,} more are left out' if left else ''}"
    lines = (
        (name, *(signs.get((row, number), "") for number in range(1, len(columns) + 1)))
        for row, name in enumerate(shown)
    )
    subjects = {place: cell.id for place, cell in placed.items()}
    return [
        HeatMap(
            heading,
            ("platform", *columns),
            tuple(lines),
            states=states,
            heading=heading,
            signs=_MEANINGS,
            subjects=subjects,
        )
    ]


def _fact(cell: Subject, name: str) -> str:
    return str(cell.facts.get(name, ""))


def _state(report: Report, subject: Subject) -> Verdict | Severity:
    """The verdict, or the worst finding of a subject that passes nevertheless."""
    verdict = report.verdict_of(subject)
    severities = [result.severity for result in wording.problems(subject)]
    if verdict is not Verdict.PASS or not severities:
        return verdict
    return max(severities, key=lambda severity: severity.rank)
