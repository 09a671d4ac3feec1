"""The requirements in a TOML document, by a table of their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from wheel_checks.formats import documents
from wheel_checks.formats.toml_spans import Header, Kind, Statement, Value, scan
from wheelproof.pins.documents.names import normalized, project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.source import LARGEST
from wheelproof.pins.model import (
    Addition,
    Change,
    Document,
    Form,
    FoundRequirement,
    ItemList,
    KeyPath,
    Notice,
    Place,
    Role,
    Source,
    Span,
)


@dataclass(frozen=True, slots=True)
class Where:
    """A place of requirements: a dotted path, in which * is any one key; their role; their form.

    An array has requirements; a table has them by name.
    """

    path: str
    role: Role
    form: Form = Form.PEP508


@dataclass(slots=True)
class _Entry:
    """All entries for one key of a table: poetry's ``torch`` may be its own table, or several."""

    where: Where
    keys: KeyPath
    at: int
    spans: list[Span] = field(default_factory=list)
    items: tuple[ItemList, int] | None = None
    plain: list[Span] = field(default_factory=list)  # values that are texts
    whole: list[Span] = field(default_factory=list)  # values that are tables or lists of them
    versions: list[Span] = field(default_factory=list)  # the values of "version" in them
    shown: list[str] = field(default_factory=list)


def read_toml(source: Source, places: Sequence[Where], kind: str, text: str | None = None) -> Document:
    """The requirements of a document. ``text`` replaces the source's own, character for character (PEP 723).

    Raises FormatError, with the line, when it is not valid TOML.
    """
    blanked, text = text or "", source.text if text is None else text
    parse_toml(source, text)
    reader = _Reader(source, text, [(tuple(where.path.split(".")), where) for where in places])
    found = sorted(reader.read(), key=lambda requirement: (requirement.place.line, requirement.place.column))
    notices = [notice for requirement in found for notice in of_requirement(requirement)]
    return Document(kind, source, tuple(found), tuple(notices), blanked=blanked)


def parse_toml(source: Source, text: str) -> dict[str, Any]:
    """The values. Raises FormatError, with the line, when it is not valid TOML."""
    return documents.parse_toml(text, str(source.path), LARGEST)


def verify(
    before: dict[str, Any], after: dict[str, Any], changes: Iterable[Change], additions: Iterable[Addition] = ()
) -> str:
    """Why ``after`` is not ``before`` with the changes and additions and nothing else; "" when it is."""
    expected, actual = deepcopy(before), deepcopy(after)
    for addition in additions:
        _parent(expected, addition.keys).setdefault(addition.keys[-1], []).extend(addition.texts)
    paths = {change.found.keys: change.replacement for change in changes}
    for keys in sorted(paths, key=lambda keys: [(isinstance(part, int), str(part)) for part in keys]):
        if paths[keys] is not None:  # the same in both: it was meant to differ
            for document in (expected, actual):
                _parent(document, keys)[keys[-1]] = "replaced"
    # Items of a list go from its end, so that the others keep their indexes until it is their turn.
    gone = [keys for keys, replacement in paths.items() if replacement is None]
    for keys in sorted(gone, key=lambda keys: keys[-1] if isinstance(keys[-1], int) else -1, reverse=True):
        del _parent(expected, keys)[keys[-1]]
    if _without_empty(expected) == _without_empty(actual):
        return ""
    return "the tables and lists would differ in more than the planned changes"


def _parent(data: Any, keys: KeyPath) -> Any:
    for part in keys[:-1]:
        data = data[part]
    return data


def _without_empty(value: Any) -> Any:
    """Without empty tables: ``a.b``, if ``[a.b.torch]`` was its only content."""
    if not isinstance(value, dict):
        return value
    inner = {key: _without_empty(child) for key, child in value.items()}
    return {key: child for key, child in inner.items() if child != {}}


