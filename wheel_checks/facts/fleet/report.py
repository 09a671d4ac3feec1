"""What reports say of one host."""

from collections.abc import Mapping
from dataclasses import dataclass

from wheel_checks.model import CheckResult, Severity

UNKNOWN, ABSENT = "unknown", "none"
DOCTOR = "doctor"
GPUS = "GPUs"
DOMAIN = "NVLink domain"  # the fact whose value says which hosts belong together, and is not compared

Facts = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ReportSource:
    """One report about a host: which ``command`` made it, where it was read, when it ``started`` (UTC, ISO 8601)."""

    command: str
    source: str
    started: str
    version: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of a report that is more than is kept: what, and how grave it can be at most.

    ``severity`` is None when that is unknown.
    """

    what: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class HostReport:
    """What one report says of a host.

    ``facts`` are compared: one short text per name, None for one that could not be read; a fact that other hosts have
    and this one lacks is not there. ``results`` are the findings, and the checks that could not be made; ``root`` is
    the rule of the doctor's root cause ("" if none). A report with more facts than can be compared has facts None, and
    says so in ``left_out``.
    """

    source: ReportSource
    headline: str
    facts: Facts | None
    results: tuple[CheckResult, ...] = ()
    root: str = ""
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and its latest report of each command, the doctor's first."""

    name: str
    reports: tuple[HostReport, ...]

    @property
    def headline(self) -> str:
        """What the first report says in short."""
        return self.reports[0].headline

    @property
    def root(self) -> str:
        """The rule of the root cause, "" when no report names one."""
        return next((report.root for report in self.reports if report.root), "")

    @property
    def results(self) -> tuple[CheckResult, ...]:
        """The findings of all reports."""
        return tuple(result for report in self.reports for result in report.results)
