"""A row of the tables of cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wheel_checks.model import Severity

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True)
class Case:
    """Given these facts, the rule ``says`` these messages, and nothing else; nothing at all in a near miss.

    ``severity`` is that of every message, ``member`` and ``line`` the location of the first, ``evidence`` values that
    the first one shows. ``undecided``: the messages are about undecided points.
    """

    rule: str
    given: str
    facts: Callable[[], Any]
    says: tuple[str, ...] = ()
    severity: Severity = ERROR
    member: str = ""
    line: int | None = None
    evidence: tuple[str, ...] = ()
    expectations: Mapping[str, Any] = field(default_factory=dict)
    undecided: bool = False

    @property
    def id(self) -> str:
        return f"{self.rule} {'fails' if self.says else 'is silent'}: {self.given}"
