"""Where the packages of a cell are from: indexes, folders and limits that its keys name, next to what is configured.

The indexes of a cell are asked before those that are configured, and the first that knows a project is the only one
that counts, as with ``uv --index``. An address is contacted when ``--trust-index`` trusts it or the user has
configured it.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.formats.secrets import redact_text
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.installer_config import FIRST_INDEX, MERGE, IndexConfig
from wheel_checks.sources.regular_file import expand_home
from wheel_checks.sources.trust import Address, allowed_requirement
from wheelproof.matrix.keys import is_file_name
from wheelproof.matrix.model import Cell
from wheelproof.wheels.declared import read_declared

_STRATEGIES = {FIRST_INDEX: "first-index", MERGE: "unsafe-best-match"}  # as uv calls them
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_WHERE = "the matrix"


def with_places(cell: Cell, folder: Path) -> Cell:
    """The cell with URLs for the paths that its keys name, from ``folder`` on, and the lines of its constraint files.

    Raises UsageError for a folder or a file that is not present, and for a line that is not a constraint.
    """
    link = partial(_linked, cell, folder)
    constraints = [line for text in cell.constraints for line in _constraints(cell, text, folder)]
    return replace(
        cell,
        index=tuple(link("index", text) for text in cell.index),
        torch_index=link("torch-index", cell.torch_index) if cell.torch_index else "",
        find_links=tuple(link("find-links", text) for text in cell.find_links),
        constraints=tuple(constraints),
    )


def _linked(cell: Cell, folder: Path, key: str, text: str) -> str:
    if _URL.match(text):
        return text
    path = (folder / expand_home(text)).absolute()
    if not path.exists():
        raise UsageError(
            f"{cell.id}: {key} names {text!r}, which does not exist in {folder}", expected="a URL or a path"
        )
    return path.as_uri()


def _constraints(cell: Cell, text: str, folder: Path) -> Iterator[str]:
    if not is_file_name(text):
        yield text
        return
    found = read_declared([folder / text])
    if found.faults:
        raise UsageError(f"{cell.id}: constraints: {found.faults[0]}", expected="a requirements file")
    for end in found.open_ends:
        raise end
    yield from (str(line.requirement) for line in found.lines)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the packages of a cell are searched for. ``torch`` is the only index of torch, "" when it has no other."""

    indexes: IndexConfig
    torch: str = ""

    @property
    def pinned(self) -> dict[str, str]:
        """The packages that each come from one index."""
        return {"torch": self.torch} if self.torch else {}

    @property
    def of_a_lock(self) -> IndexConfig:
        """Where what is locked is fetched: from any of the places, since versions and hashes are exact."""
        urls = dict.fromkeys(filter(None, [self.torch, *self.indexes.indexes]))
        return replace(self.indexes, indexes=tuple(urls), strategy=MERGE) if self.torch else self.indexes

    @property
    def identity(self) -> list[Any]:
        """What a resolution depends on, JSON-ready and without logins: the places, and what is in local folders."""
        urls = [self.torch, *self.indexes.indexes, *self.indexes.find_links]
        refused = [str(address) for address in self.indexes.refused]
        return [[redact_text(url) for url in urls], self.indexes.strategy, refused, list(self._files())]

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` with variables of uv that name the same places; torch's own index comes first."""
        *first, last = [url for url in (self.torch, *self.indexes.indexes) if url] or [""]
        found = {
            "UV_DEFAULT_INDEX": last,
            "UV_INDEX": " ".join(first),
            "UV_FIND_LINKS": ",".join(url.replace(",", "%2C") for url in self.indexes.find_links),
            "UV_INDEX_STRATEGY": "first-index" if self.torch else _STRATEGIES[self.indexes.strategy],
            "UV_NO_INDEX": "0" if last else "1",
        }
        return {name: value for name, value in environ.items() if name not in found} | {
            name: value for name, value in found.items() if value
        }

    def _files(self) -> Iterator[tuple[str, int, int]]:
        """Names, sizes and times of what is in the local folders: a wheel may be built again under its name."""
        for url in filter(is_file_url, self.indexes.find_links):
            with contextlib.suppress(OSError, SourceError):  # uv says why it cannot be read
                for path in sorted(path_of(url).iterdir()):
                    yield path.name, path.stat().st_size, path.stat().st_mtime_ns


def places_of(cell: Cell, configured: IndexConfig, *, named: bool) -> Places:
    """The places of a cell: those that it names, then the ``configured`` ones.

    Those that may not be contacted are ``refused``. Local ones count where the user ``named`` the matrix.
    """
    refused: list[Address] = []

    def allowed(urls: Iterable[str], kind: str) -> list[str]:
        pairs = [(url, url if named and is_file_url(url) else configured.trust.allowed(url)) for url in urls]
        refused.extend(Address(url, _WHERE, kind) for url, found in pairs if found is None)
        return [found for _, found in pairs if found is not None]

    of_torch = allowed(filter(None, [cell.torch_index]), "index")
    own, links = allowed(cell.index, "index"), allowed(cell.find_links, "find-links page")
    indexes = replace(
        configured,
        indexes=tuple(dict.fromkeys([*own, *configured.indexes])),
        find_links=tuple(dict.fromkeys([*links, *configured.find_links])),
        strategy=FIRST_INDEX if own else configured.strategy,
        refused=(*configured.refused, *refused),
    )
    return Places(indexes, *of_torch)


def allowed_text(text: str, indexes: IndexConfig, *, named: bool) -> str:
    """The text of a requirement. Raises UntrustedAddressError for an address that the user does not trust."""
    requirement = Requirement(text)
    if named and is_file_url(requirement.url or ""):
        path_of(requirement.url or "")  # of this host, which contacts no other
        return str(requirement)
    return allowed_requirement(requirement, indexes.trust, _WHERE)
