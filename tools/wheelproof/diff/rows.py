"""A difference as rows of a table with two columns, A and B; the same rows whatever the format. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.difference.expected import expected_library, expected_need, is_outlier
from wheel_checks.facts.difference.libraries import Change
from wheel_checks.facts.difference.wheels import Compared, Difference, MemberDifference, Side, name_sides
from wheel_checks.facts.wheel.member_roles import Kind
from wheel_checks.model import Unavailable
from wheel_checks.phrases import and_so_on, human_bytes, plural

T = TypeVar("T")

LIMIT = 12
"""Rows of one section that are shown unless all are requested."""

NONE, PRESENT = "-", "present"
_NEEDED = "needed libraries"
_PERHAPS = "?"
_UNSURE = "whether a name with a ? is needed: not all of the file was read (--depth full)"
_FOLDERS = 2  # named where files are only counted
_DEPTH = 3  # parts of a path that make a folder there


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that differs, what A has and what B has. ``note`` says why, where that is known."""

    name: str
    a: str
    b: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under one heading; ``hidden`` more were omitted."""

    title: str
    rows: tuple[Row, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """What differs. ``columns`` name the sides; ``same`` counts what does not; ``not_compared`` are sentences."""

    columns: tuple[str, str]
    sections: tuple[Section, ...]
    same: str
    not_compared: tuple[str, ...] = ()


def build_table(pair: Difference, *, everything: bool = False) -> Table:
    """The table of a pair: what matters, or ``everything`` that differs, expected differences as well."""
    sections = [
        ("wheel", _of_wheel(pair, everything)),
        ("variant properties", _of_changes(pair.properties)),
        ("requirements", _of_requirements(pair)),
        ("METADATA", _of_changes(pair.fields)),
        ("version.py", _of_changes(pair.values)),
        ("runs when Python starts", _of_changes(pair.startup)),
        *((kind.value, rows) for kind, rows in _of_members(pair, everything)),
        ("sizes of native files", _of_sizes(pair, everything)),
        (_NEEDED, _of_needs(pair, everything)),
        ("linking", _of_linking(pair, everything)),
        ("GPU code", _of_gpu_code(pair)),
    ]
    shown = []
    for title, found in sections:
        rows = tuple(found)
        kept = rows if everything else rows[:LIMIT]
        if rows:
            shown.append(Section(title, kept, len(rows) - len(kept)))
    a, b = name_sides(pair.a, pair.b)
    unsure = any(_PERHAPS in row.a + row.b for section in shown if section.title == _NEEDED for row in section.rows)
    columns = (f"A: {a}", f"B: {b}") if (a, b) != ("A", "B") else (a, b)
    return Table(columns, tuple(shown), _same(pair), (*_not_compared(pair), *([_UNSURE] if unsure else [])))


def _of_wheel(pair: Difference, everything: bool) -> Iterator[Row]:
    a, b = pair.a, pair.b
    texts = (
        ("project", a.project, b.project),
        ("version", a.version, b.version),
        ("build tag", a.build, b.build),
        ("Python", a.python, b.python),
        ("variant", a.variant, b.variant),
        ("accelerator", _accelerator(a), _accelerator(b)),
    )
    yield from (Row(name, in_a or NONE, in_b or NONE) for name, in_a, in_b in texts if in_a != in_b)
    if a.size != b.size:
        yield _size_row("size", a.size, b.size)
    if everything and isinstance(a.unpacked_size, int) and isinstance(b.unpacked_size, int):
        yield _size_row("unpacked", a.unpacked_size, b.unpacked_size)


def _accelerator(side: Side) -> str:
    facts = side.accelerator
    return facts.described if isinstance(facts, AcceleratorFacts) else "unknown"


def _size_row(name: str, a: int, b: int) -> Row:
    ratio = max(a, b) / max(1, min(a, b))
    return Row(name, human_bytes(a), human_bytes(b), f"{ratio:,.1f} times" if ratio >= 1.05 else "")


def _differences(compared: Compared[T] | Unavailable) -> Sequence[T]:
    return () if isinstance(compared, Unavailable) else compared.differences


def _of_requirements(pair: Difference) -> Iterator[Row]:
    for item in _differences(pair.requirements):
        yield Row(item.name, item.a or NONE, item.b or NONE, "by a marker" if item.by_marker else "")


def _of_changes(compared: Compared[Change] | Unavailable) -> Iterator[Row]:
    for change in _differences(compared):
        yield Row(change.name, change.a or NONE, change.b or NONE)


def _of_members(pair: Difference, everything: bool) -> Iterator[tuple[Kind, Iterable[Row]]]:
    if isinstance(pair.members, Unavailable):
        return
    for kind, files in pair.members.items():
        if everything:
            yield kind, _each_member(pair, files)
        elif kind is Kind.NATIVE:
            yield kind, _native_members(pair, files)
        elif kind is Kind.PYTHON:
            yield kind, [*_lone(files), *_changed(files)]
        else:
            yield kind, [*_counted(files), *_changed(files)]


def _each_member(pair: Difference, files: MemberDifference) -> Iterator[Row]:
    yield from (Row(name, PRESENT, NONE, expected_library(name, pair.a, pair.b)) for name in files.only_a)
    yield from (Row(name, NONE, PRESENT, expected_library(name, pair.b, pair.a)) for name in files.only_b)
    yield from (Row(name, "content", "other content") for name in files.changed)


def _lone(files: MemberDifference) -> Iterator[Row]:
    yield from (Row(name, PRESENT, NONE) for name in files.only_a)
    yield from (Row(name, NONE, PRESENT) for name in files.only_b)


def _native_members(pair: Difference, files: MemberDifference) -> Iterator[Row]:
    """Each library that is not expected on one side alone, and the others in one row."""
    reasons_a = {name: expected_library(name, pair.a, pair.b) for name in files.only_a}
    reasons_b = {name: expected_library(name, pair.b, pair.a) for name in files.only_b}
    yield from (Row(name, PRESENT, NONE) for name, reason in reasons_a.items() if not reason)
    yield from (Row(name, NONE, PRESENT) for name, reason in reasons_b.items() if not reason)
    a, b = ([reason for reason in reasons.values() if reason] for reasons in (reasons_a, reasons_b))
    if a or b:
        yield Row("for one architecture", _reasons(a), _reasons(b), "as expected")


def _reasons(reasons: Sequence[str]) -> str:
    return f"{len(reasons):,}: {', '.join(sorted(set(reasons)))}" if reasons else NONE


def _counted(files: MemberDifference) -> Iterator[Row]:
    if files.only_a or files.only_b:
        yield Row("on one side alone", _folders(files.only_a), _folders(files.only_b))


def _folders(names: Sequence[str]) -> str:
    """How many there are, and in which folders most of them: ``168: torch/include/kai 160, torch/include/arm 8``."""
    if not names:
        return NONE
    counts = Counter("/".join(name.split("/")[:-1][:_DEPTH]) or name for name in names).most_common()
    told = [f"{folder} {count:,}" if len(counts) > 1 else folder for folder, count in counts]
    return f"{len(names):,}: {and_so_on(told, _FOLDERS)}"


def _changed(files: MemberDifference) -> Iterator[Row]:
    if files.changed:
        names = [name.rpartition("/")[2] for name in files.changed]
        yield Row(f"{plural(len(names), 'file')} with other content", and_so_on(names, _FOLDERS), "")


def _of_sizes(pair: Difference, everything: bool) -> Iterator[Row]:
    for item in _differences(pair.sizes):
        if everything or is_outlier(item.a, item.b):
            yield _size_row(item.name, item.a, item.b)


def _of_needs(pair: Difference, everything: bool) -> Iterator[Row]:
    for link in _differences(pair.links):
        a = _needed(link.only_a, link.maybe_a, pair.a, pair.b, everything)
        b = _needed(link.only_b, link.maybe_b, pair.b, pair.a, everything)
        if a or b:
            yield Row(link.name, a or NONE, b or NONE)


def _needed(only: Sequence[str], maybe: Sequence[str], side: Side, other: Side, everything: bool) -> str:
    """The sonames, those that are only possible with a question mark."""
    marked = [(name, name) for name in only] + [(name, name + _PERHAPS) for name in maybe]
    return ", ".join(text for name, text in marked if everything or not expected_need(name, side, other))


def _of_linking(pair: Difference, everything: bool) -> Iterator[Row]:
    """Across architectures the interpreter differs, and so do the oldest versions of symbols that there are."""
    always = ("soname", "RPATH", "RUNPATH")
    files: dict[Change, list[str]] = {}
    for link in _differences(pair.links):
        for change in link.changes:
            if everything or pair.a.machine == pair.b.machine or change.name in always:
                files.setdefault(change, []).append(link.name)
    for change, names in files.items():
        shown = [f"{len(names):,} files"] if len(names) > 1 and not everything else names
        yield from (Row(f"{change.name} of {name}", change.a or NONE, change.b or NONE) for name in shown)


def _of_gpu_code(pair: Difference) -> Iterator[Row]:
    for code in _differences(pair.gpu_code):
        note = "" if code.certainty == "exact" else code.certainty
        if code.a and code.b:
            yield Row(
                code.name, _labels(code.only_a), _labels(code.only_b), note or f"{len(code.a) - len(code.only_a)} alike"
            )
        else:
            yield Row(code.name, " ".join(code.a) or "no GPU code", " ".join(code.b) or "no GPU code", note)


def _labels(labels: Sequence[str]) -> str:
    return f"also {' '.join(labels)}" if labels else NONE


def _same(pair: Difference) -> str:
    """What is the same: ``14 requirements, 2,270 Python files, 1 header``."""
    counts: list[tuple[int, str]] = []
    if not isinstance(pair.requirements, Unavailable):
        counts.append((pair.requirements.same, "requirements"))
    if not isinstance(pair.members, Unavailable):
        counts += [(files.same, _kind(kind)) for kind, files in pair.members.items()]
    if not isinstance(pair.gpu_code, Unavailable):
        counts.append((pair.gpu_code.same, "files with GPU code for the same targets"))
    return ", ".join(f"{count:,} {_singular(what) if count == 1 else what}" for count, what in counts if count)


def _singular(words: str) -> str:
    return words.replace("files", "file") if "files" in words else words.removesuffix("s")


def _kind(kind: Kind) -> str:
    """Native files are the same by their names alone."""
    return f"{kind.value} by name" if kind is Kind.NATIVE else kind.value


def _not_compared(pair: Difference) -> Iterator[str]:
    sections: list[tuple[str, object]] = [
        ("variant properties", pair.properties),
        ("METADATA and requirements", pair.requirements),
        ("members", pair.members),
        ("linking", pair.links),
        ("GPU code", pair.gpu_code),
    ]
    for title, found in sections:
        if isinstance(found, Unavailable):
            yield f"{title}: {found.reason}" + (f" ({found.hint})" if found.hint else "")
    for title, names in (("linking", pair.links_unread), ("GPU code", pair.gpu_code_unread)):
        if names:
            yield f"{title} of {plural(len(names), 'file')} that could not be read: {', '.join(names[:LIMIT])}"
