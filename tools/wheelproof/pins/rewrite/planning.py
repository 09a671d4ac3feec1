"""Plan the changes of files, and verify every result before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from wheel_checks.facts.pins.families import TORCH, family
from wheel_checks.sources.regular_file import real_path
from wheelproof.pins.model import Change, Document, FilePlan, FoundRequirement, IndexOption, Notice, Plan, Role, apply
from wheelproof.pins.policy import Mode, Policy
from wheelproof.pins.rewrite.edits import edits_of
from wheelproof.pins.rewrite.files.documents import read_all
from wheelproof.pins.rewrite.files.tree import tree_of
from wheelproof.pins.rewrite.matching import unmatched_builds
from wheelproof.pins.rewrite.notices import names_in, of_command, outside_notice, standing_notices, unmatched
from wheelproof.pins.rewrite.proof import prove
from wheelproof.pins.rewrite.wording import replacement


def plan(paths: Sequence[Path], policy: Policy, *, skip_vendored: bool = False) -> Plan:
    """The planned changes of requirements in files and folders under a policy. Nothing is written.

    Folders are searched for every file with requirements; ``-r`` and ``-c`` are followed, each file once. Files outside
    of the tree are read and never changed. Raises NotFoundError for a missing path, SourceError for an unreadable one,
    FormatError for a malformed document: there are no partial plans.
    """
    notices: list[Notice] = []
    tree = tree_of(paths)
    files = []
    for path, document in read_all(paths, notices.append, skip_vendored=skip_vendored):
        if outside := outside_notice(path, tree, "it was read, and is not changed"):
            notices.append(outside)
        files.append(plan_document(path, replace(document, rewritable=False) if outside else document, policy))
    notices += unmatched(policy, (name for file in files for name in names_in(file.document)))
    return Plan(tuple(files), tuple(notices), dict(policy.versions))


def plan_document(path: Path, document: Document, policy: Policy) -> FilePlan:
    """The planned changes of one document. Raises FormatError if the result cannot be verified."""
    meant = [found for found in document.requirements if policy.wants(found)]
    wanted = [found for found in meant if found.role is not Role.COMMAND] if document.rewritable else []
    decided = [one for found in wanted for one in _decided(found, document, policy)]
    changes = [one for one in decided if isinstance(one, Change)]
    matching = unmatched_builds(document, policy, changes)
    changes += matching.changes
    orphans = _orphan_indexes(document, policy, changes)
    edits = edits_of(document, changes, [index.span for index in orphans], matching.insertions)
    notices = (
        *(of_command(found) for found in meant if found.role is Role.COMMAND or document.commands),
        *(one for one in decided if isinstance(one, Notice)),
        *matching.notices,
        *standing_notices(document, policy, changes, {index.place for index in orphans}),
    )
    rewritten = apply(document.source.data, edits)
    file = FilePlan(path, real_path(path), document, rewritten, edits, tuple(changes), notices, matching.additions)
    prove(file)
    return file


def _decided(found: FoundRequirement, document: Document, policy: Policy) -> Iterator[Change | Notice]:
    """The change of a requirement, or why it is kept; for a version that nothing states, also a notice."""
    if found.role is Role.CONDA and not policy.conda:
        message = f"{found.text} is conda's, which makes its environment again: kept (--conda changes it)"
        yield Notice("conda", message, found.place)
        return
    text = replacement(found, policy)
    code = "dynamic" if document.kind == "setup.py" else "not-changed"
    if text is not None and not found.values:
        message = f"{found.text} cannot be changed in place: kept (--mode drop removes it)"
        yield Notice(code, message, found.place)
    elif text is None and not found.spans and found.items is None:
        message = f"{found.text} cannot be removed alone: kept (remove it by hand)"
        yield Notice(code, message, found.place)
    elif text is None or any(document.source.text[start:end] != text for start, end in found.values):
        yield Change(found, text)
        pinned = policy.mode is Mode.PIN_INSTALLED and found.role is not Role.CONDA
        if pinned and not policy.versions.get(found.name):
            message = f"{found.name} is not installed, and nothing says its version: {found.text} becomes {text}"
            yield Notice("not-installed", message, found.place)


def _orphan_indexes(document: Document, policy: Policy, changes: list[Change]) -> list[IndexOption]:
    """The index options for torch that serve no one after the changes, when these are to go."""
    if not (policy.drop_orphan_index and policy.mode is Mode.DROP and changes):
        return []
    removed = {id(change.found) for change in changes}
    left = {found.name for found in document.requirements if id(found) not in removed}
    served = any(map(family(TORCH).is_member, left))
    return [index for index in document.indexes if index.for_torch and not (served or (left and not index.only_torch))]
