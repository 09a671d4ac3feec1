"""What is the same from run to run: which of a project's reports this is, and which of its findings."""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePath

from wheel_checks.model import CheckResult, Location, Report, Subject
from wheel_checks.report.wording import fact, neutral

_NAMED = 3  # projects, or targets, that a category names
_OF_A_PROJECT = ("wheel", "sdist", "distribution", "package")  # kinds of subjects whose ids have a version
_VERSIONED = re.compile(r"^([^/]+?)-\d[^/]*(?=\.(?:dist-info|data|egg-info)(?:/|$))")


def category(report: Report) -> str:
    """``wheelproof/stack/requirements.txt/cp312 aarch64/GB200``: what distinguishes two runs on one commit.

    The command, what was judged, for which targets, and for which GPUs. Code scanning replaces the results of a run by
    those of the next one with the same category, so that it says nothing about versions, which a new run changes.
    """
    judged = (stack.id.partition(" on ")[0] for stack in report.subjects if stack.kind == "stack")
    names = _few(judged) or _few(fact(subject, "name") for subject in report.subjects)
    targets = _few(_target(subject) for subject in report.subjects)
    parts = ("wheelproof", report.command, names, targets, _few(_gpus(report.subjects)))
    return "/".join(neutral(part).replace("/", "_") for part in parts if part)


def fingerprint(subject: Subject, result: CheckResult, seen: dict[str, int]) -> str:
    """Identifies one finding across runs: who and where, not the versions, numbers and sentences that say how much.

    A line is not part of it, since lines move; ``seen`` counts what is alike otherwise.
    """
    place = result.location or Location()
    labels = [re.sub(r"\d+", "#", evidence.label) for evidence in result.evidence]
    member = _VERSIONED.sub(r"\1", place.member)
    key = json.dumps([result.rule, subject.kind, _identity(subject), member, relative(place.on_disk), labels])
    seen[key] = seen.get(key, 0) + 1
    return hashlib.sha256(f"{key}{seen[key]}".encode()).hexdigest()[:32]


def _few(names: Iterable[str]) -> str:
    """The different names, joined; "" for more than a reader, and a category, can hold."""
    different = sorted({name for name in names if name})
    return "+".join(different) if len(different) <= _NAMED else ""


def _target(subject: Subject) -> str:
    return fact(subject, "target", "machine")


def _gpus(subjects: Iterable[Subject]) -> list[str]:
    """The GPUs that were requested, as the facts of the wheels name them."""
    codes = [subject.facts.get("gpu_code") for subject in subjects]
    products = [code.get("products", ()) for code in codes if isinstance(code, dict)]
    return [str(product["name"]) for asked in products for product in asked if "name" in product]


def _identity(subject: Subject) -> list[str]:
    """A file of a project by the project and the platform, whatever the version; all else by its name from here."""
    if subject.kind in _OF_A_PROJECT and (name := fact(subject, "name")):
        return [name, fact(subject, "python"), fact(subject, "platform"), _target(subject)]
    return [relative(subject.id)]


def relative(path: str) -> str:
    """The path from the working folder, which the next job may have elsewhere; one outside of it as it is."""
    pure = PurePath(path)
    try:
        return str(pure.relative_to(Path.cwd()))
    except (ValueError, OSError):  # a relative one, one outside, or no folder is left here
        return path
