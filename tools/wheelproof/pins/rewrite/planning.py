"""Plan the changes of files, and verify every result before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError, WheelproofError
from wheel_checks.facts.pins.families import TORCH, family
from wheel_checks.sources.regular_file import real_path
from wheelproof.pins.documents.items import remove_items
from wheelproof.pins.documents.reading import kind_of, read_document
from wheelproof.pins.model import (
    Change,
    Document,
    Edit,
    FilePlan,
    FoundRequirement,
    IndexOption,
    ItemList,
    Notice,
    Place,
    Plan,
    Role,
    Span,
    apply,
)
from wheelproof.pins.policy import Mode, Policy
from wheelproof.pins.rewrite.discovery import LINKED_FOLDER, find_files
from wheelproof.pins.rewrite.matching import unmatched_builds
from wheelproof.pins.rewrite.proof import prove
from wheelproof.pins.rewrite.tree import Tree, tree_of
from wheelproof.pins.rewrite.wording import is_override, replacement


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


def names_in(document: Document) -> set[str]:
    """The names of which a document says something."""
    return {found.name for found in document.requirements} | {n for notice in document.notices for n in notice.about}


def unmatched(policy: Policy, names: Iterable[str]) -> Iterator[Notice]:
    """A notice for each name or glob of the user that matches no name in the documents."""
    for pattern in policy.unmatched(names):
        yield Notice("package-unmatched", f"--package {pattern} matches nothing in the files that were read")


def outside_notice(path: Path, tree: Tree, consequence: str) -> Notice | None:
    """A notice about a file outside of the tree, links resolved; None for a file inside."""
    if tree.holds(path):
        return None
    target = real_path(path)
    leads = f"{path} leads to {target}," if path.is_symlink() else f"{path} is"
    return Notice("outside-tree", f"{leads} outside of the tree {tree.root}: {consequence}")


def read_all(
    paths: Sequence[Path],
    tell: Callable[[Notice], None],
    *,
    skip_vendored: bool = False,
    on_error: Callable[[Path, WheelproofError], None] | None = None,
) -> Iterator[tuple[Path, Document]]:
    """Every document, each once; ``tell`` is called for included files that are missing.

    With ``on_error`` a file that cannot be read is passed to it, and the others continue; else its error is raised. A
    link to a folder outside of the tree is not followed: it goes to ``on_error``, else to ``tell``.
    """
    tree = tree_of(paths)
    waiting = [(path, kind, False, False) for path, kind in find_files(paths, skip_vendored=skip_vendored)]
    seen: set[Path] = set()
    while waiting:
        path, kind, constraint, included = waiting.pop(0)
        target = real_path(path)
        if target in seen:
            continue
        seen.add(target)
        if kind == LINKED_FOLDER:
            if outside := outside_notice(path, tree, "it was not searched"):
                if on_error is None:
                    tell(outside)
                else:
                    on_error(path, SourceError(outside.message, hint=f"name {target} itself, if it is meant"))
            elif on_error is not None and not any(target.is_relative_to(real_path(named)) for named in paths):
                linked = find_files([path], skip_vendored=skip_vendored)  # only read: `pins rewrite` keeps to the paths
                waiting[:0] = [(found, kind, False, False) for found, kind in linked]
            continue
        try:
            document = read_document(path, kind, constraint=constraint)
        except WheelproofError as error:
            if isinstance(error, NotFoundError) and (included or path.is_symlink()):
                what = "is a link that leads nowhere" if path.is_symlink() else "is included, but is not there"
                tell(Notice("include-missing", f"{path} {what}"))
            elif on_error is None:
                raise
            else:
                on_error(path, error)
            continue
        waiting[:0] = [
            *((file, _kind_of_included(file), constraint, True) for file in document.includes),
            *((file, "requirements", True, True) for file in document.constraint_files),
        ]
        yield path, document


def _kind_of_included(path: Path) -> str:
    """The kind of a file named by ``-r``: a requirements file of any name; uv also accepts projects and scripts."""
    return (kind_of(path) if path.suffix in (".toml", ".cfg", ".py") else "") or "requirements"


def plan_document(path: Path, document: Document, policy: Policy) -> FilePlan:
    """The planned changes of one document. Raises FormatError if the result cannot be verified."""
    meant = [found for found in document.requirements if policy.wants(found)]
    wanted = [found for found in meant if found.role is not Role.COMMAND] if document.rewritable else []
    changes: list[Change] = []
    notices = [_of_command(found) for found in meant if found.role is Role.COMMAND or document.commands]
    code = "dynamic" if document.kind == "setup.py" else "not-changed"
    for found in wanted:
        if found.role is Role.CONDA and not policy.conda:
            message = f"{found.text} is conda's, which makes its environment again: kept (--conda changes it)"
            notices.append(Notice("conda", message, found.place))
            continue
        text = replacement(found, policy)
        if text is not None and not found.values:
            message = f"{found.text} cannot be changed in place: kept (--mode drop removes it)"
            notices.append(Notice(code, message, found.place))
        elif text is None and not found.spans and found.items is None:
            message = f"{found.text} cannot be removed alone: kept (remove it by hand)"
            notices.append(Notice(code, message, found.place))
        elif text is None or any(document.source.text[start:end] != text for start, end in found.values):
            changes.append(Change(found, text))
            pinned = policy.mode is Mode.PIN_INSTALLED and found.role is not Role.CONDA
            if pinned and not policy.versions.get(found.name):
                message = f"{found.name} is not installed, and nothing says its version: {found.text} becomes {text}"
                notices.append(Notice("not-installed", message, found.place))
    matching = unmatched_builds(document, policy, changes)
    changes += matching.changes
    notices += matching.notices
    orphans = _orphan_indexes(document, policy, changes)
    edits = _edits(document, changes, [index.span for index in orphans], matching.insertions)
    rewritten = apply(document.source.data, edits)
    told = (*notices, *_standing_notices(document, policy, changes, {index.place for index in orphans}))
    file = FilePlan(path, real_path(path), document, rewritten, edits, tuple(changes), told, matching.additions)
    prove(file)
    return file


def _of_command(found: FoundRequirement) -> Notice:
    """The notice about a command's requirement: commands are not rewritten."""
    message = f"`{found.place.section} {found.text}` in {found.place.path.name} is not rewritten"
    return Notice("install-command", message, found.place, about=(found.name,))