class _Reader:
    def __init__(self, source: Source, text: str, places: Sequence[tuple[tuple[str, ...], Where]]) -> None:
        self.source = source
        self.text = text
        self.places = places
        self.entries: dict[KeyPath, _Entry] = {}
        self.table: Header | None = None
        self.table_entry: _Entry | None = None

    def read(self) -> Iterator[FoundRequirement]:
        """All requirements: items of arrays, then the entries of tables."""
        for entry in scan(self.text):
            if isinstance(entry, Header):
                self.header(entry)
            else:
                if self.table_entry is not None:  # the table goes with its last statement
                    start = self.table_entry.spans[-1][0]
                    self.table_entry.spans[-1] = (start, entry.end)
                yield from self.visit(entry.path, entry.value, entry, None)
        for found in self.entries.values():
            yield self.of_entry(found)

    def header(self, header: Header) -> None:
        """Begin a table: of one requirement (``[tool.poetry.dependencies.torch]``), or of several."""
        self.table_entry = None
        for pattern, where in self.places:
            if len(header.path) > len(pattern) and _matches(pattern, header.path[: len(pattern)]):
                if where.form in (Form.PEP508, Form.NAME):
                    continue
                keys = header.path[: len(pattern) + 1]
                entry = self.entries.setdefault(keys, _Entry(where, keys, header.start))
                entry.spans.append((header.start, header.end))
                self.table_entry = entry

    def visit(
        self, path: KeyPath, value: Value, statement: Statement, item: tuple[ItemList, int] | None
    ) -> Iterator[FoundRequirement]:
        """The requirements in a value: the value itself, its items, or a part of one."""
        for pattern, where in self.places:
            size = len(pattern)
            if len(path) < size or not _matches(pattern, path[:size]):
                continue
            if where.form in (Form.PEP508, Form.NAME):
                if len(path) == size and value.kind is Kind.ARRAY:
                    yield from self.array(path, value, where)
                    return
            elif len(path) > size:
                self.part(where, path, path[: size + 1], value, statement, item)
                return
        if value.kind is Kind.TABLE:
            items = _layout(value)
            for index, (key, member) in enumerate(value.members):
                yield from self.visit((*path, *key), member, statement, (items, index))

    def array(self, path: KeyPath, array: Value, where: Where) -> Iterator[FoundRequirement]:
        """The texts of an array; tables in it (``{include-group = "x"}``) are no requirements."""
        items = _layout(array)
        for index, (_, value) in enumerate(array.members):
            if where.role is Role.MATCHED:
                yield from self.matched(path, items, index, value)
            elif value.kind is Kind.STRING:
                name = normalized(value.text) if where.form is Form.NAME else project_of(value.text.strip())
                yield FoundRequirement(
                    name,
                    value.text.strip(),
                    where.role,
                    self.place(value.start, path),
                    values=(value.inner,) if value.end - value.start == len(value.text) + 2 else (),
                    form=where.form,
                    items=items,
                    index=index,
                    keys=(*path, index),
                    single_quoted=self.text[value.start] == "'",
                )

    def matched(self, path: KeyPath, items: ItemList, index: int, value: Value) -> Iterator[FoundRequirement]:
        """A table such as ``{ requirement = "torch", match-runtime = true }``."""
        texts = {key[-1]: member.text for key, member in value.members}
        if value.kind is Kind.TABLE and texts.get("match-runtime") == "true":
            yield FoundRequirement(
                project_of(texts.get("requirement", "")),
                texts.get("requirement", ""),
                Role.MATCHED,
                self.place(value.start, path),
                items=items,
                index=index,
                keys=(*path, index),
            )

    def part(
        self,
        where: Where,
        path: KeyPath,
        keys: KeyPath,
        value: Value,
        statement: Statement,
        item: tuple[ItemList, int] | None,
    ) -> None:
        """Note a value that is a requirement of a table, or a part of one (``torch.version``)."""
        entry = self.entries.setdefault(keys, _Entry(where, keys, statement.key))
        if item is not None:
            entry.items = item
        elif self.table_entry is not entry:
            entry.spans.append((statement.start, statement.end))
        if len(path) == len(keys):
            entry.shown.append(self.text[value.start : value.end])
            if value.kind is Kind.STRING:
                entry.plain.append(value.inner)
            else:
                entry.whole.append((value.start, value.end))
                entry.versions += _versions(value)
        elif path[-1] == "version" and value.kind is Kind.STRING:
            entry.versions.append(value.inner)
            entry.shown.append(self.text[value.start : value.end])

    def of_entry(self, entry: _Entry) -> FoundRequirement:
        name = str(entry.keys[-1])
        shown = " ".join(" ".join(entry.shown).split())
        values = tuple(entry.plain + entry.versions)
        # A table without a version (a URL, a path) has nothing that a version could be put in place of.
        complete = len(entry.plain) + len(entry.versions) >= max(1, len(entry.plain) + len(entry.whole))
        return FoundRequirement(
            normalized(name),
            f"{name} = {shown}" if shown else name,
            entry.where.role,
            self.place(entry.at, entry.keys[:-1]),
            spans=() if entry.items else tuple(entry.spans),
            values=values if complete else (),
            form=entry.where.form,
            items=entry.items[0] if entry.items else None,
            index=entry.items[1] if entry.items else 0,
            keys=entry.keys,
        )

    def place(self, offset: int, path: KeyPath) -> Place:
        return Place(self.source.path, *self.source.position(offset), ".".join(map(str, path)))


def _layout(value: Value) -> ItemList:
    """The layout of an array or an inline table."""
    spans, separators = tuple(value.spans), tuple(value.separators)
    return ItemList(value.start + 1, value.end - 1, spans, separators, trailing=value.kind is Kind.ARRAY)


def _matches(pattern: Sequence[str], path: KeyPath) -> bool:
    return all(isinstance(part, str) and want in ("*", part) for want, part in zip(pattern, path, strict=True))


def _versions(value: Value) -> list[Span]:
    """The versions in a table, or in each table of a list."""
    if value.kind is Kind.ARRAY:
        return [span for _, member in value.members for span in _versions(member)]
    return [v.inner for key, v in value.members if key == ("version",) and v.kind is Kind.STRING]


def notices_about(source: Source, messages: Iterable[tuple[str, str, str, str]], text: str) -> Iterator[Notice]:
    """Notices from (code, message, name, text on its line)."""
    for code, message, name, wanted in messages:
        offset = max(text.find(wanted), 0)
        yield Notice(code, message, Place(source.path, *source.position(offset)), about=(name,))
