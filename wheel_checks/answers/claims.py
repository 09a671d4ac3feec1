"""The claims that answers are made of: which rules must have run for each, and for which subjects.

A claim with an obligation that is not discharged is not proven, even if no rule objected. A rule that was skipped,
silenced or not run discharges nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from wheel_checks.answers.evidence import Evidence, Reason, gather, package_name
from wheel_checks.answers.questions import OF_LOADING, TORCH
from wheel_checks.model import Claim, Outcome, Subject, Verdict
from wheel_checks.phrases import joined

LOADS = "loads"
READS_LIBRARIES = "--depth links"
_NAME = re.compile(r"[\w.-]+", re.ASCII)


def claim(
    name: str, subjects: Iterable[tuple[Subject, Collection[str]]], gpu: str = "", denies: Collection[str] = ()
) -> Claim:
    """A claim about subjects, each with the rules that it must have passed; "" is no ``gpu``.

    What ``denies`` it is included, and need not have been run.
    """
    evidence, rules = Evidence(), dict[str, None]()
    for subject, obligations in subjects:
        rules |= dict.fromkeys(obligations)
        own = tuple(result for result in subject.results if result.rule in obligations or result.rule in denies)
        evidence += gather(replace(subject, results=own), obligations, gpu)
    return made(name, evidence, tuple(rules))


def made(name: str, evidence: Evidence, obligations: tuple[str, ...], coverage: str = "", command: str = "") -> Claim:
    """A claim by its evidence. ``command`` is shown only if something is open."""
    is_open = evidence.verdict is Verdict.UNDECIDED
    left_open = evidence.reasons if is_open else ()
    return Claim(name, evidence.verdict, obligations, coverage, left_open, command if is_open else "")


def loads(packages: Sequence[Subject], *, every: bool = False) -> tuple[Claim, Evidence]:
    """The claim that every library and symbol that an import of the packages needs is there, and its evidence.

    It is about the wheels with compiled files that were requested, or that require torch; torch's own symbols are those
    of a table. The other wheels of a stack are compiled for a platform tag alone, which pip and uv compare. ``every``
    makes it a claim about all wheels with compiled files.
    """
    concerned = [package for package in packages if _must_be_read(package) or (every and _is_compiled(package))]
    read = [package for package in packages if "links" in package.facts]
    evidence = Evidence()
    for package in read:
        own = tuple(r for r in package.results if r.rule in OF_LOADING and r.outcome is not Outcome.SKIP)
        run = {result.rule for result in package.results}
        silenced = [Reason("", f"{rule} was not run") for rule in OF_LOADING if rule not in run]
        evidence += gather(replace(package, results=own), ()) + Evidence(left_open=tuple(silenced))
    unread = [package_name(package) for package in concerned if package not in read]
    for name in unread:
        evidence += Evidence(left_open=(Reason("", f"its libraries were not read ({READS_LIBRARIES})", name),))
    total = len(read) + len(unread)
    coverage = f"the libraries of {len(read)} of {total} compiled wheels were read" if total else ""
    return made(LOADS, evidence, OF_LOADING if total else (), coverage, READS_LIBRARIES), evidence


def on_hosts(subjects: Iterable[Subject]) -> str:
    """What an answer of yes assumes of a host: ", on hosts with X11"; "" for nothing."""
    found = sorted({result.assumes for subject in subjects for result in subject.results if result.assumes})
    return f", on hosts with {joined(found)}" if found else ""


def is_requested(package: Subject) -> bool:
    """True for the package of a requirement that was given, not only required by another package."""
    return any(str(demand).startswith("you ask for") for demand in package.facts.get("demanded_by", ()))


def _is_compiled(package: Subject) -> bool:
    return bool(package.facts.get("native_members", {}).get("count"))


def _must_be_read(package: Subject) -> bool:
    facts = package.facts
    if not _is_compiled(package) or facts.get("package") == TORCH:
        return False
    required = (_NAME.match(str(requirement)) for requirement in facts.get("requirements", ()))
    return is_requested(package) or any(name is not None and name[0] == TORCH for name in required)
