"""The claims that answers are made of: which rules must have run for each, and for which subjects.

A claim with an obligation that is not discharged is not proven, even if no rule objected. A rule that was skipped,
silenced or not run discharges nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from wheel_checks.answers.evidence import Evidence, gather
from wheel_checks.answers.questions import (
    OF_A_MANYLINUX_TAG,
    OF_LIBRARIES,
    OF_SYMBOLS,
    OF_THE_STABLE_ABI,
    OF_UNREAD_LIBRARIES,
    TORCH,
)
from wheel_checks.model import Claim, Outcome, Subject, Verdict
from wheel_checks.phrases import joined, plural

LOADS = "loads"
_NAME = re.compile(r"[\w.-]+", re.ASCII)
_OPTION = re.compile(r"\((--[a-z-]+ \w+)\)$")  # that closes an open obligation, at the end of its reason


def claim(
    name: str,
    subjects: Iterable[tuple[Subject, Collection[str]]],
    gpu: str = "",
    coverage: str = "",
    denies: Collection[str] = (),
) -> Claim:
    """A claim about subjects, each with the rules that it must have passed; "" is no ``gpu``.

    What ``denies`` it is included, and need not have been run.
    """
    evidence, rules = Evidence(), dict[str, None]()
    for subject, obligations in subjects:
        rules |= dict.fromkeys(obligations)
        own = tuple(result for result in subject.results if result.rule in obligations or result.rule in denies)
        evidence += gather(replace(subject, results=own), obligations, gpu)
    return made(name, evidence, rules, coverage)


def made(name: str, evidence: Evidence, obligations: Iterable[str], coverage: str = "") -> Claim:
    """A claim by its evidence, with the option that closes what is open."""
    is_open = evidence.verdict is Verdict.UNDECIDED
    left_open = tuple(f"{rule}: {text}" if rule else text for rule, text in evidence.by_rule) if is_open else ()
    options = [match[1] for text in left_open if (match := _OPTION.search(text))]
    return Claim(name, evidence.verdict, tuple(obligations), coverage, left_open, *options[:1])


def loads(packages: Sequence[Subject], *, every: bool = False) -> Claim:
    """The claim that every library and symbol that an import of the packages needs is there.

    It is about the wheels with compiled files that were requested, or that require torch; torch's own symbols are those
    of a table. The other wheels of a stack are compiled for a platform tag alone, which pip and uv compare. ``every``
    makes it a claim about all wheels with compiled files.
    """
    subjects = [(package, rules) for package in packages if (rules := of_loading(package, every=every))]
    read = sum("links" in package.facts for package, _ in subjects)
    coverage = f"the libraries of {read} of {len(subjects)} compiled wheels were read" if subjects else ""
    if unread := sum(len(_without_symbols(package)) for package, _ in subjects):
        coverage += (
            f", but not what {plural(unread, 'file')} for the stable ABI {'uses' if unread == 1 else 'use'} of it"
        )
    return claim(LOADS, subjects, coverage=coverage)


def of_loading(package: Subject, *, every: bool = False) -> tuple[str, ...]:
    """The rules that say whether the package loads, or why that is unknown; none if :func:`loads` is not about it."""
    links = package.facts.get("links")
    if links is None:
        return OF_UNREAD_LIBRARIES if _is_compiled(package) and (every or _must_be_read(package)) else ()
    is_manylinux = any("manylinux" in tag for tag in package.facts.get("tags", ()))
    judged = {result.rule for result in package.results if result.outcome is not Outcome.SKIP}
    stable = not _without_symbols(package) or judged.issuperset(OF_THE_STABLE_ABI)
    return (
        *OF_A_MANYLINUX_TAG * is_manylinux,
        *OF_LIBRARIES,
        *OF_THE_STABLE_ABI * stable,
        *OF_SYMBOLS * ("symbols" in links),
    )


def _without_symbols(package: Subject) -> Sequence[str]:
    """The files for the stable ABI whose symbols were not read."""
    unread: Sequence[str] = package.facts.get("links", {}).get("stable_abi_unread", ())
    return unread


def on_hosts(subjects: Iterable[Subject]) -> str:
    """What an answer of yes assumes of a host: ", on hosts with X11"; "" for nothing."""
    found = sorted({result.assumes for subject in subjects for result in subject.results if result.assumes})
    return f", on hosts with {joined(found)}" if found else ""


def is_requested(package: Subject) -> bool:
    """True for the package of a requirement that was given, not only required by another package."""
    return any(str(demand).startswith("you ask for") for demand in package.facts.get("demanded_by", ()))


def _is_compiled(package: Subject) -> bool:
    """Whether a wheel has compiled files; one that could not be read may have some."""
    return package.kind == "wheel" and bool(package.facts.get("native_members", {"count": 1})["count"])


def _must_be_read(package: Subject) -> bool:
    if package.facts.get("package") == TORCH:
        return False
    required = (_NAME.match(str(requirement)) for requirement in package.facts.get("requirements", ()))
    return is_requested(package) or any(name is not None and name[0] == TORCH for name in required)
