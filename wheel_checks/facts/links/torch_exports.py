"""The exports of torch's own libraries, release by release: ``data/torch_exports.bin``, from the wheels on the index.

The table has hashes of names and not the names, which would take a hundred times as much: queries have the name of a
symbol. Two names share a hash in one of 20,000 queries about a name that torch does not export. The table is made by
``ci/update_torch_exports.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources

from packaging.version import Version

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.gnu_hash import gnu_hash
from wheel_checks.formats.hash_table import HashTable

_FILE = "torch_exports.bin"
_OF = " of "


@dataclass(frozen=True, slots=True)
class TorchExports:
    """The exports of one torch release on the package index.

    ``version`` is the full one in ``torch/version.py`` ("2.11.0+cu130"), ``machine`` as in wheel tags. ``libraries``
    are the :func:`export_hash` of the names that a library exports, by its file name ("libc10.so"), for every Python of
    the release. ``by_python`` are its further exports for some Pythons, by their ABI tags ("cp312") and its name.
    """

    version: str
    machine: str
    libraries: Mapping[str, frozenset[int]]
    by_python: Mapping[str, Mapping[str, frozenset[int]]]

    @property
    def undecided(self) -> Mapping[str, frozenset[int]]:
        """The exports of a library for some Pythons only."""
        found: dict[str, frozenset[int]] = {}
        for libraries in self.by_python.values():
            for name, hashes in libraries.items():
                found[name] = found.get(name, frozenset()) | hashes
        return found


def export_hash(name: str) -> int:
    """The hash of a symbol's name as .gnu.hash chains store it: the lowest bit, which ends a chain there, is 0."""
    return gnu_hash(name) & ~1


@cache
def torch_exports(version: str, machine: str) -> TorchExports | None:
    """The exports of this torch, None if the table lacks it.

    A version with a local part means the build that has it: "2.11.0+cpu" is not the torch of the package index. Raises
    FormatError for a damaged table.
    """
    stored = stored_sets(version, machine)
    if stored is None:
        return None
    full_version, sets = stored
    by_python: dict[str, dict[str, frozenset[int]]] = {}
    for name, hashes in sets.items():
        library, _, abi = name.partition(_OF)
        if abi:
            by_python.setdefault(abi, {})[library] = hashes
    libraries = {name: hashes for name, hashes in sets.items() if _OF not in name}
    return TorchExports(full_version, machine, libraries, by_python)


def stored_sets(version: str, machine: str) -> tuple[str, dict[str, frozenset[int]]] | None:
    """The full version of this torch and its sets, by library or :func:`of_python`. Raises FormatError if damaged."""
    public, _, local = version.partition("+")
    table = _table()
    for number, row in enumerate(table.descriptions):
        known_public, _, known_local = str(row["version"]).partition("+")
        if known_public == public and row["machine"] == machine and local in ("", known_local):
            with _naming_the_file():
                return str(row["version"]), table.sets(number)
    return None


def of_python(library: str, abi: str) -> str:
    """The name of the set of exports that a library has for this Python but not for every other."""
    return f"{library}{_OF}{abi}"


def releases_that_export(names: Collection[str], machine: str) -> tuple[str, ...]:
    """The torch releases, oldest first, that export all ``names`` for every Python. Raises FormatError if damaged."""
    wanted = frozenset(map(export_hash, names))
    table = _table()
    with _naming_the_file():
        each = table.of_each(wanted)
    found = []
    for row, sets in zip(table.descriptions, each, strict=True):
        exported = (hashes for name, hashes in sets.items() if _OF not in name)
        if row["machine"] == machine and wanted <= frozenset().union(*exported):
            found.append(_public(row))
    return _sorted(found)


def missing_exports(names: Iterable[str], version: str, machine: str, python: str) -> tuple[str, ...]:
    """The names that this torch of the table does not export for a Python ("cp312"). Raises FormatError if damaged."""
    exports = torch_exports(version, machine)
    of_python = exports.by_python.get(python, {}) if exports else {}
    every = frozenset().union(*exports.libraries.values(), *of_python.values()) if exports else frozenset()
    return tuple(name for name in names if export_hash(name) not in every)


def known_releases(machine: str) -> tuple[str, ...]:
    """The torch releases in the table for this machine, oldest first, without local parts."""
    return _sorted(_public(row) for row in _table().descriptions if row["machine"] == machine)


@cache
def _table() -> HashTable:
    with _naming_the_file():
        return HashTable(resources.files("wheel_checks.data").joinpath(_FILE).read_bytes())


@contextmanager
def _naming_the_file() -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise FormatError(
            f"{_FILE}, the table of torch's exports, is damaged: {error}", hint="install wheelproof again"
        ) from None


def _public(row: Mapping[str, object]) -> str:
    return str(row["version"]).partition("+")[0]


def _sorted(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=Version))
