"""The report for programs: ``wheelproof.report/1``, described by ``report.schema.json`` next to this module."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TextIO

from wheel_checks.model import SCHEMA, Answer, Audience, CheckResult, Outcome, Report, Subject
from wheel_checks.report.wording import fix_document, json_ready, write_json


def render(report: Report, stream: TextIO) -> None:
    """Write the report as one JSON document in ASCII, so that no encoding can spoil it."""
    write_json(as_dict(report), stream)


def as_dict(report: Report) -> dict[str, Any]:
    """The report in the shape of ``wheelproof.report/1``, ready for ``json.dumps``."""
    document: dict[str, Any] = json_ready(
        {
            "schema": SCHEMA,
            "tool": {"name": "wheelproof", "version": report.version},
            "command": report.command,
            "started": report.started,
            "seconds": report.seconds,
            "fail_on": report.fail_on,
            "summary": {
                "verdict": report.verdict,
                **{outcome.value: report.count(outcome) for outcome in Outcome},
                "bytes_read": report.bytes_read,
                "requests": report.requests,
                **({"answers": [_answer(answer) for answer in report.answers]} if report.answers else {}),
                **({"also": report.also} if report.also else {}),
                **({"silenced": len(report.tree.silenced)} if report.tree else {}),
            },
            **({"tree": asdict(report.tree)} if report.tree else {}),
            "subjects": [_subject(report, subject) for subject in report.subjects],
        }
    )
    return document


def _answer(answer: Answer) -> dict[str, Any]:
    """An answer, with its whole line in ``text``."""
    document = {"text": answer.line, **asdict(answer)}
    return document if answer.claims else {key: value for key, value in document.items() if key != "claims"}


def _subject(report: Report, subject: Subject) -> dict[str, Any]:
    return {
        "id": subject.id,
        "kind": subject.kind,
        "headline": subject.headline,
        **({"reader": subject.reader} if subject.reader is not Audience.BOTH else {}),
        "verdict": report.verdict_of(subject),
        "facts": subject.facts,
        "results": [_result(result, subject.reader) for result in subject.results],
        **({"record": subject.record} if subject.record else {}),
    }


def _result(result: CheckResult, reader: Audience) -> dict[str, Any]:
    document: dict[str, Any] = {
        "rule": result.rule,
        "title": result.title,
        "outcome": result.outcome,
        "severity": result.severity,
        "message": result.message,
        "audience": result.audience,
        "evidence": [asdict(evidence) for evidence in result.evidence],
    }
    if not result.decides and reader is Audience.INSTALLER:
        document["decides"] = False
    if result.fix:
        document["fix"] = fix_document(result.fix)
    if result.location:
        parts = asdict(result.location).items()
        document["location"] = {name: value for name, value in parts if value not in ("", None)}
    document["seconds"] = result.seconds
    return document
