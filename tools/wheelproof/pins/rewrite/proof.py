"""Verify a planned result: only the planned spans differ, it parses, and it has the intended requirements."""

from __future__ import annotations

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.reading import READERS, read_source
from wheelproof.pins.documents.script import metadata_of
from wheelproof.pins.documents.setup_cfg import parse
from wheelproof.pins.documents.source import decode
from wheelproof.pins.documents.toml.requirements import parse_toml, verify
from wheelproof.pins.model import FilePlan, Source


def prove(file: FilePlan) -> None:
    """Raise FormatError, naming the fault, when the rewritten bytes are not the original ones with the changes."""
    if not file.changed:
        return
    fault = _outside(file) or _requirements(file)
    if fault:
        raise FormatError(f"{file.path} was not changed: {fault}", hint="please report this as a bug, with the file")


def _outside(file: FilePlan) -> str:
    """Every byte outside the edits is where the edits before it put it."""
    before, after = file.original, file.rewritten
    shift = position = 0
    for edit in file.edits:
        if before[position : edit.start] != after[position + shift : edit.start + shift]:
            return "bytes outside the planned spans differ"
        shift += len(edit.replacement) - (edit.end - edit.start)
        position = edit.end
    return "" if before[position:] == after[position + shift :] else "bytes outside the planned spans differ"


def _requirements(file: FilePlan) -> str:
    """The result parses, and has the requirements of the original in order, those removed omitted."""
    document = file.document
    try:
        source = decode(file.path, file.rewritten, declared=READERS[document.kind][1])
        result = read_source(source, document.kind)
    except FormatError as error:
        return f"it would not parse any more: {error.what}"
    changed = {id(change.found): change.replacement for change in file.changes}
    expected: list[tuple[str, str | None]] = []
    for found in document.requirements:
        if id(found) not in changed:
            expected.append((found.name, found.text))
        elif changed[id(found)] is not None:
            expected.append((found.name, None))
    if len(expected) != len(result.requirements) or not all(
        name == found.name and text in (None, found.text)
        for (name, text), found in zip(expected, result.requirements, strict=False)
    ):
        return "it would not require what was meant"
    return _values(file, source)


def _values(file: FilePlan, after: Source) -> str:
    """The values of the whole document, if there is a parser that is not ours."""
    kind, before = file.document.kind, file.document.source
    if kind in {"pyproject", "pixi", "hatch", "script", "uv.toml", "pipfile"}:
        texts = (metadata_of(source.text) if kind == "script" else source.text for source in (before, after))
        old, new = (parse_toml(before, text) for text in texts)
        return verify(old, new, file.changes, file.additions)
    if kind == "tox" and before.path.suffix == ".toml":
        return verify(parse_toml(before, before.text), parse_toml(before, after.text), file.changes)
    if kind in ("setup.cfg", "tox"):
        sections = [{name: sorted(options) for name, options in parse(s, s.text).items()} for s in (before, after)]
        return "" if sections[0] == sections[1] else "sections or options would be lost"
    return ""
