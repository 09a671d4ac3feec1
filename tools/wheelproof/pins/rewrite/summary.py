"""Plans for people and for programs: a summary first, then what happens where."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from wheel_checks.phrases import plural
from wheel_checks.report.wording import neutral
from wheelproof.pins.model import Change, FilePlan, Notice, Plan
from wheelproof.pins.rewrite.diff import unified
from wheelproof.pins.rewrite.effect import Effect

SCHEMA = "wheelproof.pins-plan/1"
_COLORS = {"-": "31", "+": "32", "@": "36"}


def as_text(plan: Plan, undo: str, *, written: bool, diff: bool, color: bool, effects: Sequence[Effect] = ()) -> str:
    """The summary, then each file with its changes (or the diff), then the warnings, then how to ``undo`` it.

    Between them stand the ``effects``: what installs would do to the installed torch.
    """
    lines = [_headline(plan, written=written)]
    for file in plan.changed:
        lines += _diff(file, color=color) if diff else _changes(file)
    lines += (neutral(effect.sentence) for effect in effects)
    lines += (line.rstrip("\n") for line in warnings_of(plan))
    if written and plan.changed:
        lines.append(neutral(undo))
    return "".join(f"{line}\n" for line in lines)


def as_json(plan: Plan, *, written: bool, effects: Sequence[Effect] = ()) -> str:
    """The plan as JSON: spans count bytes, lines and columns from 1."""
    document = {
        "schema": SCHEMA,
        "written": written,
        "files": [_file_json(file) for file in plan.files],
        "notices": [_notice_json(notice) for notice in plan.notices],
        "versions": dict(plan.versions),
        "effects": [_effect_json(effect) for effect in effects],
    }
    return json.dumps(document, indent=2) + "\n"


def warnings_of(plan: Plan) -> Iterator[str]:
    """One line per notice."""
    for notice in (*plan.notices, *(notice for file in plan.files for notice in file.notices)):
        place = f"{notice.place.path}:{notice.place.line}: " if notice.place else ""
        yield neutral(f"warning: {place}{notice.message} [{notice.code}]") + "\n"


_ESCAPE = "\x1b["


def _headline(plan: Plan, *, written: bool) -> str:
    changes = [change for file in plan.files for change in file.changes]
    removed = sum(change.replacement is None for change in changes)
    found = sum(len(file.document.requirements) for file in plan.files)
    read = f"{plural(len(plan.files), 'file')} read, {plural(found, 'requirement')} found"
    if not changes:
        return f"{read}: nothing to change"
    verb = "" if written else "would be "
    counts = ((removed, "removed"), (len(changes) - removed, "replaced"))
    words = " and ".join(f"{count:,} {verb}{word}" for count, word in counts if count)
    return f"{read}: {words} in {plural(len(plan.changed), 'file')}"


def _sentence(change: Change) -> str:
    found = change.found
    text = " ".join(found.text.split())
    section = f" ({found.place.section})" if found.place.section else ""
    if change.replacement is None:
        return f"line {found.place.line}: {text} removed{section}"
    return f"line {found.place.line}: {text} becomes {change.replacement}{section}"


def _changes(file: FilePlan) -> Iterator[str]:
    yield neutral(f"{file.path}")
    for change in file.changes:
        yield f"  {neutral(_sentence(change))}"


def _diff(file: FilePlan, *, color: bool) -> Iterator[str]:
    for line in unified(file):
        text = "\n".join("\t".join(map(neutral, part.split("\t"))) for part in line.split("\n"))
        code = _COLORS.get(line[:1]) if color else None
        yield f"{_ESCAPE}{code}m{text}{_ESCAPE}0m" if code else text


def _file_json(file: FilePlan) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "target": str(file.target),
        "kind": file.document.kind,
        "requirements": len(file.document.requirements),
        "changes": [
            {
                "name": change.found.name,
                "text": change.found.text,
                "line": change.found.place.line,
                "column": change.found.place.column,
                "section": change.found.place.section,
                "role": change.found.role,
                "replacement": change.replacement,
            }
            for change in file.changes
        ],
        "edits": [
            {"start": e.start, "end": e.end, "replacement": e.replacement.decode("utf-8", "replace")}
            for e in file.edits
        ],
        "notices": [_notice_json(notice) for notice in file.notices],
    }


def _effect_json(effect: Effect) -> dict[str, Any]:
    outcomes = {"before": effect.before, "after": effect.after}
    found = {key: {"torch": str(outcome.fate), "message": outcome.message} for key, outcome in outcomes.items()}
    return {"path": str(effect.path), **found}


def _notice_json(notice: Notice) -> dict[str, Any]:
    place = notice.place
    found = {"path": str(place.path), "line": place.line, "column": place.column} if place else {}
    return {"code": notice.code, "message": notice.message, **found}
