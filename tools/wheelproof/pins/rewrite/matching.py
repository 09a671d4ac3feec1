"""What uv matches with the resolution (``match-runtime``) when the resolution has no torch any more.

uv then refuses to sync: "declared as an extra build dependency with `match-runtime = true`, but was not found in the
resolution". A build without isolation sees the installed torch instead, which is what the entry was for.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wheel_checks.formats.toml_spans import Header, Kind, Statement, Value, scan
from wheelproof.pins.documents.names import normalized
from wheelproof.pins.model import Addition, Change, Document, FoundRequirement, KeyPath, Notice, Role, Span
from wheelproof.pins.policy import Mode, Policy

_LIST = "no-build-isolation-package"


@dataclass(frozen=True, slots=True)
class Matching:
    """The entries that go, the texts that come in their place, and what is to be said."""

    changes: tuple[Change, ...] = ()
    insertions: tuple[tuple[Span, str], ...] = ()
    additions: tuple[Addition, ...] = ()
    notices: tuple[Notice, ...] = ()


def unmatched_builds(document: Document, policy: Policy, changes: Sequence[Change]) -> Matching:
    """What becomes of the entries whose package leaves the resolution with these changes.

    Where the project is built without isolation already, its entry stays, and a notice says so.
    """
    gone = {change.found.name for change in changes if change.found.role in (Role.RUNTIME, Role.CONSTRAINT)}
    entries = [found for found in document.requirements if found.role is Role.MATCHED and found.name in gone]
    if policy.mode is not Mode.DROP or not entries:
        return Matching()
    prefix: KeyPath = entries[0].keys[:-3]  # of tool.uv.extra-build-dependencies.NAME.0
    statements = scan(document.layout)
    array = _array(statements, (*prefix, _LIST))
    there = {normalized(value.text) for _, value in array.members} if array else set()
    notices = [_stays(found) for found in entries if normalized(str(found.keys[-2])) in there]
    going = [found for found in entries if normalized(str(found.keys[-2])) not in there]
    if not going:
        return Matching(notices=tuple(notices))
    names = tuple(dict.fromkeys(str(found.keys[-2]) for found in going))
    insertion = _insertion(document.layout, statements, prefix, array, names)
    if insertion is None:
        return Matching(notices=(*notices, *map(_stays, going)))
    return Matching(
        tuple(Change(found) for found in going),
        (insertion,),
        (Addition((*prefix, _LIST), names),),
        (*notices, *map(_goes, going)),
    )


def _stays(found: FoundRequirement) -> Notice:
    message = (
        f"`uv sync` refuses match-runtime for {found.name}, which the resolution of this project does not have any "
        f"more: remove the entry of {found.keys[-2]}, and build it without isolation"
    )
    return Notice("match-runtime", message, found.place, about=(found.name,))


def _goes(found: FoundRequirement) -> Notice:
    message = (
        f"{found.keys[-2]} is built without isolation from now on, against the installed {found.name}: install what "
        "else its build needs first"
    )
    return Notice("match-runtime-replaced", message, found.place, about=(found.name,))


def _array(statements: Iterable[Header | Statement], keys: KeyPath) -> Value | None:
    found = (s.value for s in statements if isinstance(s, Statement) and s.path == keys)
    return next((value for value in found if value.kind is Kind.ARRAY), None)


def _insertion(
    text: str, statements: Sequence[Header | Statement], prefix: KeyPath, array: Value | None, names: tuple[str, ...]
) -> tuple[Span, str] | None:
    """Where the names are put: at the end of the array, or in a new one after the last key of the table."""
    quoted = ", ".join(f'"{name}"' for name in names)
    if array is not None:
        if not array.members:
            return (array.start + 1, array.start + 1), quoted
        end = array.members[-1][1].end
        return (end, end), f", {quoted}"
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{_LIST} = [{quoted}]{newline}"
    for at in _ends(text, statements, prefix):
        return (at, at), line if at == 0 or text[at - 1] == "\n" else newline + line
    return None


def _ends(text: str, statements: Sequence[Header | Statement], prefix: KeyPath) -> Iterator[int]:
    """Behind the header of the table, if it has one; else, where the table is the document, its beginning."""
    if not prefix:
        yield 0
    for entry in statements:
        if isinstance(entry, Header) and entry.path == prefix:
            yield min(entry.end, len(text))