def _edits(
    document: Document, changes: Iterable[Change], more: list[Span], insertions: Iterable[tuple[Span, str]]
) -> tuple[Edit, ...]:
    """The edits for the changes, for further spans that go, and for texts that come, in order."""
    source = document.source
    lists: dict[int, list[FoundRequirement]] = {}
    gone = list(more)
    replaced: list[tuple[Span, str]] = list(insertions)
    for change in changes:
        if change.replacement is not None:
            replaced += [(span, change.replacement) for span in change.found.values]
        elif change.found.items is not None:
            lists.setdefault(id(change.found.items), []).append(change.found)
        else:
            gone += change.found.spans
    for members in lists.values():
        if members[0].items is not None:
            items, indexes = members[0].items, {found.index for found in members}
            spans = remove_items(document.layout, items, indexes)
            gone += spans
            replaced += _lone_comma(items, indexes, spans)
    merged = _merged(gone)
    offsets = source.byte_offsets(offset for span in (*merged, *(span for span, _ in replaced)) for offset in span)
    edits = [Edit(offsets[start], offsets[end]) for start, end in merged]
    edits += [Edit(offsets[start], offsets[end], text.encode(source.encoding)) for (start, end), text in replaced]
    return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))


def _lone_comma(items: ItemList, gone: set[int], spans: list[Span]) -> list[tuple[Span, str]]:
    """The comma that a tuple needs when one item is left, and no comma."""
    left = [span for index, span in enumerate(items.items) if index not in gone]
    commas = [at for at in items.separators if at is not None]
    if not items.comma_alone or len(left) != 1 or any(not _covers(spans, at) for at in commas):
        return []
    end = left[0][1]
    return [((end, end), ",")]


def _covers(spans: list[Span], at: int) -> bool:
    return any(start <= at < end for start, end in spans)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, touching or overlapping ones joined."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _orphan_indexes(document: Document, policy: Policy, changes: list[Change]) -> list[IndexOption]:
    """The index options for torch that serve no one after the changes, when these are to go."""
    if not (policy.drop_orphan_index and policy.mode is Mode.DROP and changes):
        return []
    removed = {id(change.found) for change in changes}
    left = {found.name for found in document.requirements if id(found) not in removed}
    served = any(map(family(TORCH).is_member, left))
    return [index for index in document.indexes if index.for_torch and not (served or (left and not index.only_torch))]


def _standing_notices(document: Document, policy: Policy, changes: list[Change], gone: set[Place]) -> Iterator[Notice]:
    """The notices that apply: about a matching name, at a place that stays, after a change if they need one."""
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
            continue  # `pins check` reports unreadable requirements; here they change nothing
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


# Follow-up notices after a change of a section.
_AFTER_CHANGE = (
    ("build-system.requires", "build-requires", "build-system.requires changes: install with --no-build-isolation"),
    ("tool.poetry.", "stale-lock", "poetry.lock is stale now: run `poetry lock`"),
)
