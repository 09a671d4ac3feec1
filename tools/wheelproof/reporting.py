"""What every command that judges has: rules that are selected, and a report that it opens and closes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wheel_checks.model import FailOn, Overview, Report, Rule, Subject
from wheel_checks.sources.byte_source import Cost
from wheelproof import __version__


@dataclass(frozen=True, slots=True)
class Selection:
    """The rules that count, by prefixes of their ids, and the lowest severity that fails the run."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: FailOn = FailOn.ERROR

    def rules(self, kind: str) -> list[Rule]:
        """The selected rules that judge subjects of this kind. Raises UsageError for a prefix that means nothing."""
        from wheel_checks.catalogue import select_rules  # imports every rule: not for --help

        return select_rules(kind, self.select, self.ignore)

    def rules_by_kind(self, kinds: Iterable[str]) -> dict[str, list[Rule]]:
        """The selected rules for each of these kinds. Raises UsageError for a prefix that means nothing."""
        return {kind: self.rules(kind) for kind in kinds}


EVERY_RULE = Selection()
NO_COST = Cost()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class OpenReport:
    """The report that ``command`` is making, and when it began, in UTC and in seconds."""

    command: str
    started: str = field(default_factory=_now)
    start: float = field(default_factory=time.perf_counter)

    def close(
        self,
        subjects: Iterable[Subject],
        fail_on: FailOn,
        *,
        cost: Cost = NO_COST,
        local: int = 0,
        overview: Overview | None = None,
    ) -> Report:
        """The report on ``subjects``, with the time since it was opened; ``local`` bytes were read besides ``cost``."""
        return Report(
            command=self.command,
            version=__version__,
            started=self.started,
            seconds=time.perf_counter() - self.start,
            subjects=tuple(subjects),
            fail_on=fail_on,
            bytes_read=cost.bytes_read + local,
            requests=cost.requests,
            overview=overview,
        )
