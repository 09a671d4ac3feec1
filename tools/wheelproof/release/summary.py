"""What a release engineer reads first: SHIP or STOP, the reasons, a line each, and the matrix. In text and Markdown."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wheel_checks.model import Outcome, Report, Severity, Subject, Verdict
from wheel_checks.phrases import and_more, shortened
from wheel_checks.report.wording import answer_lines, label_of, neutral, silenced_phrase, worst_first
from wheelproof.release.matrix import MISSING

SHIP, STOP = "SHIP", "STOP"
MOST_REASONS = 20  # lines; the report contains all of them
_NAMED = 2  # files that are named one by one
_MARKS = {"pass": "ok", "fail": "FAIL", "undecided": "not checked", MISSING: "MISSING"}
_EMOJI = {"pass": "✅", "fail": "❌", "undecided": "❔", MISSING: "❌ missing"}
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


class Reason(NamedTuple):
    """What a rule says, and of which files: none when it is about the release as a whole."""

    label: str
    rule: str
    message: str
    files: tuple[str, ...]


def reasons(report: Report) -> tuple[Reason, ...]:
    """Why not to ship, then what else to know: every finding above a note, and all that could not be checked.

    What a rule says alike of several files is one reason.
    """
    found = [
        (result, subject)
        for subject in report.subjects
        for result in subject.results
        if result.outcome is Outcome.ERROR or (result.outcome is Outcome.FAIL and result.severity is not Severity.NOTE)
    ]
    subjects = {id(result): subject for result, subject in found}
    groups: dict[tuple[str, str, str], list[Subject]] = defaultdict(list)
    for result in worst_first(result for result, _ in found):
        groups[label_of(result), result.rule, result.message].append(subjects[id(result)])
    return tuple(
        Reason(*key, tuple(subject.id for subject in about if subject.kind != "release-set"))
        for key, about in groups.items()
    )


def text_summary(report: Report, *, quiet: bool = False, with_reasons: bool = True) -> str:
    """The summary for a terminal or a log; ``quiet`` leaves the answer and the title."""
    lines = [*answer_lines(report), _title(report)]
    if with_reasons and not quiet:
        lines += ["  ".join(("", f"{r.label:11}", r.rule, _sentence(r, report))) for r in _shown(report)]
        lines += [f"  {more}" for more in _more(report)]
    if not quiet:
        table = _matrix(report, _MARKS)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        cells = [[f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)] for row in table]
        lines += ["", *("  ".join(row).rstrip() for row in cells), ""]
    return "".join(f"{neutral(line)}\n" for line in lines)


def markdown_summary(report: Report) -> str:
    """The summary in GitHub's Markdown, which the report follows."""
    title = "\n".join(f"## {_escaped(line)}\n" for line in (*answer_lines(report), _title(report)))
    items = [f"- **{r.label} {_escaped(r.rule)}**: {_escaped(_sentence(r, report))}\n" for r in _shown(report)]
    items += [f"- {more}\n" for more in _more(report)]
    header, *rows = [[_escaped(cell) for cell in row] for row in _matrix(report, _EMOJI)]
    table = [f"| {' | '.join(row)} |\n" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(filter(None, (title, "".join(items), "".join(table), "\n")))


def _title(report: Report) -> str:
    release = report.subjects[0]
    word = SHIP if report.verdict is Verdict.PASS else STOP  # also when something could not be checked
    return ", ".join(filter(None, (f"{word}  {release.id}: {release.headline}", silenced_phrase(report))))


def _shown(report: Report) -> Sequence[Reason]:
    return reasons(report)[:MOST_REASONS]


def _more(report: Report) -> Iterable[str]:
    rest = and_more(len(reasons(report)) - MOST_REASONS, before="", grouping="")
    return [f"{rest}, below"] if rest else []


def _sentence(reason: Reason, report: Report) -> str:
    """The message, and the files by name or, when many, by number and platform."""
    if not reason.files:
        return shortened(reason.message)
    cells = report.subjects[0].facts["cells"]
    platforms = dict.fromkeys(c["platform"] for c in cells if not set(reason.files).isdisjoint(c["files"]))
    about = f"{len(reason.files)} files"
    about += f" ({', '.join(platforms)})" if platforms else ""
    return f"{shortened(reason.message)}: {', '.join(reason.files) if len(reason.files) <= _NAMED else about}"


def _matrix(report: Report, marks: Mapping[str, str]) -> list[list[str]]:
    """Pythons down, platforms across: the verdict of each cell with its accelerator, "-" where nothing is expected."""
    facts: Mapping[str, Any] = report.subjects[0].facts
    cells = {
        (cell["platform"], cell["python"]): f"{marks[cell['verdict']]} {cell['accelerator']}".strip()
        for cell in facts["cells"]
    }
    rows = [[python, *(cells.get((p, python), "-") for p in facts["platforms"])] for python in facts["pythons"]]
    return [["Python", *facts["platforms"]], *rows]


def _escaped(text: str) -> str:
    """Prose without markup: a backslash before any ASCII punctuation is the character itself (CommonMark 2.4)."""
    return _PUNCTUATION.sub(r"\\\g<0>", neutral(text))
