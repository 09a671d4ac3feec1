"""Which requirements could replace the installed torch: reads files, and has the rules judge each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import Requirement

from wheel_checks.catalogue import get_rule
from wheel_checks.errors import WheelproofError
from wheel_checks.facts.pins.facts import LOCK, PinnedRequirement, PinNotice, RequirementFile
from wheel_checks.facts.pins.families import families
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Location, Outcome, Rule, Severity, Subject
from wheel_checks.parsing import requirement_or_none, version_or_none
from wheel_checks.phrases import plural
from wheel_checks.runner import run_rules
from wheel_checks.targets.target import Target
from wheelproof.pins.applicability import EVERY_LINUX, applying
from wheelproof.pins.documents.constraints import as_pep508
from wheelproof.pins.model import Document, FoundRequirement, Notice, Place, Role
from wheelproof.pins.policy import Policy
from wheelproof.pins.rewrite.files.documents import read_all
from wheelproof.pins.rewrite.files.tree import tree_of
from wheelproof.pins.rewrite.notices import names_in, outside_notice, unmatched
from wheelproof.pins.survival import survives

KIND = "requirement-pin"


@dataclass(frozen=True, slots=True)
class Checked:
    """The subjects, one per file, and how many bytes were read from disk."""

    subjects: tuple[Subject, ...]
    bytes_read: int


def check_files(
    paths: Sequence[Path],
    policy: Policy,
    installed: Mapping[str, str],
    rules: Sequence[Rule],
    *,
    skip_vendored: bool = False,
    targets: Sequence[Target] = EVERY_LINUX,
) -> Checked:
    """Judge every file with requirements; an unreadable one is undecided, and the others continue.

    ``installed`` are versions by normalised name; requirements that apply on none of the ``targets`` do not count.
    Raises WheelproofError for a missing path.
    """
    subjects: list[Subject] = []
    loose: list[Notice] = []
    size, names = 0, set[str]()

    def unreadable(path: Path, error: WheelproofError) -> None:
        results = run_rules([get_rule("WHL000")], error, None)
        subjects.append(Subject(str(path), KIND, "could not be read", results=results))

    tree = tree_of(paths)
    for path, found in read_all(paths, loose.append, skip_vendored=skip_vendored, on_error=unreadable):
        outside = outside_notice(path, tree, "it was checked, but `pins rewrite` does not change it")
        document = replace(found, notices=(*found.notices, outside)) if outside else found
        size += len(document.source.data)
        names |= names_in(document)
        facts = facts_of(path, document, policy, installed, targets)
        results = run_rules(rules, facts, Expectations())
        details = {
            "path": facts.path,
            "format": document.kind,
            "requirements": len(document.requirements),
            "pins": [found.text for found in facts.requirements],
        }
        count = len(facts.requirements)
        commands = f" of {plural(len(document.commands), 'install command')}" if document.commands else ""
        meant = "on torch or its companions" if policy.is_torch else "that are requested"
        headline = f"{plural(len(document.requirements), 'requirement')}{commands}, {count or 'none'} {meant}"
        subjects.append(Subject(str(path), KIND, headline, details, results))
    without_match = list(unmatched(policy, names))
    if without_match:
        subjects.append(_loose("--package", without_match, rules))
    if loose:
        subjects.append(_loose("included files", loose, rules))
    return Checked(tuple(subjects), size)


def headline(subjects: Sequence[Subject], policy: Policy) -> str:
    """Whether requirements could replace installed packages: ``2 requirements in 1 of 3 files could replace ...``."""
    held = "the installed torch" if policy.is_torch else "the installed packages"
    judged = subjects[0].id if len(subjects) == 1 else plural(len(subjects), "file")
    errors = [[r for r in s.results if r.outcome is Outcome.FAIL and r.severity is Severity.ERROR] for s in subjects]
    if failing := [subject.id for subject, found in zip(subjects, errors, strict=True) if found]:
        where = failing[0] if len(failing) == 1 else f"{len(failing)} of {judged}"
        return f"{plural(sum(map(len, errors)), 'requirement')} in {where} could replace {held}"
    if open_files := [subject for subject in subjects if subject.count(Outcome.ERROR)]:
        where = open_files[0].id if len(open_files) == 1 else plural(len(open_files), "file")
        return f"not proven that nothing replaces {held}, since {where} could not be read in full"
    return f"nothing in {judged} replaces {held}"


def _loose(label: str, notices: Sequence[Notice], rules: Sequence[Rule]) -> Subject:
    """The subject for notices that belong to no single file."""
    places = tuple(PinNotice(notice.code, notice.message, Location()) for notice in notices)
    return Subject(label, KIND, results=run_rules(rules, RequirementFile(label, (), places), Expectations()))


def facts_of(
    path: Path,
    document: Document,
    policy: Policy,
    installed: Mapping[str, str],
    targets: Sequence[Target] = EVERY_LINUX,
) -> RequirementFile:
    """The facts of one document, with every matching requirement compared with the installed version."""
    meant = [one for found in document.requirements if policy.wants(found) for one in applying(found, targets)]
    wanted = tuple(_judged(found, installed) for found in meant if found.role is not Role.LOCK)
    wanted += tuple(_locked([found for found in meant if found.role is Role.LOCK], installed))
    notices = tuple(
        PinNotice(notice.code, notice.message, _location(notice.place, path), notice.about)
        for notice in document.notices
        if not notice.on_change
        and (not notice.about or any(policy.means(name) or policy.means_conda(name) for name in notice.about))
    )
    return RequirementFile(str(path), wanted, notices)


def _location(place: Place | None, path: Path) -> Location:
    return Location(path=str(path), line=place.line, column=place.column) if place else Location(path=str(path))


def _judged(found: FoundRequirement, installed: Mapping[str, str]) -> PinnedRequirement:
    name, version = found.name, installed.get(found.name, "")
    kept, reason = _survival(found, version)
    other = "" if version or found.role is Role.CONDA else _other_anchor(name, installed)
    if other:
        name, version = other, installed[other]
        kept, reason = False, f"{found.name} provides the same import package"
    text = " ".join(found.text.split())
    place = found.place
    location = _location(place, place.path)
    role = str(found.role)
    certain = found.certain or found.reinstall or not version
    return PinnedRequirement(name, text, role, location, place.section, version, kept, reason, certain)


def _other_anchor(name: str, installed: Mapping[str, str]) -> str:
    """The installed distribution whose import package this one brings, too (tensorflow for tensorflow-cpu); or ""."""
    for one in families():
        if one.anchor and one.is_anchor(name):
            return next((other for other in installed if other != name and one.is_anchor(other)), "")
    return ""


def _locked(meant: Sequence[FoundRequirement], installed: Mapping[str, str]) -> Iterator[PinnedRequirement]:
    """The versions of each name in a lock file: it is kept if one fork has exactly the installed version."""
    for name in dict.fromkeys(found.name for found in meant):
        forks = [found for found in meant if found.name == name]
        versions = [found.text.partition("==")[2] for found in forks]
        there = installed.get(name, "")
        place = _location(forks[0].place, forks[0].place.path)
        text = f"{name} {' or '.join(versions)}"
        yield PinnedRequirement(name, text, LOCK, place, "", there, there in versions, f"{there} is not among them")


def _survival(found: FoundRequirement, version: str) -> tuple[bool, str]:
    """Whether an install keeps the installed version, and why."""
    if found.reinstall:
        return False, "the command reinstalls it from the index"
    if not found.certain:
        return False, "its version is only known at run time"
    requirement = requirement_or_none(as_pep508(found))
    if requirement is None:
        return False, "it is a URL, a path, or an unsupported form"
    if requirement.url:
        return False, "a direct URL is always installed"
    return _of_version(requirement, version, upgrade=found.upgrade)


def _of_version(requirement: Requirement, version: str, *, upgrade: bool) -> tuple[bool, str]:
    if not version:
        return (
            not requirement.specifier,
            f"it allows {requirement.specifier} only, and the installed version is unknown",
        )
    installed = version_or_none(version)
    if installed is None:
        return False, f"the installed version {version!r} is not a PEP 440 version"
    judged = survives(requirement, installed)
    if judged.kept and upgrade and not any(s.operator in ("==", "===") for s in requirement.specifier):
        return False, "--upgrade installs the latest allowed version"
    return judged.kept, "; ".join(judged.reasons)
