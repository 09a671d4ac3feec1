"""Symbol versions of an ELF file (Linux Standard Base, Core, "Symbol Versioning"): which ones it needs and defines."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.dynamic import DynamicTable, Tag
from wheel_checks.formats.elf.reader import ask_both, ask_together, check_count

MAX_VERSIONS = 0x7FFF  # a version index has 15 bits
_AHEAD = 2048  # bytes asked for at once, for no entry says how long these chains are; most have a few hundred

_CURRENT = 1  # VER_NEED_CURRENT, VER_DEF_CURRENT
_BASE, _WEAK = 0x1, 0x2  # VER_FLG_BASE, VER_FLG_WEAK


@dataclass(frozen=True, slots=True)
class NeededVersion:
    """One version that a library must define; without a ``weak`` one the loader only warns.

    ``index`` is what .gnu.version refers to.
    """

    name: str
    weak: bool
    index: int


@dataclass(frozen=True, slots=True)
class VersionNeed:
    """The versions needed of one library, in the order of the file."""

    library: str
    versions: tuple[NeededVersion, ...]


@dataclass(frozen=True, slots=True)
class VersionDefinition:
    """One version that this file defines, and those it inherits from. The ``base`` one is the file's own name."""

    name: str
    parents: tuple[str, ...]
    base: bool
    weak: bool
    index: int


@dataclass(frozen=True, slots=True)
class SymbolVersions:
    """What a file needs of others and defines itself."""

    needs: tuple[VersionNeed, ...] = ()
    definitions: tuple[VersionDefinition, ...] = ()


def read_versions(table: DynamicTable) -> SymbolVersions:
    """The version needs (DT_VERNEED) and definitions (DT_VERDEF).

    Raises FormatError for chains that loop, leave their segment or have another length than counted, for records of an
    unknown revision and for names that do not fit their hash; BytesNeeded.
    """
    needs, definitions = ask_both(partial(_read_needs, table), partial(_read_definitions, table))
    return SymbolVersions(tuple(needs), tuple(definitions))


class _Chains:
    """Walks records that are linked by their distance to the next one, in one piece of mapped memory."""

    def __init__(self, table: DynamicTable, tag: Tag, count_tag: Tag) -> None:
        self.count = table.require(count_tag)
        check_count(str(count_tag), self.count, MAX_VERSIONS)
        if not self.count:
            raise FormatError(f"{count_tag} is 0", expected=f"the number of records at {tag}, which the loader follows")
        address = table.require(tag)
        self._reader = table.reader
        self._room = table.addresses.room(address, str(tag))
        self._start = table.addresses.locate(address, 0, str(tag))
        self._left = MAX_VERSIONS

    def walk(self, layout: str, position: int, count: int, field: str) -> Iterator[tuple[int, tuple[int, ...]]]:
        """``(position, fields)`` of ``count`` records from ``position`` on, counted from the address in the tag.

        The last field of a record is the distance to the next, 0 at the end.
        """
        size = self._reader.struct(layout).size
        for number in range(count):
            self._left -= 1
            if self._left < 0:
                raise FormatError(f"{field} has too many records", expected=f"at most {MAX_VERSIONS} versions in all")
            if position + size > self._room:
                raise FormatError(
                    f"record {number} of {field} lies {position:#x} bytes after its start",
                    expected=f"a place within its segment, which ends after {self._room:#x}",
                )
            ahead = min(_AHEAD, self._room - position)
            fields = self._reader.unpack(layout, self._start + position, field, ahead=ahead)
            yield position, fields
            if (fields[-1] == 0) != (number == count - 1):
                raise FormatError(
                    f"record {number} of {field} says that the next one is {fields[-1]} bytes away",
                    expected="0 in the last record only"
                    if fields[-1]
                    else f"another record, since the count is {count}",
                )
            if 0 < fields[-1] < size:
                raise FormatError(
                    f"record {number} of {field} is {fields[-1]} bytes long", expected=f"at least {size}, its size"
                )
            position += fields[-1]


def _read_needs(table: DynamicTable) -> list[VersionNeed]:
    """Elfxx_Verneed: version, count, file, first, next; Elfxx_Vernaux: hash, flags, other, name, next."""
    if Tag.VERNEED not in table.values:
        return []
    chains = _Chains(table, Tag.VERNEED, Tag.VERNEEDNUM)
    records = []
    for position, (revision, count, library, first, _) in chains.walk("HHIII", 0, chains.count, "DT_VERNEED"):
        _check_revision("vn_version", revision)
        auxiliary = [row for _, row in chains.walk("IHHII", position + first, count, "vn_aux of DT_VERNEED")]
        records.append((library, auxiliary))
    strings = table.strings()
    names = iter(
        ask_together(
            *(
                partial(strings.get, index, field)
                for library, auxiliary in records
                for field, index in [("vn_file", library), *(("vna_name", row[3]) for row in auxiliary)]
            )
        )
    )
    needs = []
    for _, auxiliary in records:
        library_name = next(names)
        versions = []
        for digest, flags, other, _, _ in auxiliary:
            name = next(names)
            _check_hash("vna_hash", digest, name)
            versions.append(NeededVersion(name, bool(flags & _WEAK), other & MAX_VERSIONS))
        needs.append(VersionNeed(library_name, tuple(versions)))
    return needs


def _read_definitions(table: DynamicTable) -> list[VersionDefinition]:
    """Elfxx_Verdef: version, flags, index, count, hash, first, next; Elfxx_Verdaux: name, next."""
    if Tag.VERDEF not in table.values:
        return []
    chains = _Chains(table, Tag.VERDEF, Tag.VERDEFNUM)
    records = []
    for position, (revision, flags, index, count, digest, first, _) in chains.walk(
        "HHHHIII", 0, chains.count, "DT_VERDEF"
    ):
        _check_revision("vd_version", revision)
        if not count:
            raise FormatError("vd_cnt is 0", expected="at least the name of the version itself")
        rows = chains.walk("II", position + first, count, "vd_aux of DT_VERDEF")
        records.append((flags, index, digest, [name for _, (name, _) in rows]))
    strings = table.strings()
    gets = (partial(strings.get, name, "vda_name") for *_, names in records for name in names)
    found = iter(ask_together(*gets))
    definitions = []
    for flags, index, digest, names in records:
        name, *parents = [next(found) for _ in names]
        _check_hash("vd_hash", digest, name)
        definitions.append(
            VersionDefinition(name, tuple(parents), bool(flags & _BASE), bool(flags & _WEAK), index & MAX_VERSIONS)
        )
    return definitions


def _check_revision(field: str, value: int) -> None:
    if value != _CURRENT:
        raise FormatError(f"{field} is {value}", expected=str(_CURRENT))


def _check_hash(field: str, value: int, name: str) -> None:
    """Raise FormatError unless the hash fits: the loader compares it first and would not find the version."""
    if value != elf_hash(name):
        raise FormatError(f"{field} is {value:#x}", expected=f"{elf_hash(name):#x}, the hash of {name!r}")


def elf_hash(name: str) -> int:
    """The hash of a name in DT_HASH and in version records (gABI, figure 5-13): 28 bits."""
    value = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value
