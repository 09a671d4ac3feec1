"""The notices about a plan: what it does not change, and what its changes need next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from wheel_checks.sources.regular_file import real_path
from wheelproof.pins.model import Change, Document, FoundRequirement, Notice, Place, Role
from wheelproof.pins.policy import Mode, Policy
from wheelproof.pins.rewrite.files.tree import Tree
from wheelproof.pins.rewrite.wording import is_override


def names_in(document: Document) -> set[str]:
    """The names of which a document says something."""
    return {found.name for found in document.requirements} | {n for notice in document.notices for n in notice.about}


def unmatched(policy: Policy, names: Iterable[str]) -> Iterator[Notice]:
    """A notice for each name or glob that the user asks for and that matches none of the names in what was read."""
    for pattern in policy.unmatched(names):
        yield Notice("package-unmatched", f"--package {pattern} matches nothing in the files that were read")


def outside_notice(path: Path, tree: Tree, consequence: str) -> Notice | None:
    """A notice about a file that is not in the tree, links resolved; None about one that does."""
    if tree.holds(path):
        return None
    target = real_path(path)
    leads = f"{path} leads to {target}," if path.is_symlink() else f"{path} is"
    return Notice("outside-tree", f"{leads} outside of the tree {tree.root}: {consequence}")


def of_command(found: FoundRequirement) -> Notice:
    """The notice about what a command installs: commands are not rewritten."""
    message = f"`{found.place.section} {found.text}` in {found.place.path.name} is not rewritten"
    return Notice("install-command", message, found.place, about=(found.name,))


def standing_notices(document: Document, policy: Policy, changes: list[Change], gone: set[Place]) -> Iterator[Notice]:
    """The notices that hold: about a name that is meant, at a place that stays, after a change if they need one."""
    gone = gone | {change.found.place for change in changes}
    locked = document.kind == "lock"
    matched = {change.found.name for change in changes if change.found.role is Role.MATCHED}
    for notice in document.notices:
        if notice.code == "match-runtime" and matched & set(notice.about):
            continue  # the entry goes
        meant = not notice.about or any(
            policy.means(name) or (locked and policy.means_conda(name)) for name in notice.about
        )
        if notice.code == "install-file" or (notice.code == "dynamic" and document.commands):
            continue  # `pins check` says what could not be read; here it changes nothing
        serves_still = notice.code == "index-kept" and policy.mode is not Mode.DROP
        if meant and notice.place not in gone and (changes or not notice.on_change) and not serves_still:
            yield notice
    guarded = next((c.found.place for c in changes if c.replacement and is_override(c.found)), None)
    if guarded and document.kind == "pyproject" and (document.source.path.parent / "uv.toml").is_file():
        message = "uv reads uv.toml of this folder instead of [tool.uv]: the guard counts only there"
        yield Notice("uv-toml", message, guarded)
    for section, code, message in _AFTER_CHANGE:
        place = next((c.found.place for c in changes if c.found.place.section.startswith(section)), None)
        if place is not None:
            yield Notice(code, message, place)


# What a change of a section leaves behind.
_AFTER_CHANGE = (
    ("build-system.requires", "build-requires", "build-system.requires changes: install with --no-build-isolation"),
    ("tool.poetry.", "stale-lock", "poetry.lock is stale now: run `poetry lock`"),
)
