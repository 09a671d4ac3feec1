"""The facts of a stack that a lock names: what is known of packages that no wheel was read of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wheel_checks.facts.accelerator.verdict import NONE, AcceleratorFacts
from wheel_checks.facts.stack.facts import CONDA, NO_FILE, SDIST, WHEEL, StackFacts, StackPackage
from wheel_checks.facts.stack.locked import LockedEntry, LockFacts, declared_by_build, declared_by_version
from wheel_checks.model import Location, Unavailable
from wheelproof.stacks.packages import Pick


def with_lock(
    facts: StackFacts, lock: LockFacts, entries: Mapping[str, LockedEntry], picks: Sequence[Pick], path: str
) -> StackFacts:
    """The facts with what the lock, a file at ``path``, says of each package."""
    by_name = {pick.package.name: pick for pick in picks}
    packages = [_with_entry(p, entries.get(p.name), by_name.get(p.name), path) for p in facts.packages]
    return replace(facts, packages=tuple(packages), lock=lock)


def _with_entry(package: StackPackage, entry: LockedEntry | None, pick: Pick | None, path: str) -> StackPackage:
    if entry is None or pick is None:
        return package
    taken = pick.choice.chosen or pick.choice.sdist
    place = Location(file=path, line=entry.line or None)
    file_name = package.file_name or (taken.file_name if taken else "")
    known = replace(package, locked=entry, file_name=file_name, place=place)
    if pick.package.source == CONDA:
        files = pick.package.files
        named = files[0].file_name if files else pick.package.label
        declared = declared_by_build(entry.build, package.version)
        return replace(
            known, distribution=CONDA, accelerator=declared, file_name=named, explanation=f"build {entry.build}"
        )
    if entry.misfit:
        return replace(known, distribution=NO_FILE, explanation=entry.misfit)
    if entry.wrong is not None:
        reason = Unavailable("its hash on the index differs from that in the lock")
        return replace(known, distribution=_kind(pick), accelerator=reason, explanation=reason.reason)
    if entry.unread:
        version = str(pick.choice.version or package.version)
        declared = declared_by_version(version)
        label = "declared" if isinstance(declared, Unavailable) else f"declared: {declared.label}"
        return replace(known, distribution=_kind(pick), accelerator=declared, explanation=f"{label}, not read")
    is_pure = package.archive is not None and package.archive.is_pure
    return replace(known, accelerator=AcceleratorFacts(NONE, "", "", ())) if is_pure else known


def _kind(pick: Pick) -> str:
    return SDIST if pick.choice.sdist is not None else WHEEL
