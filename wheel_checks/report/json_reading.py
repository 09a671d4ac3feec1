"""A report read back from its json format, as far as people look at it: what makes it again is not part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wheel_checks.decode import Policy, decode
from wheel_checks.errors import FormatError
from wheel_checks.model import (
    SCHEMA,
    Answer,
    Audience,
    CheckResult,
    FailOn,
    Report,
    Subject,
    TreeConfiguration,
)

_POLICY = Policy(unknown_keys=True, null_is_absent=True)


@dataclass(frozen=True, slots=True)
class _Tool:
    version: str = ""


@dataclass(frozen=True, slots=True)
class _Summary:
    bytes_read: int = 0
    requests: int = 0
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class _Subject:
    id: str
    kind: str
    headline: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    results: tuple[CheckResult, ...] = ()
    reader: Audience = Audience.BOTH


@dataclass(frozen=True, slots=True)
class _Document:
    command: str
    started: str
    tool: _Tool
    seconds: float = 0.0
    fail_on: FailOn = FailOn.ERROR
    summary: _Summary = _Summary()
    subjects: tuple[_Subject, ...] = ()
    tree: TreeConfiguration | None = None


def read_report(document: Any, source: str) -> Report:
    """The report in a JSON document. Raises FormatError, naming ``source``, when it is not a report of this form."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise FormatError(f"{source} is not a report of wheelproof", expected=f"a document of the schema {SCHEMA}")
    read = decode(_Document, document, _POLICY, source)
    return Report(
        read.command,
        read.tool.version,
        read.started,
        read.seconds,
        tuple(Subject(s.id, s.kind, s.headline, s.facts, s.results, s.reader) for s in read.subjects),
        read.fail_on,
        read.summary.bytes_read,
        read.summary.requests,
        tree=read.tree,
        answers=read.summary.answers,
    )
