"""What an install of a file would do to the installed torch, before a rewriting and after it, as uv resolves both.

A rewriting takes names out of files; what counts is what installers then do. Requirements of other packages may still
replace torch, and a constraint that goes may have kept one away. Overrides and excludes of a project count for uv
alone, which reads them where it is started.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from wheel_checks.errors import WheelproofError
from wheel_checks.targets.target import Target
from wheelproof.pins.applicability import applies, applying
from wheelproof.pins.documents.constraints import as_pep508
from wheelproof.pins.documents.reading import READERS, read_source
from wheelproof.pins.documents.source import decode
from wheelproof.pins.model import Document, FilePlan, Form, FoundRequirement, Plan, Role
from wheelproof.pins.rewrite.wording import is_override

TORCH = "torch"
MOST = 8  # files that are resolved, the others are only named


class Fate(StrEnum):
    """What becomes of the installed torch."""

    KEPT = "kept"
    REPLACED = "replaced"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an install would do: ``message`` says it for people, with what requires it."""

    fate: Fate
    message: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """The outcomes for one file, before and after the rewriting."""

    path: Path
    before: Outcome
    after: Outcome

    @property
    def sentence(self) -> str:
        """For people: what the rewriting brought about, and what would help where torch does not stay."""
        if self.after.fate is Fate.KEPT:
            was = "" if self.before.fate is Fate.KEPT else f"; before: {self.before.message}"
            return f"{self.path}: after the rewriting {self.after.message}{was}"
        if self.after.fate is Fate.UNKNOWN:
            return f"{self.path}: what an install would do is unknown: {self.after.message}"
        lost = "; it was kept before" if self.before.fate is Fate.KEPT else ""
        help_ = (
            f"guard it: `{TORCH}; sys_platform == 'never'` in override-dependencies of uv, or `wheelproof pins guard`"
        )
        return f"{self.path}: after the rewriting {self.after.message}{lost}; {help_}"


Ask = Callable[[Sequence[str], Sequence[str]], Outcome]


def effects(plan: Plan, ask: Ask, targets: Sequence[Target]) -> Iterator[Effect]:
    """The effect on each changed file that says what an install brings; ``ask`` resolves requirements and constraints.

    An installer that gives no answer makes an unknown effect.
    """
    for file in plan.changed[:MOST]:
        after = _rewritten(file)
        if _requirements(file.document, targets):
            yield Effect(file.path, _outcome(file.document, ask, targets), _outcome(after, ask, targets))


def _rewritten(file: FilePlan) -> Document:
    kind = file.document.kind
    return read_source(decode(file.path, file.rewritten, declared=READERS[kind][1]), kind)


def _outcome(document: Document, ask: Ask, targets: Sequence[Target]) -> Outcome:
    if any(found.name == TORCH and found.is_guard and is_override(found) for found in document.requirements):
        return Outcome(Fate.KEPT, "an override of uv keeps torch out of every requirement")
    overridden = next((f for f in document.requirements if f.name == TORCH and is_override(f)), None)
    if overridden is not None:
        return Outcome(Fate.UNKNOWN, f"the override {overridden.text} decides, only for uv")
    wanted = _requirements(document, targets)
    if skipped := _skipped(document, targets):
        return Outcome(Fate.UNKNOWN, f"{skipped} was not asked for, and could bring another torch")
    if not wanted:
        return Outcome(Fate.KEPT, "nothing is left to install")
    try:
        return ask(wanted, _constraints(document, targets))
    except WheelproofError as error:
        return Outcome(Fate.UNKNOWN, " ".join(f"{error}".split())[:300])


def _requirements(document: Document, targets: Sequence[Target]) -> list[str]:
    """What an install without extras brings, as PEP 508; addresses of the tree are not contacted."""
    return [text for found in _main(document, targets) if (text := as_pep508(found)) and _is_asked(found, text)]


def _skipped(document: Document, targets: Sequence[Target]) -> str:
    """What an install brings, too, that uv is not asked about; "" when there is nothing."""
    files = [path.name for path in document.includes]
    texts = [found.text for found in _main(document, targets) if not _is_asked(found, as_pep508(found))]
    return next(iter((*texts, *files)), "")


def _main(document: Document, targets: Sequence[Target]) -> list[FoundRequirement]:
    """The requirements of an install without extras."""
    return [
        one
        for found in document.requirements
        if found.role is Role.RUNTIME and found.form is not Form.NAME
        if not any(word in found.place.section for word in ("extras", "optional-dependencies"))
        for one in applying(found, targets)
    ]


def _is_asked(found: FoundRequirement, text: str) -> bool:
    return bool(text) and "://" not in text and found.certain


def _constraints(document: Document, targets: Sequence[Target]) -> list[str]:
    return [
        text
        for found in document.requirements
        if found.role is Role.CONSTRAINT and "build" not in found.place.section and applies(found, targets)
        if not is_override(found) and (text := as_pep508(found)) and "://" not in text
    ]
